package projects

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	selectInstructionsSQL = `
	select coalesce(i.content, '') as content, p.instructions_version as version, i.created_at as updated_at
	from projects p
	left join lateral (
		select content, created_at from project_instructions
		where account_id = p.account_id and project_id = p.project_id and version = p.instructions_version limit 1) i on true
	where p.account_id = @account and p.project_id = @project`
	selectOlderInstructionsSQL = `
	select content, version, created_at as updated_at from project_instructions
	where account_id = @account and project_id = @project and version = @version`
)

// Instructions returns the instructions of a project: the current ones, or an older version. If there is no such
// version, the error is protocol.CodeNotFound.
func (s *Store) Instructions(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, version *int64) (*protocol.Instructions, error) {
	args := pgx.NamedArgs{"account": account, "project": project}
	sql := selectInstructionsSQL
	if version != nil {
		sql, args["version"] = selectOlderInstructionsSQL, *version
	}
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Instructions], sql, args)
}

const (
	insertInstructionsSQL = `
	insert into project_instructions (account_id, project_id, version, content) values (@account, @project, @next, @content)`
	countInstructionsSQL = `
	update projects set instructions_version = @next, updated_at = now() where account_id = @account and project_id = @project`
)

// PutInstructions stores a new version of the instructions of an active project. The version of change is that of the
// instructions. Earlier versions are kept.
func (s *Store) PutInstructions(ctx context.Context, account protocol.AccountID, change *Change, content string) (stored *protocol.Instructions, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		project, err := Lock(ctx, tx, account, change.ProjectID)
		if err != nil {
			return err
		}
		args := pgx.NamedArgs{"account": account, "project": change.ProjectID, "content": content}
		if stored, err = readInstructions(ctx, tx, args); err != nil {
			return err
		}
		same := stored.Content == content
		if err := change.checkVersion(stored.Version, stored); err != nil || same {
			return err
		}
		if err := refuse(project); err != nil {
			return err
		}
		next := stored.Version + 1
		args["next"] = next
		batch := &pgx.Batch{}
		batch.Queue(insertInstructionsSQL, args)
		batch.Queue(countInstructionsSQL, args)
		Work{Kind: protocol.WorkInstructionsChanged, SessionID: change.SessionID, Version: &next}.Queue(batch, account, change.ProjectID)
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("changing the instructions of a project: %w", err)
		}
		stored, err = readInstructions(ctx, tx, args)
		return err
	})
	return stored, err
}

func readInstructions(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) (*protocol.Instructions, error) {
	rows, err := tx.Query(ctx, selectInstructionsSQL, args)
	if err != nil {
		return nil, fmt.Errorf("reading the instructions of a project: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Instructions])
}
