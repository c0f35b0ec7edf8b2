package journal

import (
	"context"
	"slices"

	"turnstone/persistence/pg"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

// AppendTogether stores appends of different turns with one statement. The benchmark compares the journal with one for each.
func AppendTogether(ctx context.Context, db *pg.DB, appends ...*turnlog.Append) error {
	conn, err := pg.Acquire(ctx, db.Engine)
	if err != nil {
		return err
	}
	defer conn.Release()
	entries := make([]*journalEntry, len(appends))
	for i, a := range appends {
		entries[i] = &journalEntry{Append: a}
	}
	stored, err := appendBatch(ctx, conn.Conn(), entries)
	if err == nil && slices.Contains(stored, false) {
		return ownership.ErrFenced
	}
	return err
}

// AppendRecordsSQL stores many appends with their records.
const AppendRecordsSQL = appendRecordsSQL
