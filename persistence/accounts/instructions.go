package accounts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	selectInstructionsSQL = `
	select content, version, created_at as updated_at from account_instructions where account_id = $1
	order by version desc
	limit 1`
	insertInstructionsSQL = `
	insert into account_instructions (account_id, version, content) values ($1, $2, $3)
	returning content, version, created_at as updated_at`
)

// InstructionsVersionSQL selects the current version of the instructions of the account in the expression; 0: none.
func InstructionsVersionSQL(account string) string {
	return `coalesce((select max(version) from account_instructions where account_id = ` + account + `), 0)`
}

// Instructions returns the current instructions of an account.
func (s *Store) Instructions(ctx context.Context, account protocol.AccountID) (*protocol.Instructions, error) {
	found, err := pg.Rows(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Instructions], selectInstructionsSQL, account)
	return currentInstructions(found, err)
}

func currentInstructions(found []*protocol.Instructions, err error) (*protocol.Instructions, error) {
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the instructions of an account: %w", err)
	case len(found) == 0:
		return &protocol.Instructions{}, nil
	}
	return found[0], nil
}

// PutInstructions stores a new version of the instructions of an account. version is the current one; without it, the error is
// protocol.CodeVersionRequired, and if it is stale, protocol.CodeStaleVersion. Earlier versions are kept.
func (s *Store) PutInstructions(ctx context.Context, account protocol.AccountID, version *int64, content string) (stored *protocol.Instructions, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, LockAccountSQL, account); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectInstructionsSQL, account)
		if err != nil {
			return err
		}
		if stored, err = currentInstructions(pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[protocol.Instructions])); err != nil {
			return err
		}
		if err := protocol.CheckVersion(version, stored.Version, stored); err != nil || stored.Content == content {
			return err
		}
		if rows, err = tx.Query(ctx, insertInstructionsSQL, account, stored.Version+1, content); err != nil {
			return err
		}
		stored, err = pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Instructions])
		return err
	})
	return stored, err
}
