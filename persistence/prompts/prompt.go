package prompts

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/accounts"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

// Store stores prompts. Its methods may be called from any goroutine.
type Store struct{ db *pg.DB }

// New returns a store.
func New(db *pg.DB) *Store { return &Store{db} }

const (
	columns = `p.prompt_id, p.project_id, p.name, p.description, p.text, p.version, p.created_at, p.updated_at`
	// visible leaves out the prompts of deleted projects.
	visible = `(p.project_id is null or exists (
		select from projects r where r.account_id = p.account_id and r.project_id = p.project_id and r.deleted_at is null))`

	getSQL  = `select ` + columns + ` from prompts p where p.account_id = @account and p.prompt_id = @prompt and ` + visible
	ownsSQL = `select true from prompts p where p.account_id = @account and p.prompt_id = @prompt and ` + visible
)

// Get reads a prompt.
func (s *Store) Get(ctx context.Context, account protocol.AccountID, id protocol.PromptID) (*protocol.Prompt, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Prompt], getSQL, pgx.NamedArgs{"account": account, "prompt": id})
}

// OwnsPrompt returns protocol.CodeNotFound unless the account has the prompt. It is called before a body is read.
func (s *Store) OwnsPrompt(ctx context.Context, account protocol.AccountID, id protocol.PromptID) error {
	_, err := pg.Row(ctx, s.db, account, pgx.RowTo[bool], ownsSQL, pgx.NamedArgs{"account": account, "prompt": id})
	return err
}

const (
	countSQL = `select count(*) from prompts where account_id = @account`
	// namedSQL finds at most one prompt: a name is unique in its project, or among the prompts without one.
	namedSQL = `
	select ` + columns + ` from prompts p
	where p.account_id = @account and p.project_id is not distinct from @project and p.name_key = lower(@name) and p.prompt_id <> @prompt`
	insertSQL = `
	insert into prompts as p (account_id, prompt_id, project_id, name, description, text)
	values (@account, @prompt, @project, @name, @description, @text)
	returning ` + columns
)

// Create stores a new prompt, of which the identifier, the version and the times are set here.
func (s *Store) Create(ctx context.Context, account protocol.AccountID, prompt *protocol.Prompt) (made *protocol.Prompt, err error) {
	args := pgx.NamedArgs{
		"account": account, "prompt": protocol.NewPromptID(), "project": prompt.ProjectID,
		"name": prompt.Name, "description": prompt.Description, "text": prompt.Text,
	}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if err := lockAccount(ctx, tx, account); err != nil {
			return err
		}
		if err := lockProject(ctx, tx, account, prompt.ProjectID); err != nil {
			return err
		}
		if err := checkName(ctx, tx, args); err != nil {
			return err
		}
		var count int
		if err := tx.QueryRow(ctx, countSQL, args).Scan(&count); err != nil {
			return fmt.Errorf("counting prompts: %w", err)
		}
		if count >= protocol.MaxPrompts {
			return protocol.Errorf(protocol.CodeTooManyPrompts, "The account has %d prompts. Delete one to create another.", count)
		}
		if made, err = one(ctx, tx, insertSQL, args); err != nil {
			return err
		}
		return idempotency.StoreResponseIn(ctx, tx, made)
	})
	return made, err
}

func lockAccount(ctx context.Context, tx *pg.Tx, account protocol.AccountID) error {
	if _, err := tx.Exec(ctx, accounts.LockAccountSQL, account); err != nil {
		return fmt.Errorf("locking an account: %w", err)
	}
	return nil
}

// lockProject locks the project of a prompt that is created, changed or deleted; nil: it has none. The project has to be active.
func lockProject(ctx context.Context, tx *pg.Tx, account protocol.AccountID, project *protocol.ProjectID) error {
	if project == nil {
		return nil
	}
	_, err := projects.LockActive(ctx, tx, account, *project)
	return err
}

// checkName returns a conflict with another prompt that has the name.
func checkName(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) error {
	other, err := one(ctx, tx, namedSQL, args)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return protocol.Conflict(protocol.CodeNameTaken, other, "Another prompt has this name.")
}

func one(ctx context.Context, tx *pg.Tx, sql string, args pgx.NamedArgs) (*protocol.Prompt, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("reading a prompt: %w", err)
	}
	prompt, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Prompt])
	if err != nil {
		return nil, fmt.Errorf("reading a prompt: %w", err)
	}
	return prompt, nil
}
