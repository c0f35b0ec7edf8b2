// Package feedback stores the account's ratings of answers. A rating is a column of its message, so it is read, copied and
// erased with the message. Package http/feedback is its only user.
package feedback

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Store stores feedback. Its methods may be called from any goroutine.
type Store struct{ db *pg.DB }

// New returns a store.
func New(db *pg.DB) *Store { return &Store{db} }

// searchedMessages is the number of messages, from the head of the branch, among which the latest eligible response is
// searched. It bounds the search in a branch in which no turn succeeds.
const searchedMessages = 200

// latestSQL walks from the head of the active branch towards its first message, to the newest answer that is complete or
// incomplete.
const latestSQL = `
	with recursive head as materialized (
		select branch_id, head_depth from branches where account_id = @account and branch_id = @branch
	), walk (branch_id, steps, depth, message_id, feedback, eligible) as (
		select branch_id, 0, head_depth + 1, null::uuid, null::jsonb, false from head
		union all
		select w.branch_id, w.steps + 1, w.depth - 1, m.message_id, m.feedback, m.role = 'assistant' and m.status in ('complete', 'incomplete')
		from walk w
		cross join lateral (
			select source_branch_id from branch_segments
			where account_id = @account and branch_id = w.branch_id and to_depth >= w.depth - 1
			order by to_depth limit 1) s
		cross join lateral (
			select message_id, role, status, feedback from messages
			where account_id = @account and branch_id = s.source_branch_id and depth = w.depth - 1 limit 1) m
		where not w.eligible and w.steps < @most and w.depth > 1
	)
	select message_id, feedback from walk where eligible`

const setSQL = `update messages set feedback = @feedback where account_id = @account and message_id = @message`

// Set replaces the feedback on the latest eligible response of a conversation; nil removes it. message is the response that
// the client means; nil: whichever it is. If the response is another one, or there is none, the error is a conflict that
// carries the current response with its feedback.
func (s *Store) Set(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID,
	message *protocol.MessageID, feedback *protocol.Feedback,
) (rated *protocol.RatedResponse, err error) {
	err = s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		locked, err := conversations.LockConversation(ctx, tx, account, conversation)
		if err != nil {
			return err
		}
		if rated, err = latest(ctx, tx, account, locked.ActiveBranchID); err != nil {
			return err
		}
		if rated.MessageID == nil {
			return protocol.Conflict(protocol.CodeConflict, rated, "The conversation has no response to rate.")
		}
		if message != nil && *message != *rated.MessageID {
			return protocol.Conflict(protocol.CodeConflict, rated, "Feedback applies to the latest response, which is another one.")
		}
		if feedback == nil && rated.Feedback == nil {
			return nil
		}
		args := pgx.NamedArgs{"account": account, "message": rated.MessageID, "feedback": feedback}
		if _, err := tx.Exec(ctx, setSQL, args); err != nil {
			return fmt.Errorf("storing feedback: %w", err)
		}
		rated.Feedback = feedback
		return nil
	})
	return rated, err
}

func latest(ctx context.Context, tx *pg.Tx, account protocol.AccountID, branch protocol.BranchID) (*protocol.RatedResponse, error) {
	rows, err := tx.Query(ctx, latestSQL, pgx.NamedArgs{"account": account, "branch": branch, "most": searchedMessages})
	if err != nil {
		return nil, fmt.Errorf("finding the latest response: %w", err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[protocol.RatedResponse])
	if errors.Is(err, pgx.ErrNoRows) {
		return &protocol.RatedResponse{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding the latest response: %w", err)
	}
	return found, nil
}
