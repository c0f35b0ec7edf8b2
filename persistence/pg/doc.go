// Package pg connects the stores to Postgres: pools and their roles, transactions, statements that several requests
// share, the schema and its migrations, and the one table that maps a SQLSTATE to an error.
//
// Every statement runs for one account (Rows, Row, Exec, Send, InTx), or, for work that spans accounts, in the pool of
// the engine. If the reply to a COMMIT is lost, InTx determines whether the transaction was committed. The package uses
// no other table of the product than these functions need.
package pg
