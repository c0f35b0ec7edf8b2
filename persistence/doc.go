// Package persistence stores the data of Turnstone: all durable state in Postgres, rate limits in Redis, large byte
// contents in an object store. Each noun has a package below it, and this package opens them all. Only it and the packages
// below it use pgx, go-redis or S3. Their background work ends with the calls that started
// it, except the journal's writers, the goroutines that share round trips (pg.Batcher) and the jobs that cmd starts.
//
// A rule that depends on stored rows is decided here, in the transaction that has locked them, by a function that runs no
// statement: for example, decide in turns/decide.go decides what the start of a turn does. Rules that need no row are in package
// protocol.
//
// # Access by account
//
// Every row that belongs to an account has account_id first in its key. A request passes its account to every call of
// package pg (Rows, Row, Exec, Send, InTx). The account becomes a setting of that one transaction, and row-level
// security restricts every statement to it, whatever the statement's text says. Work that spans accounts (the journal,
// the leases of nodes, sweeps) uses a separate small pool under another role. See migrations/002_roles.sql.
//
// # Errors
//
// An error with a defined meaning is a *protocol.Error. protocol.CodeUnavailable means that nothing was done or, with
// the detail protocol.OutcomeUnknown, that the outcome could not be determined within two seconds; it never means that
// something was done. If the reply to a COMMIT is lost, InTx determines the outcome, so its callers see success or
// failure.
//
// # Adding a statement
//
// The SQL is a constant above the one function that runs it, and it names account_id. Use Rows or Row for a read, Exec
// for a single writing statement that is harmless to repeat, and InTx for everything else.
package persistence
