// Package actors runs turns: one actor for each live turn, on the shell of package shell, around the state machine of
// package turn. Upload sessions and research tasks will become actors of the same kind.
//
// The package accesses stores, models and tools only through the interfaces of ports.go and llm. It imports no other
// package of this module except protocol and its subpackages, and only it and its subpackages use protoactor. Package
// http calls it; persistence and providers implement its interfaces.
//
//	                 Node: starts, finds, adopts, drains; keeper.go renews its lease
//	                   │ starts one actor per turn
//	http ── Command ──▶│                      ┌────────────── effects ──────────────┐
//	                   ▼                      ▼                                     │
//	               turnRun ── decide ──▶ turn.Machine ── events ──▶ shell ──▶ TurnStore (journal)
//	                ▲   ▲                 (pure)                      │
//	   model's text │   │ tool's result                               ▼ only then
//	      modelFeed ┘   └ toolDone                                 stream ──▶ Reader ──▶ http
//
// Ownership: a turn belongs to (node, epoch). Every append carries both and is refused once either has changed. A
// refused actor stops: it publishes and acknowledges nothing more. Even if two nodes believe that they own a turn, at
// most one of them can write.
package actors
