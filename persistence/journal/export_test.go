package journal

import (
	"context"

	"turnstone/persistence/pg"
	"turnstone/protocol/turnlog"
)

// AppendAlone stores one append with its own statement. The benchmark compares the journal with it.
func AppendAlone(ctx context.Context, db *pg.DB, a *turnlog.Append) error {
	conn, err := pg.Acquire(ctx, db.Engine)
	if err != nil {
		return err
	}
	defer conn.Release()
	stored, err := appendBatch(ctx, conn.Conn(), []*journalEntry{{Append: a}})
	if err == nil && !stored[0] {
		return turnlog.ErrFenced
	}
	return err
}

// AppendRecordsSQL stores many appends with their records.
const AppendRecordsSQL = appendRecordsSQL
