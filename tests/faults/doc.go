// Package faults breaks the dependencies of a running Turnstone and checks every response against a table.
//
// matrix_test.go puts a proxy (toxiproxy) on each of four links: from the service to Postgres, to Redis and to the
// model, and from clients to the service. Each proxy injects eight faults (link_test.go). During each fault some
// clients read, some write, and a turn is live. A cell of the table states which statuses are allowed and how long a
// response may take. Each write is stored completely or not at all, and repeating it with the same Idempotency-Key has
// one effect; turns end complete, with the same bytes for every reader; /health stays 200 and /ready reports the failed
// dependency.
//
// postgres_test.go and disk_test.go inject faults that only a database has: restarts, deadlocks, locks that are not
// granted, no free connections, statements that take too long, a frozen server, a full disk.
//
// `go test -v` prints how long refusals took. The package contains only tests.
package faults
