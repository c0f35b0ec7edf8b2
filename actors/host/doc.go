// Package host runs the actors of one kind of durable work on a node: turns, uploads, and whatever else outlives its
// request. It lists them, starts them for claims, adopts the work of nodes that have ended, and ends them when the node drains
// or stops. What a claim is and how its work continues is decided by a Kind, for most
// kinds a StoreKind; what a node is by package node.
//
//	package node ── Round, Claim, Drain, Abandon, Stop ──▶ Host ── ClaimDue, Owned, ClaimLost ──▶ Kind ──▶ its store
//	                                                        │  ◀── Spawn ── Continue ────────────┘
//	                                                        └── one shell.Shell for each piece of work
//
// Ownership: a piece of work belongs to (node, epoch). Every write carries both and is refused once either has changed. A
// refused actor stops: it shows and acknowledges nothing more. Even if two nodes believe that they own the same work, at
// most one of them can write.
//
// These verbs name what changes the ownership, in this package, in those of the kinds and in their stores:
//
//	Claim    the update that makes a node the owner and raises the epoch. What may be claimed is in the name: ClaimDue (no running
//	         node owns it, and it can continue), ClaimLost (own work whose actor is gone), ClaimAny (whoever owns it, because this
//	         node has to decide a command), ClaimPending (an upload that waits for content), ClaimParked (a parked turn)
//	Owned    lists what a node owns; it changes nothing
//	Adopt    what follows a claim: the node restores the work from the store and starts its actor. A claim with its adoption is
//	         called a takeover
//	Park     removes the owner of a turn that waits for an approval; until a time, it is not due
//	Release  removes the owner, so that the work is due at once
//	Abandon  ends the actors of a node that was marked dead; it writes nothing, because others own the work
package host
