package imports

import (
	"bytes"
	"context"
	"fmt"
	"maps"
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

// writing writes one conversation.
type writing struct {
	*run
	c    *source.Conversation
	tree *source.Tree
	id   protocol.ConversationID

	title    string
	branches []protocol.BranchID
	messages []protocol.MessageID
	parts    []string // JSON
	project  *protocol.ProjectID
	whole    bool // one transaction writes everything

	at position
}

// position is what the committed transactions have written.
type position struct {
	begun                     bool
	branch, message, followUp int // the next ones
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

// countSQL counts a conversation as handled. It changes nothing if the import was cancelled or another run has started.
const countSQL = `
	update imports
	set handled = handled + @handled, imported = imported + @imported, updated = updated + @updated, skipped = skipped + @skipped, messages = messages + @messages,
		report = coalesce(@report, report), source = coalesce(source, @source), unfinished_id = @unfinished, active_at = now(),
		read_bytes = greatest(read_bytes, @read)
	where account_id = @account and import_id = @import and run = @run and state = 'running'`

func (w *writing) count(ctx context.Context, tx *pg.Tx, args pgx.NamedArgs) error {
	all := pgx.NamedArgs{
		"handled": 0, "imported": 0, "updated": 0, "skipped": 0, "messages": 0, "report": nil, "unfinished": nil,
		"source": w.c.Kind, "read": w.spool.progress(),
	}
	maps.Copy(all, w.args)
	maps.Copy(all, args)
	tag, err := tx.Exec(ctx, countSQL, all)
	if err == nil && tag.RowsAffected() == 0 {
		return errEnded
	}
	return err
}

// skip counts a conversation that is not imported.
func (w *writing) skip(ctx context.Context, reason protocol.ImportReason, existing *protocol.ConversationID) error {
	w.noteAll(nil)
	w.note(protocol.ImportEntry{Reason: reason, Title: w.c.Title, ConversationID: existing, Count: 1})
	report, err := pg.JSONText(&w.report)
	if err != nil {
		return err
	}
	return w.db.InTx(ctx, w.account, func(ctx context.Context, tx *pg.Tx) error {
		return w.count(ctx, tx, pgx.NamedArgs{"handled": 1, "skipped": 1, "report": report})
	})
}

// noteAll moves the notes of the conversation to the report.
func (w *writing) noteAll(id *protocol.ConversationID) {
	for _, reason := range protocol.ImportReasons {
		n := w.c.Notes[reason]
		switch {
		case n == 0:
		case reason == protocol.ImportHiddenSkipped: // most conversations of some services have them
			w.noteOnce(reason, n)
		default:
			w.note(protocol.ImportEntry{Reason: reason, Title: w.c.Title, ConversationID: id, Count: n})
		}
	}
}

// prepare creates the identifiers. Those of messages are in the order of the tree (parents before children) or, for an export of
// this service, in that of the identifiers there.
func (w *writing) prepare() {
	w.branches = make([]protocol.BranchID, len(w.tree.Branches))
	for i := range w.branches {
		w.branches[i] = protocol.NewBranchID()
		var id protocol.BranchID
		if from := w.tree.Branches[i].Source; from != nil && id.UnmarshalText([]byte(from.ID)) == nil {
			w.branches[i] = id.Renew()
		}
	}
	w.messages = make([]protocol.MessageID, len(w.tree.Messages))
	conversation := w.c.Key()
	w.parts = make([]string, len(w.tree.Messages))
	size := 0
	for i := range w.messages {
		w.messages[i] = messageIn(conversation, w.tree.Messages[i].ID)
		var id protocol.MessageID
		if w.c.Kind == protocol.ImportFromTurnstone && id.UnmarshalText([]byte(w.tree.Messages[i].ID)) == nil {
			w.messages[i] = id.Renew()
		}
		parts := w.tree.Messages[i].Parts
		if parts == nil {
			parts = []protocol.Part{}
		}
		text, err := pg.JSONText(parts)
		if err != nil {
			text = []byte("[]") // a part that cannot be encoded was not decoded either
		}
		w.parts[i], w.tree.Messages[i].Parts = string(text), nil
		size += len(text)
	}
	w.whole = len(w.messages) <= batchMessages && size <= batchBytes && len(w.branches) <= batchMessages && len(w.c.FollowUps) <= batchFollowUps
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
const (
	insertBranchesSQL = `
	insert into branches (account_id, branch_id, conversation_id, name, base_message_id, head_message_id, head_depth, version, created_at)
	select @account, b.id, @conversation, b.name, b.base, b.head, b.depth, b.version, b.created
	from unnest(@ids::uuid[], @names::text[], @bases::uuid[], @heads::uuid[], @depths::int[], @versions::bigint[], @created::timestamptz[])
		as b (id, name, base, head, depth, version, created)`
	insertSegmentsSQL = `
	insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
	select @account, s.branch, s.source, s.first, s.last
	from unnest(@branches::uuid[], @sources::uuid[], @firsts::int[], @lasts::int[]) as s (branch, source, first, last)`
	insertMessagesSQL = `
	insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, sibling_index, role, status,
		parts, attachments, profile, model_id, routing, usage, feedback, created_at)
	select @account, m.id, @conversation, m.branch, m.depth, m.parent, m.sibling, m.role, m.status,
		m.parts::json, m.files::uuid[], m.profile, m.model, m.routing::jsonb, m.usage::jsonb, m.feedback::jsonb, m.created
	from unnest(@ids::uuid[], @branches::uuid[], @depths::int[], @parents::uuid[], @siblings::int[], @roles::text[], @statuses::text[],
		@parts::text[], @files::text[], @profiles::text[], @models::text[], @routings::text[], @usages::text[], @feedbacks::text[], @created::timestamptz[])
		as m (id, branch, depth, parent, sibling, role, status, parts, files, profile, model, routing, usage, feedback, created)`
)

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

func (w *writing) messageID(i int) *protocol.MessageID {
	if i < 0 {
		return nil
	}
	return &w.messages[i]
}

func (w *writing) writeBranches(ctx context.Context, tx *pg.Tx) (more bool, err error) {
	var b struct {
		ids, segmentOf, sources []protocol.BranchID
		names                   []string
		bases, heads            []*protocol.MessageID
		depths, firsts, lasts   []int
		versions                []int64
		created                 []time.Time
	}
	for ; w.at.branch < len(w.branches) && len(b.ids) < batchMessages && len(b.firsts) < batchSegments; w.at.branch++ {
		from, id := &w.tree.Branches[w.at.branch], w.branches[w.at.branch]
		named := source.OwnBranch{Version: 1, CreatedAt: w.c.CreatedAt}
		if from.Source != nil {
			named = *from.Source
		}
		b.ids, b.names = append(b.ids, id), append(b.names, named.Name)
		b.versions, b.created = append(b.versions, named.Version), append(b.created, named.CreatedAt)
		b.bases, b.heads, b.depths = append(b.bases, w.messageID(from.Base)), append(b.heads, w.messageID(from.Head)), append(b.depths, from.HeadDepth)
		for _, s := range from.Segments {
			last := s.To
			if last == 0 {
				const open = 1<<31 - 1
				last = open
			}
			b.segmentOf, b.sources = append(b.segmentOf, id), append(b.sources, w.branches[s.Source])
			b.firsts, b.lasts = append(b.firsts, s.From), append(b.lasts, last)
		}
	}
	if len(b.ids) == 0 {
		return false, nil
	}
	batch := &pgx.Batch{}
	batch.Queue(insertBranchesSQL, pgx.NamedArgs{
		"account": w.account, "conversation": w.id, "ids": b.ids, "names": b.names, "bases": b.bases, "heads": b.heads,
		"depths": b.depths, "versions": b.versions, "created": b.created,
	})
	batch.Queue(insertSegmentsSQL, pgx.NamedArgs{
		"account": w.account, "branches": b.segmentOf, "sources": b.sources, "firsts": b.firsts, "lasts": b.lasts,
	})
	if err := tx.Run(ctx, batch); err != nil {
		return false, fmt.Errorf("creating imported branches: %w", err)
	}
	return !w.whole, nil
}

func (w *writing) writeMessages(ctx context.Context, tx *pg.Tx) (more bool, err error) {
	var m struct {
		ids                                []protocol.MessageID
		branches                           []protocol.BranchID
		parents                            []*protocol.MessageID
		depths, siblings                   []int
		roles, statuses, parts             []string
		files                              []string
		profiles, models, routings, usages []*string
		feedbacks                          []*string
		created                            []time.Time
	}
	size := 0
	for ; w.at.message < len(w.messages) && len(m.ids) < batchMessages && size < batchBytes; w.at.message++ {
		from := &w.tree.Messages[w.at.message]
		m.ids, m.branches = append(m.ids, w.messages[w.at.message]), append(m.branches, w.branches[from.Branch])
		m.parents, m.depths, m.siblings = append(m.parents, w.messageID(from.ParentIndex)), append(m.depths, from.Depth), append(m.siblings, from.SiblingIndex)
		m.roles, m.statuses = append(m.roles, from.Role), append(m.statuses, string(from.Status))
		m.parts, size = append(m.parts, w.parts[w.at.message]), size+len(w.parts[w.at.message])
		m.profiles, m.models = append(m.profiles, (*string)(from.Profile)), append(m.models, from.ModelID)
		m.routings, m.usages = append(m.routings, jsonOf(from.Routing)), append(m.usages, jsonOf(from.Usage))
		m.files, m.feedbacks = append(m.files, pg.ArrayText(from.Attachments)), append(m.feedbacks, jsonOf(from.Feedback))
		m.created = append(m.created, from.CreatedAt)
	}
	if len(m.ids) > 0 {
		_, err = tx.Exec(ctx, insertMessagesSQL, pgx.NamedArgs{
			"account": w.account, "conversation": w.id, "ids": m.ids, "branches": m.branches, "depths": m.depths, "parents": m.parents,
			"siblings": m.siblings, "roles": m.roles, "statuses": m.statuses, "parts": m.parts, "files": m.files, "profiles": m.profiles, "models": m.models,
			"routings": m.routings, "usages": m.usages, "feedbacks": m.feedbacks, "created": m.created,
		})
		if err != nil {
			return false, fmt.Errorf("creating imported messages: %w", err)
		}
	}
	return w.at.message < len(w.messages), nil
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

// jsonOf encodes a value; nil if there is none.
func jsonOf[T any](v *T) *string {
	if v == nil {
		return nil
	}
	text, err := pg.JSONText(v)
	if err != nil {
		return nil
	}
	encoded := string(text)
	return &encoded
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
