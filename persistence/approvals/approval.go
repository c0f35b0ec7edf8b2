// Package approvals reads the approvals of tool calls. Nothing is written here: an approval and the decision on it are records
// of the log of a turn. The trigger store_approval keeps the table that this package reads (migrations/052_approvals.sql).
package approvals

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Store reads approvals. Its methods may be called from any goroutine.
type Store struct{ db *pg.DB }

// New returns a store.
func New(db *pg.DB) *Store { return &Store{db} }

// A pending approval whose time has passed is shown as expired before a node stores that.
const (
	decided = `coalesce(a.decision, case when a.expires_at <= now() then 'expired' end), coalesce(a.decided_at, case when a.expires_at <= now() then a.expires_at end)`
	brief   = `a.approval_id, ` + conversations.ApprovalBody + `, ` + decided
	// visible selects approvals whose conversations are visible. The planner may turn "exists" into a join, which reads all approvals of
	// the account for each page; a subquery that returns a value is evaluated for each row of the page only.
	visible = `(select ` + conversations.Visible + ` from conversations c where c.account_id = a.account_id and c.conversation_id = a.conversation_id)`
	getSQL  = `
select a.approval_id, a.body, ` + decided + ` from approvals a where a.account_id = @account and a.approval_id = @approval and ` + visible
	listPendingSQL = `
select ` + brief + ` from approvals a
where a.account_id = @account and a.approval_id < @after and a.decision is null and a.expires_at > now() and ` + visible + `
order by a.approval_id desc limit @limit`
	listDecidedSQL = `
select ` + brief + ` from approvals a
where a.account_id = @account and a.approval_id < @after and (a.decision is not null or a.expires_at <= now()) and ` + visible + `
order by a.approval_id desc limit @limit`
	listSQL = `
select ` + brief + ` from approvals a
where a.account_id = @account and a.approval_id < @after and ` + visible + `
order by a.approval_id desc limit @limit`
)

func scan(row pgx.CollectableRow) (a protocol.Approval, err error) {
	var id protocol.ApprovalID
	var decision *protocol.Decision
	err = row.Scan(&id, &a, &decision, &a.DecidedAt)
	a.ApprovalID = id
	if err == nil && decision != nil {
		err = a.Decide(*decision, a.DecidedAt)
	}
	return a, err
}

// Get reads an approval; protocol.CodeNotFound if the account has no such approval.
func (s *Store) Get(ctx context.Context, account protocol.AccountID, id protocol.ApprovalID) (*protocol.Approval, error) {
	a, err := pg.Row(ctx, s.db, account, scan, getSQL, pgx.NamedArgs{"account": account, "approval": id})
	if err != nil {
		return nil, fmt.Errorf("reading an approval: %w", err)
	}
	return &a, nil
}

// The values of a filter of List.
const (
	Pending = "pending"
	Decided = "decided"
	Any     = "any"
)

// List returns a page of the approvals of an account, newest first, after an approval; nil starts at the beginning. next is nil
// at the end.
func (s *Store) List(ctx context.Context, account protocol.AccountID, filter string, after *protocol.ApprovalID, limit int) (
	page []protocol.Approval, next *protocol.ApprovalID, err error,
) {
	args := pgx.NamedArgs{"account": account, "after": pg.HighestID, "limit": limit + 1}
	if after != nil {
		args["after"] = *after
	}
	sql := map[string]string{Pending: listPendingSQL, Decided: listDecidedSQL, Any: listSQL}[filter]
	page, err = pg.Rows(ctx, s.db, account, scan, sql, args)
	if err != nil {
		return nil, nil, fmt.Errorf("listing approvals: %w", err)
	}
	return pg.NextPage(page, limit, func(last *protocol.Approval) protocol.ApprovalID { return last.ApprovalID })
}

const grantsSQL = `
select distinct tool_name, resource, definition from approvals
where account_id = $1 and conversation_id = $2 and decision = 'approve_for_conversation'
limit 1000`

// Grants returns the calls that the user has approved for the rest of a conversation.
func (s *Store) Grants(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID) ([]turnlog.Grant, error) {
	grants, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByPos[turnlog.Grant], grantsSQL, account, conversation)
	if err != nil {
		return nil, fmt.Errorf("reading the grants of a conversation: %w", err)
	}
	return grants, nil
}
