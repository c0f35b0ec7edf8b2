package conversations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/idempotency"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

// maxNesting limits the branches on one path. A branch stores one row for each branch on its path, so the rows of
// nested branches would otherwise grow with the square of their number. The path of a fork has one branch.
const maxNesting = 1000

// BranchPoint is the message at which a new branch leaves a path.
type BranchPoint struct {
	MessageID       protocol.MessageID
	BranchID        protocol.BranchID // the branch on which the message was written
	ParentMessageID *protocol.MessageID
	Depth           int
	Role            string
	Status          protocol.MessageStatus
	Nesting         int // number of branches on the path of BranchID, at most maxNesting
}

var branchPointSQL = `
	select m.message_id, m.branch_id, m.parent_message_id, m.depth, m.role, m.status, ` + NestingSQL + ` as nesting
	from messages m
	where m.account_id = @account and m.conversation_id = @conversation and m.message_id = @message`

// NestingSQL counts the branches on the path of message m, up to maxNesting.
var NestingSQL = fmt.Sprintf(`(
		select count(*) from (
			select from branch_segments s where s.account_id = m.account_id and s.branch_id = m.branch_id limit %d) s)`, maxNesting)

func readBranchPoint(ctx context.Context, tx *pg.Tx, account protocol.AccountID, conversation protocol.ConversationID,
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

// InsertBranchSQL creates a branch that shows the path of another branch up to a depth, and has its own messages from
// there on.
const InsertBranchSQL = `
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

// ActivateBranchSQL makes a branch the active one of its conversation.
const ActivateBranchSQL = `
	update conversations
	set active_branch_id = @branch, version = version + 1, updated_at = now()
	where account_id = @account and conversation_id = @conversation and active_branch_id <> @branch`

// createSiblingBranch creates a branch for a sibling of a message and makes it the active branch. The caller holds the
// lock on the conversation.
func createSiblingBranch(ctx context.Context, tx *pg.Tx, account protocol.AccountID, conversation protocol.ConversationID,
	request *protocol.BranchRequest, name string,
) (protocol.BranchID, error) {
	branch := protocol.NewBranchID()
	point, err := readBranchPoint(ctx, tx, account, conversation, request.MessageID)
	if err != nil {
		return branch, err
	}
	if err := point.CheckMode(request.Mode, "body"); err != nil {
		return branch, err
	}
	args := pgx.NamedArgs{
		"account": account, "conversation": conversation, "branch": branch, "name": name,
		"base": point.ParentMessageID, "base_depth": point.Depth - 1, "source": point.BranchID,
	}
	if _, err := tx.Exec(ctx, InsertBranchSQL, args); err != nil {
		return branch, fmt.Errorf("creating a branch: %w", err)
	}
	if _, err := tx.Exec(ctx, ActivateBranchSQL, args); err != nil {
		return branch, fmt.Errorf("switching to a branch: %w", err)
	}
	return branch, nil
}

// CheckMode returns an error if a branch of this mode cannot start at the message: edit needs a message of the user,
// regenerate an answer to another message, and the path of the message has at most maxNesting branches. parent is the
// field of the request that has the mode and the message, for example "body".
func (p *BranchPoint) CheckMode(mode, parent string) error {
	switch {
	case mode == protocol.BranchEdit && p.Role == protocol.RoleUser:
	case mode == protocol.BranchRegenerate && p.Role == protocol.RoleAssistant && p.ParentMessageID != nil:
	case mode != protocol.BranchEdit && mode != protocol.BranchRegenerate:
		return protocol.Invalid(parent+".mode", "must be edit or regenerate")
	default:
		return protocol.Invalid(parent+".message_id", "must name a user message to edit, or an assistant message to regenerate")
	}
	if p.Nesting >= maxNesting {
		return protocol.Invalid(parent+".message_id", "is on a path with too many branches: fork the conversation to continue")
	}
	return nil
}

// TurnInProgress returns the conflict that names the live turn.
func TurnInProgress(turn protocol.TurnID) error {
	return protocol.Conflict(protocol.CodeTurnInProgress, map[string]protocol.TurnID{"turn_id": turn}, "A turn is live in this conversation.")
}

// CreateBranch creates a new active branch for another version of a message; the next turn stores that version. The
// previously active branch does not change. While a turn is live, the error is protocol.CodeTurnInProgress. In an archived
// project, it is a conflict with the project.
func (s *Store) CreateBranch(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID,
	request *protocol.BranchRequest, name string,
) (branch *protocol.Branch, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := LockConversation(ctx, tx, account, conversation)
		if err != nil {
			return err
		}
		if locked.LiveTurnID != nil {
			return TurnInProgress(*locked.LiveTurnID)
		}
		if locked.ProjectID != nil {
			if _, err := projects.LockActive(ctx, tx, account, *locked.ProjectID); err != nil {
				return err
			}
		}
		id, err := createSiblingBranch(ctx, tx, account, conversation, request, name)
		if err != nil {
			return err
		}
		if branch, err = readBranch(ctx, tx, account, conversation, id); err != nil {
			return err
		}
		return idempotency.StoreResponseIn(ctx, tx, branch)
	})
	return branch, err
}

const (
	// BranchColumns are the columns of protocol.Branch, of a branch b, its conversation c and JoinBase.
	BranchColumns = `b.branch_id, b.name, coalesce((
			select left(p ->> 'text', 200)
			from (
				select parts from messages
				where account_id = b.account_id and branch_id = b.branch_id order by depth limit 1) own
			cross join json_array_elements(own.parts) p
			where p ->> 'type' = 'text' and p ->> 'text' <> '' limit 1), '') as preview,
		base.branch_id as parent_branch_id, b.base_message_id, coalesce(base.depth, 0) as base_depth,
		b.head_message_id, b.head_depth, b.branch_id = c.active_branch_id as active, b.version, b.created_at`
	// JoinBase joins the place at which a branch b starts.
	JoinBase = `
	left join lateral (
		select m.branch_id, m.depth from messages m
		where m.account_id = b.account_id and m.message_id = b.base_message_id limit 1) base on true`
)

const selectBranchSQL = `
	select ` + BranchColumns + `
	from conversations c
	join branches b on b.account_id = c.account_id and b.conversation_id = c.conversation_id and b.branch_id = @branch` + JoinBase + `
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible

func readBranch(ctx context.Context, tx *pg.Tx, account protocol.AccountID, conversation protocol.ConversationID,
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

// GetBranch reads one branch of a conversation.
func (s *Store) GetBranch(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, branch protocol.BranchID) (*protocol.Branch, error) {
	return pg.Row(ctx, s.db, account, pgx.RowToAddrOfStructByName[protocol.Branch], selectBranchSQL,
		pgx.NamedArgs{"account": account, "conversation": conversation, "branch": branch})
}

const listBranchesSQL = `
	select ` + BranchColumns + `
	from conversations c
	join branches b on b.account_id = c.account_id and b.conversation_id = c.conversation_id` + JoinBase + `
	where c.account_id = @account and c.conversation_id = @conversation and ` + Visible + ` and b.branch_id > @after
	order by b.branch_id
	limit @limit`

// ListBranches returns a page of the branches of a conversation in the order of their creation, starting after a
// branch; the zero identifier starts at the beginning. next is nil at the end.
func (s *Store) ListBranches(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID,
	after protocol.BranchID, limit int,
) (page []protocol.Branch, next *protocol.BranchID, err error) {
	page, err = RowsOfConversation[protocol.Branch](ctx, s.db, account, listBranchesSQL, pgx.NamedArgs{
		"account": account, "conversation": conversation, "after": after, "limit": limit + 1,
	})
	if err != nil {
		return nil, nil, err
	}
	return pg.NextPage(page, limit, func(last *protocol.Branch) protocol.BranchID { return last.BranchID })
}

const renameBranchSQL = `
	update branches set name = @name, version = version + 1
	where account_id = @account and branch_id = @branch`

// RenameBranch sets the name of a branch; an empty name removes it. A version that is not nil must be the current one;
// otherwise the error is protocol.CodeStaleVersion with the branch. The same name again changes nothing.
func (s *Store) RenameBranch(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	branch protocol.BranchID, name string, version *int64,
) (renamed *protocol.Branch, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := LockConversation(ctx, tx, account, id); err != nil {
			return err
		}
		if renamed, err = readBranch(ctx, tx, account, id, branch); err != nil {
			return err
		}
		if version != nil && *version != renamed.Version {
			return protocol.Conflict(protocol.CodeStaleVersion, renamed, "The branch has changed since that version.")
		}
		if renamed.Name == name {
			return nil
		}
		renamed.Name, renamed.Version = name, renamed.Version+1
		batch := &pgx.Batch{}
		batch.Queue(renameBranchSQL, pgx.NamedArgs{"account": account, "branch": branch, "name": name})
		return tx.CommitWith(ctx, batch)
	})
	return renamed, err
}

// SetActiveBranch switches a conversation to one of its branches. While a turn is live, the error is
// protocol.CodeTurnInProgress, because the turn writes on the active branch.
func (s *Store) SetActiveBranch(ctx context.Context, account protocol.AccountID, id protocol.ConversationID,
	branch protocol.BranchID, version *int64,
) (conversation *protocol.Conversation, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := LockConversation(ctx, tx, account, id)
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
			return TurnInProgress(*locked.LiveTurnID)
		}
		args := pgx.NamedArgs{"account": account, "conversation": id, "branch": branch}
		if _, err := tx.Exec(ctx, ActivateBranchSQL, args); err != nil {
			return fmt.Errorf("switching to a branch: %w", err)
		}
		conversation, err = readConversation(ctx, tx, account, id)
		return err
	})
	return conversation, err
}
