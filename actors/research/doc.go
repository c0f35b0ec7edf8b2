// Package research runs research tasks: the third kind of durable work, on the generic host. The pure machine decides
// (package machine); this package passes messages to it, has its decisions stored, and runs its steps. What a step does is
// decided by a Worker.
//
//	http ── Create, Steer, Cancel, Follow ──▶ Host ── one actor for each task that runs ──▶ machine
//	                                            │                                             │ steps
//	                                            └── Store (journal, log, report)              └──▶ Worker
//
// A task that waits for a slot has no actor and no owner: it costs a row. A task that runs has at most four steps in flight. The
// result of a step is stored with the events that it causes; after a crash, a drain or an outage, another owner restores the
// machine from the journal, and runs only the steps that have no result.
//
// It imports no other kind of work.
package research
