// Package turns stores turns: their start, their end with the queue that follows, their replays, and which node owns
// them. start.go is the start of a turn from top to bottom, finish.go its end, directory.go the leases of nodes and the
// claims of turns.
//
// It implements the interfaces of actors/turn/ports.go. It appends no events to live turns itself: package journal does.
package turns
