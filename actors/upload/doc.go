// Package upload runs uploads: one actor for each attempt to receive a file, on the shell of package shell,
// around the state machine of package machine. An upload that waits for its content has no actor and no owner.
//
// The package accesses stores and scanners only through the interfaces of ports.go. Package http calls it; persistence
// and providers implement its interfaces.
//
//	         Host: claims uploads, starts their actors, adopts and expires uploads
//	           │ starts one actor per attempt
//	http ── Receive, Cancel ──▶│                   ┌──────────── effects ─────────────┐
//	           ▼                                   ▼                                  │
//	        upload ── decide ──▶ machine.Machine ── events ──▶ shell ──▶ Store        │
//	           ▲                  (pure)                         │                    │
//	           │ progress, content, verdict                      ▼ only then          │
//	           └──── transfer: body ─┬─▶ object store       Reader ──▶ http          │
//	                                  └─▶ malware scanner  ◀──────────────────────────┘
//
// The body is read once: it is counted, hashed, stored in quarantine and scanned at the same time, in constant memory.
// It is copied to its final key only after a clean verdict, and becomes a file in the commit after that.
//
// Ownership: as for a turn, every append carries (node, epoch) and is refused once either has changed. Each attempt
// writes to an object key of its own epoch, so a node that has lost an upload cannot change the content of another one.
package upload
