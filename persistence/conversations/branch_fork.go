package conversations

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/clip"
)

// maxForkDepth limits the messages that one fork copies, so that the copy stays within the statement timeout.
const maxForkDepth = 20_000

// forkSuffix is appended to the title of the original if the request names no title for the copy.
const forkSuffix = " (copy)"

const insertForkSQL = `
	with made as (
		insert into conversations (account_id, conversation_id, title, title_source, provisional_title, profile, metadata, project_id,
			temporary, active_branch_id, message_count, read_message_id, read_at)
		select account_id, @fork, @title, @title_source, provisional_title, profile, metadata, project_id,
			temporary, @branch, @depth, @head, now()
		from conversations
		where account_id = @account and conversation_id = @conversation
		returning account_id
	), branch as (
		insert into branches (account_id, branch_id, conversation_id, head_message_id, head_depth)
		select account_id, @branch, @fork, @head, @depth from made
	)
	insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
	select account_id, @branch, @branch, 1, 2147483647 from made`

// copyPathSQL copies a path message by message. @ids holds the identifiers of the copies by depth. A copy belongs to no
// turn: the turn, its stream and its usage records stay with the original.
const copyPathSQL = `
	insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status,
		parts, attachments, profile, model_id, routing, usage, created_at)
	select m.account_id, (@ids::uuid[])[m.depth], @fork, @branch, m.depth, (@ids::uuid[])[m.depth - 1], m.role, m.status,
		m.parts, m.attachments, m.profile, m.model_id, m.routing, m.usage, m.created_at
	from branch_segments s
	cross join lateral (
		select account_id, depth, role, status, parts, attachments, profile, model_id, routing, usage, created_at from messages
		where account_id = @account and branch_id = s.source_branch_id and depth between s.from_depth and least(s.to_depth, @depth)
		order by depth limit @depth) m
	where s.account_id = @account and s.branch_id = @source and s.from_depth <= @depth`

// ForkConversation creates a new conversation from the path up to and including a message. The copy is independent:
// later changes of the original, including its deletion, do not affect it. It is in the same project; if that is archived,
// the error is a conflict with the project.
func (s *Store) ForkConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	message protocol.MessageID, name string, session *protocol.SessionID,
) (fork *protocol.Conversation, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := LockConversation(ctx, tx, account, id)
		if err != nil {
			return err
		}
		point, err := readBranchPoint(ctx, tx, account, id, message)
		if err != nil {
			return err
		}
		switch {
		case point.Status == protocol.MessageStreaming && locked.LiveTurnID != nil:
			return TurnInProgress(*locked.LiveTurnID)
		case point.Depth > maxForkDepth:
			return protocol.Invalid("body.message_id", fmt.Sprintf("has more than %d messages before it", maxForkDepth))
		}
		forkID := protocol.NewConversationID()
		if err := enterProject(ctx, tx, account, locked.ProjectID, forkID, session); err != nil {
			return err
		}
		if err := copyPath(ctx, tx, account, id, point, forkID, locked.forkTitle(name)); err != nil {
			return err
		}
		if fork, err = readConversation(ctx, tx, account, forkID); err != nil {
			return err
		}
		return idempotency.StoreResponseIn(ctx, tx, fork)
	})
	return fork, err
}

func copyPath(ctx context.Context, tx *pg.Tx, account protocol.AccountID, id protocol.ConversationID, point *BranchPoint,
	fork protocol.ConversationID, title string,
) error {
	ids := make([]protocol.MessageID, point.Depth)
	for i := range ids {
		ids[i] = protocol.NewMessageID()
	}
	source := "user"
	if title == "" {
		source = "auto"
	}
	args := pgx.NamedArgs{
		"account": account, "conversation": id, "source": point.BranchID, "depth": point.Depth, "ids": ids,
		"fork": fork, "branch": protocol.NewBranchID(), "head": ids[len(ids)-1], "title": title, "title_source": source,
	}
	if _, err := tx.Exec(ctx, insertForkSQL, args); err != nil {
		return fmt.Errorf("creating a fork: %w", err)
	}
	if _, err := tx.Exec(ctx, copyPathSQL, args); err != nil {
		return fmt.Errorf("copying a path: %w", err)
	}
	return copyArtifacts(ctx, tx, args)
}

// forkTitle returns the title of a copy: the given name or, if that is empty, the title of the original with
// forkSuffix, shortened to fit.
func (l *LockedConversation) forkTitle(name string) string {
	if name != "" || l.Title == "" {
		return name
	}
	title := clip.Runes(l.Title, protocol.MaxTitle-len(forkSuffix))
	return strings.TrimSpace(title) + forkSuffix
}
