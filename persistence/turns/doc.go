// Package turns stores turns: their start, their end with the queue that follows, and their replays. start.go is the
// start of a turn from top to bottom: decide.go decides, without the database, what every kind of start does, and row.go
// stores it. finish.go is the end of a turn. ownership.go is which node
// owns it.
//
// It implements the interfaces of actors/turn/ports.go. It appends no events to live turns itself: package journal does.
package turns
