package conversations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

// Move is a request to move a conversation into a project or, with nil, out of its project.
type Move struct {
	ConversationID protocol.ConversationID
	ProjectID      *protocol.ProjectID
	Version        *int64
	SessionID      *protocol.SessionID
}

// The conversation may still be hidden from the indexes, if its project was restored just now.
const moveSQL = `
	update conversations set project_id = @project, hidden = false, version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation`

// MoveConversation moves a conversation. A repetition of the stored value changes nothing. If the
// project is archived, or the conversation is temporary, the error is a conflict. A live turn continues with the
// instructions of the project in which it started.
func (s *Store) MoveConversation(ctx context.Context, account protocol.AccountID, move *Move) (conversation *protocol.Conversation, err error) {
	id := move.ConversationID
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := LockConversation(ctx, tx, account, id)
		if err != nil {
			return err
		}
		from := locked.ProjectID
		same := from == move.ProjectID || from != nil && move.ProjectID != nil && *from == *move.ProjectID
		if move.ProjectID != nil && !same { // another account's project is not found, whatever the version
			if _, err := projects.Read(ctx, tx, account, *move.ProjectID); err != nil {
				return err
			}
		}
		if err := locked.checkVersion(ctx, tx, account, id, move.Version, true); err != nil {
			return err
		}
		if !same {
			if err := moveLocked(ctx, tx, account, locked, move); err != nil {
				return err
			}
		}
		conversation, err = readConversation(ctx, tx, account, id)
		return err
	})
	return conversation, err
}

// moveLocked moves a locked conversation. It locks both projects in the order of their identifiers, so that two moves in
// opposite directions do not wait for each other.
func moveLocked(ctx context.Context, tx *pg.Tx, account protocol.AccountID, locked *LockedConversation, move *Move) error {
	from, to := locked.ProjectID, move.ProjectID
	if to != nil && locked.Temporary {
		current, err := readConversation(ctx, tx, account, move.ConversationID)
		if err != nil {
			return err
		}
		return protocol.Conflict(protocol.CodeConflict, current, "A temporary conversation cannot be in a project.")
	}
	if from != nil && (to == nil || from.String() < to.String()) {
		if _, err := projects.Lock(ctx, tx, account, *from); err != nil {
			return err
		}
	}
	if to != nil {
		if _, err := projects.LockActive(ctx, tx, account, *to); err != nil {
			return err
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(moveSQL, pgx.NamedArgs{"account": account, "conversation": move.ConversationID, "project": to})
	entry := projects.Work{SessionID: move.SessionID, ConversationID: &move.ConversationID}
	if from != nil {
		entry.Kind, entry.OtherProjectID = protocol.WorkConversationOut, to
		entry.Queue(batch, account, *from)
	}
	if to != nil {
		entry.Kind, entry.OtherProjectID = protocol.WorkConversationIn, from
		entry.Queue(batch, account, *to)
	}
	if err := tx.Run(ctx, batch); err != nil {
		return fmt.Errorf("moving a conversation: %w", err)
	}
	return nil
}

// listTargetsSQL looks the conversation up once, before the projects.
const listTargetsSQL = `
	select ` + projects.Columns + ` from projects p
	where p.account_id = @account and p.state = 'active' and p.project_id < @after
	  and p.project_id is distinct from (select project_id from conversations where account_id = @account and conversation_id = @conversation)
	  and (select not temporary from conversations where account_id = @account and conversation_id = @conversation)
	order by p.project_id desc limit @limit`

// ListMoveTargets returns a page of the projects into which a conversation can be moved. It starts after a project; nil
// starts at the beginning. next is nil at the end.
func (s *Store) ListMoveTargets(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	after *protocol.ProjectID, limit int,
) (page []protocol.Project, next *protocol.ProjectID, err error) {
	page, err = RowsOfConversation[protocol.Project](ctx, s.db, account, listTargetsSQL, pgx.NamedArgs{
		"account": account, "conversation": id, "after": projects.Position(after), "limit": limit + 1,
	})
	if err != nil {
		return nil, nil, err
	}
	return projects.NextPage(page, limit)
}

const conversationsOfProjectSQL = `
	select conversation_id from conversations
	where account_id = $1 and project_id = $2 and deleted_at is null
	order by hidden, last_activity_at desc limit $3
	for update`

// EraseOfProject deletes at most limit conversations of a deleted project, and enqueues the jobs that erase their content.
// It is the step of projects.Store.PurgeProject for conversations.
func (s *Store) EraseOfProject(ctx context.Context, tx *pg.Tx, account protocol.AccountID, project protocol.ProjectID, limit int) (deleted int, err error) {
	rows, err := tx.Query(ctx, conversationsOfProjectSQL, account, project, limit)
	if err != nil {
		return 0, fmt.Errorf("listing the conversations of a project: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[protocol.ConversationID])
	if err != nil {
		return 0, fmt.Errorf("listing the conversations of a project: %w", err)
	}
	batch := &pgx.Batch{}
	for _, id := range ids {
		batch.Queue(leaveTombstoneSQL, pgx.NamedArgs{"account": account, "conversation": id})
	}
	if err := tx.Run(ctx, batch); err != nil {
		return 0, fmt.Errorf("deleting the conversations of a project: %w", err)
	}
	for _, id := range ids {
		if err := s.queue.Insert(ctx, tx, PurgeConversationArgs{AccountID: account, ConversationID: id}); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}
