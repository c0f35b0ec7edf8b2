package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// EngineRows runs a statement as the engine, across accounts, and returns its rows as structs whose fields are the columns in
// their order. doing says in an error what failed.
func EngineRows[T any](ctx context.Context, db *DB, doing, sql string, args ...any) (rows []T, err error) {
	batch := &pgx.Batch{}
	batch.Queue(sql, args...).Query(func(found pgx.Rows) (err error) {
		rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[T])
		return err
	})
	if err := Classify(db.SendOn(ctx, db.Engine, NoAccount, batch)); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return rows, nil
}

// EngineRow is EngineRows for a statement with at most one row. The error is none if there is no row.
func EngineRow[T any](ctx context.Context, db *DB, none error, doing, sql string, args ...any) (row T, err error) {
	rows, err := EngineRows[T](ctx, db, doing, sql, args...)
	switch {
	case err != nil:
		return row, err
	case len(rows) == 0:
		return row, none
	}
	return rows[0], nil
}

// EngineExec runs a statement as the engine, across accounts, and returns the number of rows that it changed. doing says in an error what
// failed.
func EngineExec(ctx context.Context, db *DB, doing, sql string, args ...any) (changed int64, err error) {
	batch := &pgx.Batch{}
	batch.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		changed = tag.RowsAffected()
		return nil
	})
	if err := Classify(db.SendOn(ctx, db.Engine, NoAccount, batch)); err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	return changed, nil
}
