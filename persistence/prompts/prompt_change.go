package prompts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Change is a request to change a prompt. What is nil stays.
type Change struct {
	PromptID    protocol.PromptID
	Version     *int64 // that the change is based on; nil: the client sent none
	Name        *string
	Description *string
	Text        *string
}

// changed returns the prompt with the change.
func (c *Change) changed(prompt protocol.Prompt) protocol.Prompt {
	for from, to := range map[*string]*string{c.Name: &prompt.Name, c.Description: &prompt.Description, c.Text: &prompt.Text} {
		if from != nil {
			*to = *from
		}
	}
	return prompt
}

const updateSQL = `
	update prompts p set name = @name, description = @description, text = @text, version = version + 1, updated_at = now()
	where p.account_id = @account and p.prompt_id = @prompt
	returning ` + columns

// Change changes a prompt. A change that changes nothing keeps the version.
func (s *Store) Change(ctx context.Context, account protocol.AccountID, change *Change) (stored *protocol.Prompt, err error) {
	args := pgx.NamedArgs{"account": account, "prompt": change.PromptID}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if stored, err = lock(ctx, tx, account, args); err != nil {
			return err
		}
		if err := protocol.CheckVersion(change.Version, stored.Version, stored); err != nil {
			return err
		}
		next := change.changed(*stored)
		if next == *stored {
			return nil
		}
		if err := lockProject(ctx, tx, account, stored.ProjectID); err != nil {
			return err
		}
		args["project"], args["name"], args["description"], args["text"] = next.ProjectID, next.Name, next.Description, next.Text
		if err := checkName(ctx, tx, args); err != nil {
			return err
		}
		stored, err = one(ctx, tx, updateSQL, args)
		return err
	})
	return stored, err
}

// lock reads a prompt that does not change until the end of the transaction.
func lock(ctx context.Context, tx *pg.Tx, account protocol.AccountID, args pgx.NamedArgs) (*protocol.Prompt, error) {
	if err := lockAccount(ctx, tx, account); err != nil {
		return nil, err
	}
	return one(ctx, tx, getSQL, args)
}

const deleteSQL = `delete from prompts where account_id = @account and prompt_id = @prompt`

// Delete deletes a prompt. A version of nil is any.
func (s *Store) Delete(ctx context.Context, account protocol.AccountID, id protocol.PromptID, version *int64) error {
	args := pgx.NamedArgs{"account": account, "prompt": id}
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		stored, err := lock(ctx, tx, account, args)
		if err != nil {
			return err
		}
		if version != nil {
			if err := protocol.CheckVersion(version, stored.Version, stored); err != nil {
				return err
			}
		}
		if err := lockProject(ctx, tx, account, stored.ProjectID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deleteSQL, args); err != nil {
			return fmt.Errorf("deleting a prompt: %w", err)
		}
		return nil
	})
}
