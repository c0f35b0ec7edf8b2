// Package shell runs actors: it receives messages, lets a Behavior decide on them, and executes each decision in one
// order, which commit.go implements:
//
//	durable → visible → effects → acknowledged
//
//	messages ──▶ Receive ──▶ Behavior.Decide … Behavior.Step ──▶ commit ──▶ store
//	                                                                │
//	                 replies to callers ◀── effects ◀── readers ◀──┘ only then
//
// The shell knows nothing about what its actors do: it imports neither the state machines nor their stores. It owns the
// timers of an actor, the time for which it still responds after its last step, and its end after a failed store.
package shell
