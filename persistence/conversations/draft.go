package conversations

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Drafts stores the drafts of conversations. Its methods may be called from any goroutine.
type Drafts struct{ db *pg.DB }

// NewDrafts returns a store of drafts.
func NewDrafts(db *pg.DB) *Drafts { return &Drafts{db} }

const updateDraftSQL = `
	update conversations c
	set draft = @content, draft_attachments = @attachments, draft_version = draft_version + 1, draft_updated_at = now()
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible + `
	  and (@version::bigint is null or draft_version = @version)
	returning draft as content, draft_attachments as attachments, draft_version as version, draft_updated_at as updated_at`

const selectDraftSQL = `
	select draft as content, draft_attachments as attachments, draft_version as version, draft_updated_at as updated_at
	from conversations c
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible

// Draft reads the draft of a conversation. Without one, it is empty.
func (s *Drafts) Draft(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.Draft, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Draft], selectDraftSQL, pgx.NamedArgs{"account": account, "conversation": id})
}

// PutDraft replaces the draft. Without a version, the last writer wins. A stale version is refused with
// protocol.CodeStaleVersion and the current draft, and a file that the account does not have with the conflict of CheckFiles. The order of arrival decides which write wins, never a clock.
func (s *Drafts) PutDraft(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	content string, attachments []protocol.FileID, version *int64,
) (draft *protocol.Draft, err error) {
	if attachments == nil {
		attachments = []protocol.FileID{}
	}
	args := pgx.NamedArgs{
		"account": account, "conversation": id, "content": content, "attachments": attachments, "version": version,
	}
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if err := attachToDraft(ctx, tx, account, id, args, attachments); err != nil {
			return err
		}
		draft, err = oneDraft(ctx, tx, updateDraftSQL, args)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		current, err := oneDraft(ctx, tx, selectDraftSQL, args)
		if err != nil {
			return err
		}
		return protocol.Conflict(protocol.CodeStaleVersion, current, "The draft has changed since that version.")
	})
	return draft, err
}

// attachToDraft returns the conflict of CheckFiles unless the account has the files that a draft gets. Those that the stored
// draft has already may have been deleted since: they are checked when the message is sent. A stale version comes first. It
// locks the conversation before the files, as its end does.
func attachToDraft(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ConversationID, args pgx.NamedArgs, attachments []protocol.FileID) error {
	if len(attachments) == 0 {
		return nil
	}
	stored, err := oneDraft(ctx, tx, selectDraftSQL+` for update of c`, args)
	if err != nil {
		return err
	}
	if version, is := args["version"].(*int64); is && version != nil && *version != stored.Version {
		return nil
	}
	return AttachFiles(ctx, tx, account, id, slices.DeleteFunc(slices.Clone(attachments), func(id protocol.FileID) bool {
		return slices.Contains(stored.Attachments, id)
	}))
}

func oneDraft(ctx context.Context, tx *pg.Tx, sql string, args pgx.NamedArgs) (*protocol.Draft, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("writing a draft: %w", err)
	}
	draft, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Draft])
	if err != nil {
		return nil, fmt.Errorf("writing a draft: %w", err)
	}
	return draft, nil
}
