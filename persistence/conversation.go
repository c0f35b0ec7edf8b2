package persistence

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// maxTitleRunes is the longest title; the schema checks it too.
const maxTitleRunes = 200

// temporaryLifetime is how long after its last activity a temporary conversation is erased.
const temporaryLifetime = "24 hours"

// conversationColumns read as protocol.Conversation, from conversations c and their active branch b. A conversation is
// unread when an answer has ended that is newer than what was seen; identifiers of messages sort by time. The bounds and the
// order of the look-up are those of the index messages_conversation: with an equality Postgres may as well read the messages
// of the whole account from the newest on.
const conversationColumns = `
	c.conversation_id, c.title, c.title_source, c.project_id, c.pinned_at, c.archived_at, c.active_branch_id,
	b.head_message_id, c.live_turn_id, c.profile, c.metadata, c.temporary,
	case when c.temporary then c.last_activity_at + '` + temporaryLifetime + `'::interval end as expires_at,
	coalesce((select m.message_id from messages m
		where m.account_id = c.account_id and m.conversation_id >= c.conversation_id
		  and (m.conversation_id, m.message_id) <= (c.conversation_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
		  and m.role = 'assistant' and m.status <> 'streaming'
		order by m.conversation_id desc, m.message_id desc limit 1) > coalesce(c.read_message_id, '00000000-0000-0000-0000-000000000000'), false) as unread,
	c.message_count, c.version, c.created_at, c.updated_at, c.last_activity_at`

// conversationFields are the columns of conversations that conversationColumns reads, for a subquery c.
const conversationFields = `account_id, conversation_id, title, title_source, project_id, pinned_at, archived_at, active_branch_id,
		live_turn_id, profile, metadata, temporary, last_activity_at, read_message_id, message_count, version, created_at, updated_at`

// conversationRows joins what conversationColumns reads, for the account's conversations that were not deleted.
const conversationRows = `
	from conversations c
	join branches b on b.account_id = c.account_id and b.branch_id = c.active_branch_id
	where c.account_id = @account and c.deleted_at is null`

const selectConversation = `select ` + conversationColumns + conversationRows + ` and c.conversation_id = @conversation`

// readConversation reads one conversation; protocol.CodeNotFound when the account has none of that name, or deleted it.
func readConversation(ctx context.Context, tx *Tx, account protocol.AccountID, id protocol.ConversationID) (*protocol.Conversation, error) {
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

// lockedConversation is what decides about a change of a conversation. Its row stays locked until the transaction ends.
type lockedConversation struct {
	ActiveBranchID protocol.BranchID
	LiveTurnID     *protocol.TurnID
	Version        int64
	Title          string
	TitleSource    string
	Profile        *protocol.Profile
	Metadata       map[string]string
}

const lockConversationSQL = `
	select active_branch_id, live_turn_id, version, title, title_source, profile, metadata
	from conversations
	where account_id = @account and conversation_id = @conversation and deleted_at is null
	for update`

// lockConversation takes the row lock that starting and ending turns, branching, switching and deleting share.
func lockConversation(ctx context.Context, tx *Tx, account protocol.AccountID, id protocol.ConversationID) (*lockedConversation, error) {
	rows, err := tx.Query(ctx, lockConversationSQL, pgx.NamedArgs{"account": account, "conversation": id})
	if err != nil {
		return nil, fmt.Errorf("locking a conversation: %w", err)
	}
	locked, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[lockedConversation])
	if err != nil {
		return nil, fmt.Errorf("locking a conversation: %w", err)
	}
	return locked, nil
}

// checkVersion holds a locked conversation against the version that the client saw; nil was not sent.
func (l *lockedConversation) checkVersion(ctx context.Context, tx *Tx, account protocol.AccountID, id protocol.ConversationID,
	version *int64, required bool,
) error {
	code, detail := protocol.CodeStaleVersion, "The conversation has changed since that version."
	switch {
	case version != nil && *version == l.Version, version == nil && !required:
		return nil
	case version == nil:
		code, detail = protocol.CodeVersionRequired, "Say in If-Match which version of the conversation you change."
	}
	current, err := readConversation(ctx, tx, account, id)
	if err != nil {
		return err
	}
	return protocol.Conflict(code, current, detail)
}

// NewConversation is what a conversation begins with.
type NewConversation struct {
	ConversationID protocol.ConversationID
	Title          string // empty: an automatic one will come
	Profile        *protocol.Profile
	Metadata       map[string]string
	Temporary      bool
}

// insertConversationSQL makes the conversation with its first, empty branch; nothing when the account ever used the
// identifier.
const insertConversationSQL = `
	with made as (
		insert into conversations (account_id, conversation_id, title, title_source, profile, metadata, temporary, active_branch_id)
		values (@account, @conversation, @title, @title_source, @profile, @metadata, @temporary, @branch)
		on conflict do nothing
		returning account_id, conversation_id, active_branch_id
	), branch as (
		insert into branches (account_id, branch_id, conversation_id)
		select account_id, active_branch_id, conversation_id from made
	)
	insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
	select account_id, active_branch_id, active_branch_id, 1, 2147483647 from made`

func insertConversation(ctx context.Context, tx *Tx, account protocol.AccountID, conversation *NewConversation) (made bool, err error) {
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
		"metadata": metadata, "temporary": conversation.Temporary,
	})
	if err != nil {
		return false, fmt.Errorf("creating a conversation: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// CreateConversation makes a conversation under an identifier that the service made.
func (db *DB) CreateConversation(ctx context.Context, account protocol.AccountID, conversation *NewConversation) (made *protocol.Conversation, err error) {
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		ok, err := insertConversation(ctx, tx, account, conversation)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("creating a conversation: its new identifier is taken")
		}
		if made, err = readConversation(ctx, tx, account, conversation.ConversationID); err != nil {
			return err
		}
		return keepIn(ctx, tx, made)
	})
	return made, err
}

// Conversation reads one conversation.
func (db *DB) Conversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.Conversation, error) {
	return Row(ctx, db, account, pgx.RowToAddrOfStructByName[protocol.Conversation], selectConversation,
		pgx.NamedArgs{"account": account, "conversation": id})
}

const selectConversationPage = `
	select ` + conversationColumns + `,
		c.draft, c.draft_attachments, c.draft_version, c.draft_updated_at, c.queue_version,
		t.turn_id, t.state, t.next_sequence - 1, t.accepting, t.assistant_message_id
	from conversations c
	join branches b on b.account_id = c.account_id and b.branch_id = c.active_branch_id
	left join turns t on t.account_id = c.account_id and t.turn_id = c.live_turn_id
	where c.account_id = @account and c.deleted_at is null and c.conversation_id = @conversation`

// ConversationPage reads what the page of a conversation shows, in one round trip. Of a queue that is longer than a page of
// a list it has the beginning.
func (db *DB) ConversationPage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.ConversationPage, error) {
	page := &protocol.ConversationPage{PendingApprovals: []protocol.Approval{}}
	args := followUpArgs(account, id, nil, protocol.MaxFollowUps)
	batch := &pgx.Batch{}
	batch.Queue(selectConversationPage, args).QueryRow(func(row pgx.Row) error {
		return scanConversationPage(row, page)
	})
	batch.Queue(listOpenFollowUpsSQL, args).Query(func(rows pgx.Rows) error {
		items, err := pgx.CollectRows(rows, pgx.RowToStructByName[protocol.FollowUp])
		if err != nil {
			return err
		}
		page.FollowUps, page.MoreFollowUps, err = cutPage(items, protocol.MaxFollowUps)
		return err
	})
	if err := db.Send(ctx, account, batch); err != nil {
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
		&c.MessageCount, &c.Version, &c.CreatedAt, &c.UpdatedAt, &c.LastActivityAt,
		&d.Content, &d.Attachments, &d.Version, &d.UpdatedAt, &page.QueueVersion,
		&live.turn, &live.state, &live.last, &live.accepting, &live.message)
	if err != nil || live.turn == nil {
		return err
	}
	page.LiveTurn = &protocol.LiveTurn{
		TurnID: *live.turn, State: *live.state, LastSequence: *live.last,
		AcceptingSteering: *live.accepting, MessageID: *live.message,
	}
	return nil
}

// ConversationWrite is what a client may write of a conversation, whole.
type ConversationWrite struct {
	Title    string // empty: none of the user's; an automatic one stays
	Profile  *protocol.Profile
	Metadata map[string]string
}

// PutConversation creates a conversation under the client's identifier, or replaces what may be written of it. A repeat
// of what already stands needs no version and changes nothing.
func (db *DB) PutConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	write *ConversationWrite, version *int64,
) (conversation *protocol.Conversation, created bool, err error) {
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		if version == nil { // who names a version knows of one that exists
			created, err = insertConversation(ctx, tx, account, &NewConversation{
				ConversationID: id, Title: write.Title, Profile: write.Profile, Metadata: write.Metadata,
			})
			if err != nil {
				return err
			}
		}
		if !created {
			if err := replaceConversation(ctx, tx, account, id, write, version); err != nil {
				return err
			}
		}
		conversation, err = readConversation(ctx, tx, account, id)
		return err
	})
	return conversation, created, err
}

const updateConversationSQL = `
	update conversations
	set title = @title, title_source = @title_source, profile = @profile, metadata = @metadata,
		version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation`

func replaceConversation(ctx context.Context, tx *Tx, account protocol.AccountID, id protocol.ConversationID,
	write *ConversationWrite, version *int64,
) error {
	locked, err := lockConversation(ctx, tx, account, id)
	if err != nil {
		return err
	}
	title, source := write.titleOver(locked)
	same := title == locked.Title && source == locked.TitleSource &&
		equalProfiles(write.Profile, locked.Profile) && maps.Equal(write.Metadata, locked.Metadata)
	if err := locked.checkVersion(ctx, tx, account, id, version, !same); err != nil || same {
		return err
	}
	metadata := write.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	_, err = tx.Exec(ctx, updateConversationSQL, pgx.NamedArgs{
		"account": account, "conversation": id, "title": title, "title_source": source,
		"profile": write.Profile, "metadata": metadata,
	})
	if err != nil {
		return fmt.Errorf("writing a conversation: %w", err)
	}
	return nil
}

// titleOver tells which title stands after the write: the user's, if there is one, or what the service found.
func (w *ConversationWrite) titleOver(locked *lockedConversation) (title, source string) {
	switch {
	case w.Title == locked.Title, w.Title == "" && locked.TitleSource == "auto":
		return locked.Title, locked.TitleSource
	case w.Title == "":
		return "", "auto"
	}
	return w.Title, "user"
}

func equalProfiles(a, b *protocol.Profile) bool {
	return a == b || a != nil && b != nil && *a == *b
}

const updateTitleSQL = `
	update conversations
	set title = @title, title_source = 'user', version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation and (title, title_source) <> (@title, 'user')`

// SetTitle gives a conversation the user's title. Without a version the last writer wins.
func (db *DB) SetTitle(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	title string, version *int64,
) (conversation *protocol.Conversation, err error) {
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		locked, err := lockConversation(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if err := locked.checkVersion(ctx, tx, account, id, version, false); err != nil {
			return err
		}
		args := pgx.NamedArgs{"account": account, "conversation": id, "title": title}
		if _, err := tx.Exec(ctx, updateTitleSQL, args); err != nil {
			return fmt.Errorf("setting a title: %w", err)
		}
		conversation, err = readConversation(ctx, tx, account, id)
		return err
	})
	return conversation, err
}

const markReadSQL = `
	update conversations c
	set read_message_id = greatest(c.read_message_id, seen.message_id), read_at = now()
	from (
		select case when status = 'streaming' then parent_message_id else message_id end as message_id
		from messages
		where account_id = @account and conversation_id = @conversation and message_id = @message
	) seen
	where c.account_id = @account and c.conversation_id = @conversation and c.deleted_at is null`

// MarkRead remembers how far the account has read, on any device. The mark never goes back, and a message that still
// streams was not read to its end: then it is the message before.
func (db *DB) MarkRead(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	message protocol.MessageID,
) (conversation *protocol.Conversation, err error) {
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		tag, err := tx.Exec(ctx, markReadSQL, pgx.NamedArgs{"account": account, "conversation": id, "message": message})
		if err != nil {
			return fmt.Errorf("marking a conversation read: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("marking a conversation read: %w", pgx.ErrNoRows)
		}
		conversation, err = readConversation(ctx, tx, account, id)
		return err
	})
	return conversation, err
}

const conversationExistsSQL = `
	select 1 from conversations
	where account_id = @account and conversation_id = @conversation and deleted_at is null`

// rowsWithin runs a reading statement on what belongs to one conversation, which has to be there, in one round trip.
// args name the account and the conversation.
func rowsWithin[T any](ctx context.Context, db *DB, account protocol.AccountID, sql string, args pgx.NamedArgs) (found []T, err error) {
	batch := &pgx.Batch{}
	batch.Queue(conversationExistsSQL, args).QueryRow(func(row pgx.Row) error {
		var one int
		return row.Scan(&one)
	})
	batch.Queue(sql, args).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		return err
	})
	return found, db.Send(ctx, account, batch)
}
