package accounts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
)

// collectOne returns a batch callback that reads exactly one row into *to. It fails with pgx.ErrNoRows or
// pgx.ErrTooManyRows if there is not exactly one row.
func collectOne[T any](to **T) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*to, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[T])
		return err
	}
}

// lockAll runs statements that lock a row. The error is pgx.ErrNoRows if one of them finds none.
func lockAll(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs, statements ...string) error {
	for _, sql := range statements {
		tag, err := tx.Exec(ctx, sql, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return pgx.ErrNoRows
		}
	}
	return nil
}
