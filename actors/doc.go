// Package actors is what lives: today the turn; upload sessions and research tasks will live alike. It decides, and
// it keeps one promise for all of them, in commit.go:
//
//	durable → visible → effects → acknowledged
//
// It knows stores, models and tools only by the interfaces of ports.go and model.go, imports nothing of ours but
// protocol, and is the one package that uses protoactor. http asks it; persistence and providers implement its
// interfaces.
//
//	                 Node: starts, finds, adopts, drains; keeper.go holds its lease
//	                   │ spawns one actor a turn
//	http ── Command ──▶│                       ┌────────────── effects ──────────────┐
//	                   ▼                       ▼                                      │
//	             turnActor ── decide ──▶ turnMachine ── decision ──▶ commit ──▶ TurnStore (journal)
//	                ▲  ▲                 (pure)                         │
//	   model's text │  │ tool's result                                 ▼ only then
//	      modelFeed ┘  └ toolDone                                   stream ──▶ Reader ──▶ http
//
// The machine (turn_machine*.go) is pure and event-sourced: what has to survive changes only in apply and applyRecord,
// which run alike when an event is decided and when a log is read again after a takeover. Where it may go is the table in
// protocol. The actor (turn_actor.go) is a thin shell: while a batch is being stored it decides nothing, so what arrives
// meanwhile gathers into the next one.
//
// Ownership: a turn belongs to (node, epoch). Every append carries both and is refused once either has changed; a refused
// actor falls silent. Whatever two nodes believe, at most one is effective.
package actors
