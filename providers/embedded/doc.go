// Package embedded starts the servers that Turnstone needs if none are configured: a private Postgres and a
// private Redis. Each is a child process that listens only on a unix socket in its own folder.
//
// `turnstone dev` uses it, and tests against real servers use it through embeddedtest. `turnstone serve` never uses it.
// It starts and stops servers; it knows neither the schema nor a client library.
//
// A caller can rely on this:
//
//   - Each folder has one owner, by flock. The owner starts and stops the server. A process that starts while an owner
//     is running is a guest: it uses the running server, and its Stop does nothing to that server.
//   - A server whose owner has ended is taken over: it is stopped cleanly and started again under the new owner. It
//     does not continue to run, because the parent-death signal of the old owner may be about to stop it, and the new
//     owner could not set one for it.
//   - The server ends with its owner, whatever the reason: the kernel sends it a signal for a clean stop (Pdeathsig).
//   - After kill -9 of the owner or of the server, the next start finds and removes stale files and processes, and
//     nothing that is in use.
//   - As root, servers run under an unprivileged account (postgres, redis or nobody), because Postgres refuses root.
package embedded
