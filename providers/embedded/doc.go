// Package embedded starts what Turnstone needs and nobody installed for it: a private Postgres and a private Redis, each
// a child process that listens on a unix socket in a folder of its own and on nothing else.
//
// It is called by `turnstone dev` and, through embeddedtest, by tests against real servers; `turnstone serve` never
// calls it. It launches and stops; it knows neither the schema nor a client library.
//
// What a caller can rely on:
//
//   - One owner a folder, by flock. The owner starts the server and stops it. Whoever comes while an owner lives is a
//     guest: it gets the running server, and its Stop leaves that alone.
//   - A server whose owner is gone is taken over: stopped cleanly and started again under the new owner. It is not kept
//     as it is, because it may be about to obey the parent-death signal of the old owner, and would have none to us.
//   - The server ends with its owner, however that ends: the kernel delivers a clean-stop signal (Pdeathsig).
//   - After kill -9 of either side the next start finds and removes what is stale, never what is in use.
//   - As root, servers run under an unprivileged account (postgres, redis or nobody), since Postgres refuses root.
package embedded
