package imports

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/imports/source"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Limits of what one transaction writes.
const (
	batchMessages = 500
	batchBytes    = 1 << 20
	batchSegments = 5000
	// batchFollowUps is for items of up to 16,000 characters.
	batchFollowUps = 50
)

// conversation imports one conversation, unless an earlier run has handled it.
func (r *run) conversation(ctx context.Context, c *source.Conversation) error {
	if r.seen++; r.seen <= r.handled {
		return nil
	}
	if err := r.db.CheckSpace(); err != nil {
		return err
	}
	tree := c.Arrange()
	w := &writing{run: r, c: c, tree: tree, id: protocol.NewConversationID()}
	if own, is := w.own(); is {
		w.id = own.Renew()
	} else if len(tree.Messages) == 0 && c.Draft == "" {
		return w.skip(ctx, protocol.ImportNoMessages, nil)
	}
	existing, err := w.existing(ctx)
	if err != nil {
		return err
	}
	if existing != nil {
		return w.grow(ctx, *existing)
	}
	for _, step := range []func(context.Context) error{w.link, w.findProject} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	w.title = w.findTitle()
	w.prepare()
	w.noteAll(&w.id)
	for more := true; more && err == nil; {
		more, err = w.write(ctx)
	}
	return err
}

// own returns the identifier of a conversation of this service; false: it is of another one.
func (w *writing) own() (id protocol.ConversationID, is bool) {
	return id, w.c.Kind == protocol.ImportFromTurnstone && id.UnmarshalText([]byte(w.c.ID)) == nil
}

// findTitle returns the title of the conversation. A conversation of another service that has none gets one from its first message.
func (w *writing) findTitle() string {
	if w.c.Title != "" || w.c.Kind == protocol.ImportFromTurnstone {
		return w.c.Title
	}
	for i := range w.tree.Messages {
		m := &w.tree.Messages[i]
		for k := range m.Parts {
			if m.Role != protocol.RoleUser || m.Parts[k].Type != protocol.PartText {
				continue
			}
			if title := conversations.ProvisionalTitle(m.Parts[k].Text); title != "" { // otherwise it starts with code
				return title
			}
		}
	}
	return ""
}

// existingSQL finds the conversation of an earlier import, or of the account itself for an export of its own. A deleted
// one does not count.
const existingSQL = `
	select f.conversation_id from (
		select conversation_id from import_sources where account_id = @account and source_hash = @hash
		union all select @own::uuid) s (id)
	cross join lateral (
		select c.conversation_id from conversations c
		where c.account_id = @account and c.conversation_id = s.id and ` + conversations.Visible + ` limit 1) f
	limit 1`

func (w *writing) existing(ctx context.Context) (*protocol.ConversationID, error) {
	own, _ := w.own() // zero: it is no identifier of ours
	found, err := pg.Rows(ctx, w.db, w.account, pgx.RowTo[protocol.ConversationID], existingSQL,
		pgx.NamedArgs{"account": w.account, "hash": w.c.Key(), "own": own})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// write writes the next part of the conversation in a transaction, and reports whether more follows.
func (w *writing) write(ctx context.Context) (more bool, err error) {
	start := w.at
	err = w.db.InTx(ctx, w.account, func(ctx context.Context, tx *pg.Tx) error {
		w.at = start // in case of another attempt
		var err error
		if more, err = w.writeSome(ctx, tx); err != nil {
			return err
		}
		if more {
			return w.count(ctx, tx, pgx.NamedArgs{"unfinished": w.id})
		}
		return w.finish(ctx, tx)
	})
	return more, err
}

// insertSQL creates the conversation. A tombstone hides one that other transactions complete.
const insertSQL = `
	insert into conversations (account_id, conversation_id, title, title_source, profile, metadata, project_id, pinned_at, archived_at,
		draft, draft_attachments, draft_version, draft_updated_at,
		active_branch_id, message_count, read_message_id, read_at, version, created_at, updated_at, last_activity_at, deleted_at)
	values (@account, @conversation, @title, @title_source, @profile, @metadata, @project, @pinned, @archived,
		@draft, @draft_files, @draft_version, @draft_updated,
		@branch, @count, @read, now(), @version, @created, @updated, @activity, case when @hidden then now() end)`

// Segments of later branches name earlier ones, so the branches are in the order of the tree.
// writeSome writes the conversation, its branches, their segments, the messages and the follow-ups, as far as the limits of a
// transaction allow.
func (w *writing) writeSome(ctx context.Context, tx *pg.Tx) (more bool, err error) {
	if !w.at.begun {
		if err := w.begin(ctx, tx); err != nil {
			return false, err
		}
	}
	for _, step := range []func(context.Context, *pg.Tx) (bool, error){w.writeBranches, w.writeMessages, w.writeFollowUps} {
		if more, err = step(ctx, tx); err != nil || more {
			return more, err
		}
	}
	return false, nil
}

func (w *writing) begin(ctx context.Context, tx *pg.Tx) error {
	metadata := w.c.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	var read *protocol.MessageID
	for i := range w.messages {
		if !w.c.Unread && (read == nil || bytes.Compare(w.messages[i][:], read[:]) > 0) {
			read = &w.messages[i]
		}
	}
	if err := w.join(ctx, tx); err != nil {
		return err
	}
	var drafted *time.Time
	version := w.c.DraftVersion
	if w.c.Draft != "" || version > 0 {
		drafted, version = nullTime(w.c.DraftUpdatedAt), max(1, version)
	}
	_, err := tx.Exec(ctx, insertSQL, pgx.NamedArgs{
		"account": w.account, "conversation": w.id, "title": w.title, "title_source": w.c.TitleSource, "profile": w.c.Profile,
		"metadata": metadata, "project": w.project, "pinned": nullTime(w.c.PinnedAt), "archived": nullTime(w.c.ArchivedAt),
		"draft": w.c.Draft, "draft_files": uuids(w.c.DraftAttachments), "draft_version": version, "draft_updated": drafted,
		"branch": w.branches[w.tree.Active], "count": len(w.messages), "read": read, "version": w.c.Version,
		"created": w.c.CreatedAt, "updated": w.c.ChangedAt, "activity": w.activity(), "hidden": !w.whole,
	})
	if err != nil {
		return fmt.Errorf("creating an imported conversation: %w", err)
	}
	w.at.begun = true
	return nil
}

// activity is the time of the last activity, which orders the list of conversations.
func (w *writing) activity() time.Time {
	at := w.c.UpdatedAt
	for i := range w.tree.Messages {
		if created := w.tree.Messages[i].CreatedAt; w.c.Kind != protocol.ImportFromTurnstone && created.After(at) {
			at = created
		}
	}
	return at
}

func (w *writing) writeFollowUps(ctx context.Context, tx *pg.Tx) (more bool, err error) {
	var items []protocol.FollowUp
	for ; w.at.followUp < len(w.c.FollowUps) && len(items) < batchFollowUps; w.at.followUp++ {
		from := &w.c.FollowUps[w.at.followUp]
		id := protocol.NewFollowUpID()
		var source protocol.FollowUpID
		if source.UnmarshalText([]byte(from.ID)) == nil {
			id = source.Renew()
		}
		items = append(items, protocol.FollowUp{
			FollowUpID: id, State: from.State, Content: from.Content, Attachments: from.Attachments, Profile: from.Profile, Tools: from.Tools,
			Position: from.Position, Version: from.Version, CreatedAt: from.CreatedAt,
		})
	}
	if len(items) > 0 {
		if err := queues.Import(ctx, tx, w.account, w.id, items); err != nil {
			return false, fmt.Errorf("creating imported follow-ups: %w", err)
		}
	}
	return w.at.followUp < len(w.c.FollowUps), nil
}

const (
	showSQL   = `update conversations set deleted_at = null where account_id = @account and conversation_id = @conversation`
	sourceSQL = `
	insert into import_sources (account_id, source_hash, conversation_id) values (@account, @hash, @conversation)
	on conflict (account_id, source_hash) do update set conversation_id = excluded.conversation_id`
)

// finish makes the conversation visible and counts it, in the transaction that writes the last of it.
func (w *writing) finish(ctx context.Context, tx *pg.Tx) error {
	report, err := pg.JSONText(&w.report)
	if err != nil {
		return err
	}
	args := pgx.NamedArgs{"account": w.account, "conversation": w.id, "hash": w.c.Key()}
	batch := &pgx.Batch{}
	if !w.whole {
		batch.Queue(showSQL, args)
	}
	batch.Queue(sourceSQL, args)
	if err := tx.Run(ctx, batch); err != nil {
		return fmt.Errorf("finishing an imported conversation: %w", err)
	}
	return w.count(ctx, tx, pgx.NamedArgs{"handled": 1, "imported": 1, "messages": len(w.messages), "report": report})
}
