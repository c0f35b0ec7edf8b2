// Package persistence keeps what Turnstone knows: the truth in Postgres, limits in Redis, bytes in an object store. It is
// the only package that speaks pgx, go-redis or S3. It holds no rule of the product that the schema or protocol does not
// name, and starts no work by itself beyond the journal's writers and the background jobs that cmd opens.
//
// # Who sees what
//
// Every owned row has its account first in its key. A request names its account with every call here (Rows, Row, Exec,
// Send, InTx); the account becomes a setting of that one transaction, and row-level security holds every statement to it,
// whatever the statement's text says. What spans accounts (the journal, the leases of nodes, sweeps) has a small pool of
// its own under another role. See migrations/002_roles.sql.
//
// # What an error means
//
// Errors that mean something are *protocol.Error. protocol.CodeUnavailable says that nothing was done, or, with the detail
// "outcome_unknown", that it could not be found out within two seconds; never that something was done. InTx finds out
// what became of a COMMIT whose answer was lost, so its callers see success or failure.
//
// # Adding a statement
//
// SQL stands in a constant above the one function that runs it and names account_id. A read is Rows or Row; a write of
// one statement whose repetition is harmless is Exec; everything else is InTx.
package persistence
