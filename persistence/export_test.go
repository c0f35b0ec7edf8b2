package persistence

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// AppendAlone stores one append with a statement of its own: what the benchmark holds the journal against.
func (db *DB) AppendAlone(ctx context.Context, a *protocol.TurnAppend) error {
	conn, err := acquire(ctx, db.engine)
	if err != nil {
		return err
	}
	defer conn.Release()
	stored, err := appendBatch(ctx, conn.Conn(), []*journalEntry{{TurnAppend: a}})
	if err == nil && !stored[0] {
		return protocol.ErrFenced
	}
	return err
}

// Quiet is what the pools ask before they hand a connection out.
func Quiet(ctx context.Context, conn *pgx.Conn) (bool, error) { return quiet(ctx, conn) }
