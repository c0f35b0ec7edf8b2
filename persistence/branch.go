package persistence

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// maxNesting is the number of branches that one path may go through. A branch stores a row for each branch that its path
// goes through, so nested branches would otherwise store as many rows as the square of their number. A fork begins anew
// with one.
const maxNesting = 1000

// BranchPoint is the message at which a path forks.
type BranchPoint struct {
	MessageID       protocol.MessageID
	BranchID        protocol.BranchID // where it was written
	ParentMessageID *protocol.MessageID
	Depth           int
	Role            string
	Status          protocol.MessageStatus
	Nesting         int // the branches that the path of BranchID goes through, at most maxNesting
}

var branchPointSQL = `
	select m.message_id, m.branch_id, m.parent_message_id, m.depth, m.role, m.status, ` + nestingSQL + ` as nesting
	from messages m
	where m.account_id = @account and m.conversation_id = @conversation and m.message_id = @message`

// nestingSQL counts the branches that the path of message m goes through, up to maxNesting.
var nestingSQL = fmt.Sprintf(`(
		select count(*) from (
			select from branch_segments s where s.account_id = m.account_id and s.branch_id = m.branch_id limit %d) s)`, maxNesting)

func readBranchPoint(ctx context.Context, tx *Tx, account protocol.AccountID, conversation protocol.ConversationID,
	message protocol.MessageID,
) (*BranchPoint, error) {
	rows, err := tx.Query(ctx, branchPointSQL, pgx.NamedArgs{"account": account, "conversation": conversation, "message": message})
	if err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	point, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[BranchPoint])
	if err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	return point, nil
}

// insertBranchSQL makes a branch that shows the path of another one up to a depth and goes on by itself from there.
const insertBranchSQL = `
	with made as (
		insert into branches (account_id, branch_id, conversation_id, name, base_message_id, head_message_id, head_depth)
		values (@account, @branch, @conversation, @name, @base, @base, @base_depth)
	)
	insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
	select account_id, @branch, source_branch_id, from_depth, least(to_depth, @base_depth)
	from branch_segments
	where account_id = @account and branch_id = @source and from_depth <= @base_depth
	union all
	values (@account::uuid, @branch::uuid, @branch::uuid, @base_depth + 1, 2147483647)`

const activateBranchSQL = `
	update conversations
	set active_branch_id = @branch, version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation and active_branch_id <> @branch`

// branchBefore makes the branch on which a sibling of a message will stand, and makes it the active one. The caller
// holds the conversation's lock. Edit takes a user's message, regenerate an assistant's.
func branchBefore(ctx context.Context, tx *Tx, account protocol.AccountID, conversation protocol.ConversationID,
	request *protocol.BranchRequest, name string,
) (protocol.BranchID, error) {
	branch := protocol.NewBranchID()
	point, err := readBranchPoint(ctx, tx, account, conversation, request.MessageID)
	if err != nil {
		return branch, err
	}
	if err := point.allows(request.Mode); err != nil {
		return branch, err
	}
	args := pgx.NamedArgs{
		"account": account, "conversation": conversation, "branch": branch, "name": name,
		"base": point.ParentMessageID, "base_depth": point.Depth - 1, "source": point.BranchID,
	}
	if _, err := tx.Exec(ctx, insertBranchSQL, args); err != nil {
		return branch, fmt.Errorf("creating a branch: %w", err)
	}
	if _, err := tx.Exec(ctx, activateBranchSQL, args); err != nil {
		return branch, fmt.Errorf("switching to a branch: %w", err)
	}
	return branch, nil
}

func (p *BranchPoint) allows(mode string) error {
	switch {
	case mode == protocol.BranchEdit && p.Role != protocol.RoleUser:
		return protocol.Invalid("body.message_id", "must name a message of the user to edit it")
	case mode == protocol.BranchRegenerate && p.Role != protocol.RoleAssistant:
		return protocol.Invalid("body.message_id", "must name an answer to regenerate it")
	}
	return p.nests("body.message_id")
}

// nests refuses a branch whose path would go through too many others.
func (p *BranchPoint) nests(field string) error {
	if p.Nesting >= maxNesting {
		return protocol.Invalid(field, "is behind too many branches: fork the conversation to go on")
	}
	return nil
}

// turnInProgress tells which turn stands in the way.
func turnInProgress(turn protocol.TurnID) error {
	return protocol.Conflict(protocol.CodeTurnInProgress, map[string]protocol.TurnID{"turn_id": turn}, "A turn is live in this conversation.")
}

// CreateBranch makes a new active branch for another version of a message; what stands on it comes with the next turn.
// The branch that was active stays as it is.
func (db *DB) CreateBranch(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID,
	request *protocol.BranchRequest, name string,
) (branch *protocol.Branch, err error) {
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		locked, err := lockConversation(ctx, tx, account, conversation)
		if err != nil {
			return err
		}
		if locked.LiveTurnID != nil {
			return turnInProgress(*locked.LiveTurnID)
		}
		id, err := branchBefore(ctx, tx, account, conversation, request, name)
		if err != nil {
			return err
		}
		if branch, err = readBranch(ctx, tx, account, conversation, id); err != nil {
			return err
		}
		return keepIn(ctx, tx, branch)
	})
	return branch, err
}

const branchColumns = `b.branch_id, b.name, b.base_message_id, b.head_message_id, b.branch_id = c.active_branch_id as active, b.created_at`

const selectBranchSQL = `
	select ` + branchColumns + `
	from conversations c
	join branches b on b.account_id = c.account_id and b.conversation_id = c.conversation_id and b.branch_id = @branch
	where c.account_id = @account and c.conversation_id = @conversation and c.deleted_at is null`

func readBranch(ctx context.Context, tx *Tx, account protocol.AccountID, conversation protocol.ConversationID,
	branch protocol.BranchID,
) (*protocol.Branch, error) {
	rows, err := tx.Query(ctx, selectBranchSQL, pgx.NamedArgs{"account": account, "conversation": conversation, "branch": branch})
	if err != nil {
		return nil, fmt.Errorf("reading a branch: %w", err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.Branch])
	if err != nil {
		return nil, fmt.Errorf("reading a branch: %w", err)
	}
	return found, nil
}

const listBranchesSQL = `
	select ` + branchColumns + `
	from conversations c
	join branches b on b.account_id = c.account_id and b.conversation_id = c.conversation_id
	where c.account_id = @account and c.conversation_id = @conversation and c.deleted_at is null and b.branch_id > @after
	order by b.branch_id
	limit @limit`

// ListBranches reads a conversation's branches in the order of their making, after one; the zero identifier is the
// beginning. next is nil at the end.
func (db *DB) ListBranches(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID,
	after protocol.BranchID, limit int,
) (page []protocol.Branch, next *protocol.BranchID, err error) {
	page, err = rowsWithin[protocol.Branch](ctx, db, account, listBranchesSQL, pgx.NamedArgs{
		"account": account, "conversation": conversation, "after": after, "limit": limit + 1,
	})
	if err != nil {
		return nil, nil, err
	}
	page, more, err := cutPage(page, limit)
	if err != nil || !more {
		return page, nil, err
	}
	return page, &page[len(page)-1].BranchID, nil
}

// SetActiveBranch switches a conversation to one of its branches. A live turn writes on the active branch, so it stands
// in the way.
func (db *DB) SetActiveBranch(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	branch protocol.BranchID, version *int64,
) (conversation *protocol.Conversation, err error) {
	err = db.InTx(ctx, account, func(ctx context.Context, tx *Tx) error {
		locked, err := lockConversation(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if _, err := readBranch(ctx, tx, account, id, branch); err != nil {
			return err
		}
		if err := locked.checkVersion(ctx, tx, account, id, version, true); err != nil {
			return err
		}
		if locked.LiveTurnID != nil {
			return turnInProgress(*locked.LiveTurnID)
		}
		args := pgx.NamedArgs{"account": account, "conversation": id, "branch": branch}
		if _, err := tx.Exec(ctx, activateBranchSQL, args); err != nil {
			return fmt.Errorf("switching to a branch: %w", err)
		}
		conversation, err = readConversation(ctx, tx, account, id)
		return err
	})
	return conversation, err
}
