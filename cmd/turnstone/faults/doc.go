// Package faults breaks what Turnstone stands on, while it serves, and holds every answer against a table.
//
// matrix_test.go: a proxy (toxiproxy) on each of four links, service to Postgres, to Redis, to the model, and client to
// service, goes through eight faults (wire_test.go); in each of them somebody reads, somebody writes and a turn is live.
// A cell of the table says which statuses may come and how long they may take; what was written is found whole or not at
// all, and repeating it with the same Idempotency-Key has one effect; turns end whole, with the same bytes for every
// reader; /health stays 200 and /ready names what is away.
//
// postgres_test.go and disk_test.go: what only a database can do: restarts, deadlocks, locks that are not given,
// connections used up, statements that take too long, a server that is frozen, a disk that is full.
//
// `go test -v` prints how long refusals took. The package has tests only.
package faults
