// Package machine is the state machine of an upload. It decides what an upload does next, and the table
// protocol.UploadTransitions restricts its transitions.
//
// It is pure: no clock, context, lock, log, store or randomness. Package actors/upload runs it: it calls the triggers,
// stores the events of each decision, and then performs its effects.
package machine
