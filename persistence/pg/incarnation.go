package pg

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A connection does not survive a crash of the server, so it belongs to one incarnation of the server: the time from
// one crash to the next. Every connection of the request pool reads its incarnation when it is opened. It is needed if
// the reply to a COMMIT is lost and pg_xact_status has to report the outcome: if the server crashes before anything of
// a transaction has reached its write-ahead log, it assigns the same transaction identifier again, and pg_xact_status
// then reports the status of another transaction. So "committed" is conclusive only within one incarnation.
const (
	insertIncarnationSQL = `insert into server_life (life) select gen_random_uuid() where not exists (select from server_life)`
	selectIncarnationSQL = `select life from server_life limit 1`
	incarnationKey       = "turnstone.life" // key in the custom data of a connection
)

// readIncarnation is the AfterConnect of the request pool. It stores the incarnation of the server with the connection.
func readIncarnation(ctx context.Context, conn *pgx.Conn) error {
	var incarnation uuid.UUID
	batch := &pgx.Batch{}
	batch.Queue(insertIncarnationSQL)
	batch.Queue(selectIncarnationSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&incarnation) })
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("reading the incarnation of the server: %w", err)
	}
	conn.PgConn().CustomData()[incarnationKey] = incarnation
	return nil
}

// incarnationOf returns the incarnation that a connection belongs to. For a connection that did not read it, the result
// is zero, which is no incarnation.
func incarnationOf(conn *pgx.Conn) uuid.UUID {
	incarnation, _ := conn.PgConn().CustomData()[incarnationKey].(uuid.UUID)
	return incarnation
}
