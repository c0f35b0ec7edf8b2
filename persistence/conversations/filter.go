package conversations

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Span is a range of times, without its end. A zero time does not limit it.
type Span struct{ From, To time.Time }

// bounds returns the range for a statement, which needs no special case.
func (s Span) bounds() (from, to time.Time) {
	if s.To.IsZero() {
		s.To = pg.Latest
	}
	return s.From, s.To
}

func (s Span) isZero() bool { return s == Span{} }

// maxCandidates limits the conversations that a page of a narrowed list looks at.
const maxCandidates = 2000

// A list that is narrowed by metadata or times has the order of the whole list, and each page looks at a bounded number of
// conversations, however many the account has:
//
//	few have one of the properties    these are found by the index of the property
//	many have each of the properties  the next ones of the whole list are looked at, of which many have them
//
// In the second case, a page can have fewer conversations than its limit, or none, although others follow.

const (
	withEntrySQL = `
	select conversation_id from conversation_metadata
	where account_id = @account and entry = metadata_entry(@key, @value)
	limit @most`
	createdSQL = `
	select conversation_id from conversations
	where account_id = @account and deleted_at is null and not temporary and created_at >= @from and created_at < @to
	order by created_at
	limit @most`
	updatedSQL = `
	select conversation_id from conversations
	where account_id = @account and deleted_at is null and not temporary and updated_at >= @from and updated_at < @to
	order by updated_at
	limit @most`

	// candidateKeys selects the candidates that have all properties, in the place of conversationKeys.
	candidateKeys = `
		select c.conversation_id, c.pinned_at is not null as pinned, c.last_activity_at
		from unnest(@candidates::uuid[]) candidate (id)
		cross join lateral (
			select account_id, conversation_id, project_id, temporary, deleted_at, archived_at, pinned_at, last_activity_at, created_at, updated_at, metadata
			from conversations where account_id = @account and conversation_id = candidate.id limit 1) c
		where not c.temporary and ` + Visible + `
		  and (@archived::boolean is null or (c.archived_at is not null) = @archived)
		  and (@project::uuid is null or c.project_id = @project)
		  and ((c.pinned_at is not null), c.last_activity_at, c.conversation_id) < (@after_pinned, @after_activity, @after)
		  and ((c.pinned_at is not null), c.last_activity_at, c.conversation_id) >= (@until_pinned, @until_activity, @until)
		  and c.created_at >= @created_from and c.created_at < @created_to and c.updated_at >= @updated_from and c.updated_at < @updated_to
		  and c.metadata @> @metadata::jsonb`

	listCandidatesSQL = listConversationsHead + candidateKeys + listConversationsTail
)

// narrows reports whether the filter has properties that the indexes of the list do not have.
func (f *ConversationFilter) narrows() bool {
	return len(f.Metadata) > 0 || !f.Created.isZero() || !f.Updated.isZero()
}

// listNarrowed is ListConversations for a filter that narrows the list. args are those of the whole list.
func listNarrowed(ctx context.Context, db *pg.DB, account protocol.AccountID, filter *ConversationFilter, args pgx.NamedArgs) (
	page []protocol.Conversation, end *ConversationPosition, err error,
) {
	candidates, err := filter.rarest(ctx, db, account)
	if err == nil && candidates == nil {
		candidates, end, err = filter.walk(ctx, db, account, args)
	}
	if err != nil {
		return nil, nil, err
	}
	metadata, err := pg.JSONText(filter.Metadata)
	if err != nil {
		return nil, nil, err
	}
	if filter.Metadata == nil {
		metadata = []byte("{}")
	}
	args["candidates"], args["archived"], args["metadata"] = candidates, filter.Archived, metadata
	args["project"] = filter.ProjectID
	args["created_from"], args["created_to"] = filter.Created.bounds()
	args["updated_from"], args["updated_to"] = filter.Updated.bounds()
	page, err = pg.Rows(ctx, db, account, pgx.RowToStructByName[protocol.Conversation], listCandidatesSQL, args)
	return page, end, err
}

// rarest returns the conversations that have one of the properties, that which the fewest have; nil if more than
// maxCandidates have each of them.
func (f *ConversationFilter) rarest(ctx context.Context, db *pg.DB, account protocol.AccountID) (rarest []protocol.ConversationID, err error) {
	batch := &pgx.Batch{}
	queue := func(sql string, args pgx.NamedArgs) {
		args["account"], args["most"] = account, maxCandidates+1
		batch.Queue(sql, args).Query(func(rows pgx.Rows) error {
			ids, err := pgx.CollectRows(rows, pgx.RowTo[protocol.ConversationID])
			if err == nil && len(ids) <= maxCandidates && (rarest == nil || len(ids) < len(rarest)) {
				rarest = ids
			}
			return err
		})
	}
	for key, value := range f.Metadata {
		queue(withEntrySQL, pgx.NamedArgs{"key": key, "value": value})
	}
	for sql, span := range map[string]Span{createdSQL: f.Created, updatedSQL: f.Updated} {
		if !span.isZero() {
			from, to := span.bounds()
			queue(sql, pgx.NamedArgs{"from": from, "to": to})
		}
	}
	if err := db.Send(ctx, account, batch); err != nil {
		return nil, fmt.Errorf("finding conversations with a property: %w", err)
	}
	return rarest, nil
}

// walk returns the next conversations of the whole list, and the position after them; nil at the end of the list.
func (f *ConversationFilter) walk(ctx context.Context, db *pg.DB, account protocol.AccountID, args pgx.NamedArgs) (
	candidates []protocol.ConversationID, end *ConversationPosition, err error,
) {
	limit := args["limit"]
	defer func() { args["limit"] = limit }()
	args["limit"] = maxCandidates
	walked, err := pg.Rows(ctx, db, account, pgx.RowToStructByPos[walkedKey], f.statements().walk, args)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the keys of conversations: %w", err)
	}
	candidates = make([]protocol.ConversationID, len(walked))
	for i := range walked {
		candidates[i] = walked[i].ConversationID
	}
	if len(walked) == maxCandidates {
		last := &walked[maxCandidates-1]
		end = &ConversationPosition{Pinned: last.Pinned, LastActivityAt: last.LastActivityAt, ConversationID: last.ConversationID}
	}
	return candidates, end, nil
}

// walkedKey is an entry of the whole list.
type walkedKey struct {
	ConversationID protocol.ConversationID
	Pinned         bool
	LastActivityAt time.Time
}
