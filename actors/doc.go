// Package actors contains the packages that run durable work: live turns, uploads and research tasks. One
// actor runs each piece of work, on the shell of package shell, around a pure state machine.
//
//	shell            one actor: decide → commit → effects → reply; knows no kind of work
//	host             all actors of one kind on a node: claim, adopt, drain, stop; knows no kind of work
//	node             the lease of the process, deaths of others, the list of hosts; knows no kind of work
//	cluster          the wire between nodes
//	turn, upload, research  the kinds of work, each with its pure machine in a package of its own
//	modelinput, passages  what a model gets, and the passages of texts that answer a question
//	toolbox, policy  which tools a model can call, and what their calls may do
//	llm, metering, routing  the interface of models, budgets, model routes
//	tail, follow     the streams of live turns, and of all other work
//	observe, retry   traces and metrics, repeated attempts
//
//	                 node: renews its lease; adopts, drains, stops ──▶ host.Host
//	                                                                    │ starts one actor for each turn
//	http ── Command ──▶ turn.Host ──▶│                      ┌────────── effects ──────────┐
//	                                 ▼                      ▼                             │
//	                          turnActor ── decide ──▶ machine.Machine ── events ──▶ shell ──▶ turn.Store (journal)
//	                                ▲ ▲                  (pure)                       │
//	                   model's text │ │ tool's result                                 ▼ only then
//	                    modelOutput ┘ └ toolDone                                   stream ──▶ Reader ──▶ http
//
// The packages access stores, models and tools only through interfaces. They import no other package of this module except
// protocol and its subpackages, and only they use protoactor. Package http calls them; persistence and providers implement
// their interfaces.
//
// Ownership: a piece of work belongs to (node, epoch). Every append carries both and is refused once either has changed. A
// refused actor stops: it publishes and acknowledges nothing more. Even if two nodes believe that they own a turn, at
// most one of them can write.
package actors
