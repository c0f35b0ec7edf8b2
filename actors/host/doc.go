// Package host runs the actors of one kind of durable work on a node: turns, uploads, and whatever else outlives its
// request. It lists them, starts them for claims, adopts the work of nodes that have ended, and ends them when the node drains
// or stops. What a claim is and how its work continues is decided by a Kind; what a node is by package node.
//
//	package node ── Adopt, Claim, Drain, Abandon, Stop ──▶ Host ── Claim, Owned, Reclaim ──▶ Kind ──▶ its store
//	                                                        │  ◀── Spawn ── Continue ────────┘
//	                                                        └── one shell.Shell for each piece of work
//
// Ownership: a piece of work belongs to (node, epoch). Every write carries both and is refused once either has changed. A
// refused actor stops: it shows and acknowledges nothing more. Even if two nodes believe that they own the same work, at
// most one of them can write.
package host
