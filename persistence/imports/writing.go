package imports

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/imports/source"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// messageIn returns an identifier for a message of another service in an imported conversation. Its second half is derived, so that a
// later import finds the message.
func messageIn(conversation []byte, inExport string) protocol.MessageID {
	sum := sha256.Sum256(append(conversation[:len(conversation):len(conversation)], inExport...))
	id := protocol.NewMessageID()
	const half = 8
	copy(id[half:], sum[:half])
	id[half] = id[half]&0x3f | 0x80 // as a UUID
	return id
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

func (w *writing) messageID(i int) *protocol.MessageID {
	if i < 0 {
		return nil
	}
	return &w.messages[i]
}

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
