package conversations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/followups/queues"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

// TemporaryLifetime is the time from the last activity of a temporary conversation to its deletion.
const TemporaryLifetime = "24 hours"

// conversationColumns are the columns of protocol.Conversation, from conversations c and their active branch b. A
// conversation is unread if a finished assistant message is newer than the last message that was read; message
// identifiers sort by time. The bounds and the order of the sub-query match the index messages_conversation: with an
// equality instead, Postgres may read the messages of the whole account, newest first.
const conversationColumns = `
	c.conversation_id, coalesce(nullif(c.title, ''), c.provisional_title) as title, c.title_source, c.project_id, c.pinned_at, c.archived_at, c.active_branch_id,
	b.head_message_id, c.live_turn_id, c.profile, c.metadata, c.temporary,
	case when c.temporary then c.last_activity_at + '` + TemporaryLifetime + `'::interval end as expires_at,
	coalesce((select m.message_id from messages m
		where m.account_id = c.account_id and m.conversation_id >= c.conversation_id
		  and (m.conversation_id, m.message_id) <= (c.conversation_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
		  and m.role = 'assistant' and m.status <> 'streaming'
		order by m.conversation_id desc, m.message_id desc limit 1) > coalesce(c.read_message_id, '00000000-0000-0000-0000-000000000000'), false) as unread,
	c.message_count, octet_length(c.draft) > 0 or cardinality(c.draft_attachments) > 0 as has_draft, c.version, c.created_at, c.updated_at, c.last_activity_at`

// conversationFields are the columns of conversations that conversationColumns uses, for a subquery c.
const conversationFields = `account_id, conversation_id, title, provisional_title, title_source, project_id, pinned_at, archived_at, active_branch_id,
		live_turn_id, profile, metadata, temporary, last_activity_at, read_message_id, message_count, draft, draft_attachments, version, created_at, updated_at`

// Visible is the condition under which any read may return something of conversation c: neither the conversation nor its
// project was deleted. It costs one lookup by key for a conversation in a project, and nothing for the others. The
// sub-query is a scalar, so that Postgres never turns it into a join.
const Visible = `c.deleted_at is null and coalesce((
		select p.deleted_at is null from projects p where p.account_id = c.account_id and p.project_id = c.project_id), true)`

// conversationRows is the from clause for conversationColumns: the visible conversations of the account.
const conversationRows = `
	from conversations c
	join branches b on b.account_id = c.account_id and b.branch_id = c.active_branch_id
	where c.account_id = @account and ` + Visible

const selectConversation = `select ` + conversationColumns + conversationRows + ` and c.conversation_id = @conversation`

// readConversation reads one conversation. If the account has no such conversation, or deleted it, the error is
// pgx.ErrNoRows, which InTx converts to protocol.CodeNotFound.
func readConversation(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ConversationID) (*protocol.Conversation, error) {
	rows, err := tx.Query(ctx, selectConversation, pgx.NamedArgs{"account": account, "conversation": id})
	if err != nil {
		return nil, fmt.Errorf("reading a conversation: %w", err)
	}
	conversation, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Conversation])
	if err != nil {
		return nil, fmt.Errorf("reading a conversation: %w", err)
	}
	return conversation, nil
}

// LockedConversation holds the values that decide whether a conversation may be changed. Its row stays locked until the
// transaction ends.
type LockedConversation struct {
	ActiveBranchID protocol.BranchID
	LiveTurnID     *protocol.TurnID
	QueueVersion   int64
	Version        int64
	Title          string
	TitleSource    string
	Profile        *protocol.Profile
	Metadata       map[string]string
	PinnedAt       *time.Time
	ArchivedAt     *time.Time
	ProjectID      *protocol.ProjectID
	Temporary      bool
	MessageCount   int
}

const lockConversationSQL = `
	select active_branch_id, live_turn_id, queue_version, version, title, title_source, profile, metadata, pinned_at, archived_at, project_id, temporary,
		message_count
	from conversations c
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible + `
	for update of c`

// LockConversation locks the row of a conversation. Starting and ending turns, branching, switching branches and
// deleting take the same lock. The errors are those of readConversation.
func LockConversation(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ConversationID) (*LockedConversation, error) {
	rows, err := tx.Query(ctx, lockConversationSQL, pgx.NamedArgs{"account": account, "conversation": id})
	if err != nil {
		return nil, fmt.Errorf("locking a conversation: %w", err)
	}
	locked, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[LockedConversation])
	if err != nil {
		return nil, fmt.Errorf("locking a conversation: %w", err)
	}
	return locked, nil
}

// checkVersion compares the locked conversation with the version that the client sent; nil means that it sent none. If
// the version is stale, or is missing but required, the error is a conflict that carries the current conversation.
func (l *LockedConversation) checkVersion(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ConversationID,
	version *int64, required bool,
) error {
	code, detail := protocol.CodeStaleVersion, "The conversation has changed since that version."
	switch {
	case version != nil && protocol.MatchesVersion(*version, l.Version), version == nil && !required:
		return nil
	case version == nil:
		code, detail = protocol.CodeVersionRequired, "Send the version you are changing in the If-Match header."
	}
	current, err := readConversation(ctx, tx, account, id)
	if err != nil {
		return err
	}
	return protocol.Conflict(code, current, detail)
}

// NewConversation holds the initial values of a conversation.
type NewConversation struct {
	ConversationID protocol.ConversationID
	Title          string // empty: the service generates one later
	Profile        *protocol.Profile
	Metadata       map[string]string
	Temporary      bool
	ProjectID      *protocol.ProjectID // nil: in no project
	SessionID      *protocol.SessionID // of the request, for the work history of the project
}

// insertConversationSQL creates the conversation with its first, empty branch. It inserts nothing if the account has
// ever used the identifier.
const insertConversationSQL = `
	with made as (
		insert into conversations (account_id, conversation_id, title, title_source, profile, metadata, temporary, project_id, active_branch_id)
		values (@account, @conversation, @title, @title_source, @profile, @metadata, @temporary, @project, @branch)
		on conflict do nothing
		returning account_id, conversation_id, active_branch_id
	), branch as (
		insert into branches (account_id, branch_id, conversation_id)
		select account_id, active_branch_id, conversation_id from made
	)
	insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
	select account_id, active_branch_id, active_branch_id, 1, 2147483647 from made`

func insertConversation(ctx context.Context, tx *pg.Tx, account protocol.AccountID, conversation *NewConversation) (made bool, err error) {
	source := "auto"
	if conversation.Title != "" {
		source = "user"
	}
	metadata := conversation.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	tag, err := tx.Exec(ctx, insertConversationSQL, pgx.NamedArgs{
		"account": account, "conversation": conversation.ConversationID, "branch": protocol.NewBranchID(),
		"title": conversation.Title, "title_source": source, "profile": conversation.Profile,
		"metadata": metadata, "temporary": conversation.Temporary, "project": conversation.ProjectID,
	})
	if err != nil {
		return false, fmt.Errorf("creating a conversation: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// CreateConversation creates a conversation under an identifier that the service generated. If its project is archived,
// the error is a conflict with the project.
func (s *Store) CreateConversation(ctx context.Context, account protocol.AccountID, conversation *NewConversation) (made *protocol.Conversation, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if err := enterProject(ctx, tx, account, conversation.ProjectID, conversation.ConversationID, conversation.SessionID); err != nil {
			return err
		}
		ok, err := insertConversation(ctx, tx, account, conversation)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("creating a conversation: its new identifier is already in use")
		}
		if made, err = readConversation(ctx, tx, account, conversation.ConversationID); err != nil {
			return err
		}
		return idempotency.StoreResponseIn(ctx, tx, made)
	})
	return made, err
}

// ApprovalBody is the stored approval a, without its input if it is long; see protocol.Approval.Brief. PendingApprovals is the list
// of those of the turn t that can be decided, null if there is none.
const (
	ApprovalBody     = `case when octet_length(a.body::text) > 65536 then (a.body::jsonb - 'input')::json else a.body end`
	PendingApprovals = `case when t.state = 'requires_action' then (
			select json_agg(` + ApprovalBody + ` order by a.approval_id) from approvals a
			where a.account_id = t.account_id and a.turn_id = t.turn_id and a.decision is null and a.expires_at > now()) end`
)

// Conversation reads one conversation.
func (s *Store) Conversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.Conversation, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Conversation], selectConversation,
		pgx.NamedArgs{"account": account, "conversation": id})
}

const selectConversationPage = `
	select ` + conversationColumns + `,
		c.draft, c.draft_attachments, c.draft_version, c.draft_updated_at, c.queue_version,
		t.turn_id, t.state, t.next_sequence - 1, t.accepting, t.assistant_message_id,
		` + PendingApprovals + `
	from conversations c
	join branches b on b.account_id = c.account_id and b.branch_id = c.active_branch_id
	left join turns t on t.account_id = c.account_id and t.turn_id = c.live_turn_id
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible

// ConversationPage reads everything that the page of a conversation shows, in one round trip. If the queue is longer
// than one page of its list, the result contains the first page.
func (s *Store) ConversationPage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.ConversationPage, error) {
	page := &protocol.ConversationPage{}
	args := queues.PageArgs(account, id, nil, protocol.MaxFollowUps)
	batch := &pgx.Batch{}
	batch.Queue(selectConversationPage, args).QueryRow(func(row pgx.Row) error {
		return scanConversationPage(row, page)
	})
	batch.Queue(queues.ListOpenSQL, args).Query(func(rows pgx.Rows) error {
		items, err := pgx.CollectRows(rows, pgx.RowToStructByName[protocol.FollowUp])
		if err != nil {
			return err
		}
		page.FollowUps, page.MoreFollowUps, err = pg.CutPage(items, protocol.MaxFollowUps)
		return err
	})
	if err := s.db.Send(ctx, account, batch); err != nil {
		return nil, fmt.Errorf("reading a conversation's page: %w", err)
	}
	return page, nil
}

func scanConversationPage(row pgx.Row, page *protocol.ConversationPage) error {
	c, d := &page.Conversation, &page.Draft
	var live struct {
		turn      *protocol.TurnID
		state     *protocol.TurnState
		last      *int64
		accepting *bool
		message   *protocol.MessageID
	}
	err := row.Scan(
		&c.ConversationID, &c.Title, &c.TitleSource, &c.ProjectID, &c.PinnedAt, &c.ArchivedAt, &c.ActiveBranchID,
		&c.HeadMessageID, &c.LiveTurnID, &c.Profile, &c.Metadata, &c.Temporary, &c.ExpiresAt, &c.Unread,
		&c.MessageCount, &c.HasDraft, &c.Version, &c.CreatedAt, &c.UpdatedAt, &c.LastActivityAt,
		&d.Content, &d.Attachments, &d.Version, &d.UpdatedAt, &page.QueueVersion,
		&live.turn, &live.state, &live.last, &live.accepting, &live.message, &page.PendingApprovals)
	if page.PendingApprovals == nil {
		page.PendingApprovals = []protocol.Approval{}
	}
	if err != nil || live.turn == nil {
		return err
	}
	page.LiveTurn = &protocol.LiveTurn{
		TurnID: *live.turn, State: *live.state, LastSequence: *live.last,
		AcceptingSteering: *live.accepting, MessageID: *live.message,
	}
	return nil
}

const conversationExistsSQL = `
	select 1 from conversations c
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible

// RowsOfConversation runs a statement that reads rows of one conversation, in one round trip. If the conversation does
// not exist, the error is protocol.CodeNotFound. args name the account and the conversation.
func RowsOfConversation[T any](ctx context.Context, db *pg.DB, account protocol.AccountID, sql string, args pgx.NamedArgs) (found []T, err error) {
	return ScanRowsOfConversation(ctx, db, account, pgx.RowToStructByName[T], sql, args)
}

// ScanRowsOfConversation is RowsOfConversation for rows that are scanned by a function.
func ScanRowsOfConversation[T any](ctx context.Context, db *pg.DB, account protocol.AccountID, to pgx.RowToFunc[T], sql string, args pgx.NamedArgs) (found []T, err error) {
	batch := &pgx.Batch{}
	batch.Queue(conversationExistsSQL, args).QueryRow(func(row pgx.Row) error {
		var one int
		return row.Scan(&one)
	})
	batch.Queue(sql, args).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, to)
		return err
	})
	return found, db.Send(ctx, account, batch)
}

// enterProject locks the active project of a new conversation and records the conversation in its work history; nil is
// no project.
func enterProject(ctx context.Context, tx *pg.Tx, account protocol.AccountID, project *protocol.ProjectID,
	conversation protocol.ConversationID, session *protocol.SessionID,
) error {
	if project == nil {
		return nil
	}
	if _, err := projects.LockActive(ctx, tx, account, *project); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	projects.Work{Kind: protocol.WorkConversationCreated, SessionID: session, ConversationID: &conversation}.Queue(batch, account, *project)
	if err := tx.Run(ctx, batch); err != nil {
		return fmt.Errorf("recording a conversation: %w", err)
	}
	return nil
}
