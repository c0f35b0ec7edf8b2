package turns

import (
	"context"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/accounts"
	"turnstone/persistence/conversations"
	"turnstone/persistence/followups/queues"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// enqueue adds the input to the end of the conversation's queue, under the lock that ending the live turn takes. So the
// end of the turn either sees the item or was committed before it.
func (s *turnStart) enqueue(ctx context.Context) error {
	batch := &pgx.Batch{}
	if err := conversations.AttachFiles(ctx, s.tx, s.AccountID, *s.ConversationID, s.Attachments); err != nil {
		return err
	}
	item, err := queues.Append(ctx, s.tx, batch, &turnlog.NewFollowUp{
		Queue:   turnlog.Queue{AccountID: s.AccountID, ConversationID: *s.ConversationID, At: s.At},
		Content: s.Input, Attachments: s.Attachments, Profile: s.Profile, Tools: s.Tools,
	})
	if err != nil {
		return err
	}
	if err := s.queueFollowUpResponse(batch, item); err != nil {
		return err
	}
	s.result = &turnlog.StartResult{FollowUp: item}
	return s.tx.CommitWith(ctx, batch)
}

// queueItem is the first queued item of a conversation.
type queueItem struct {
	FollowUpID  protocol.FollowUpID
	Content     string
	Attachments []protocol.FileID
	Profile     *protocol.Profile
	Tools       *protocol.ToolChoice
}

const nextQueuedSQL = `
select follow_up_id, content, attachments, profile, tools
from follow_ups where account_id = $1 and conversation_id = $2 and state = 'queued'
order by position, follow_up_id limit 1`

// startQueued plans the turn of an item of a queue, and adds the statements to batch that store it. It returns nil if the
// turn has to wait: it is refused now, or it cannot begin, which is logged. If a turn is live in the conversation, it ends
// in this transaction; ending is the number of live turns of the account that end in it.
func startQueued(ctx context.Context, tx *pg.Tx, batch *pgx.Batch, queue *turnlog.Queue, on turnlog.Runner, item *queueItem, ending int, log *zap.Logger) (
	*turnlog.Started, error,
) {
	next := request{&turnlog.Start{
		AccountID: queue.AccountID, ConversationID: &queue.ConversationID, At: queue.At, Input: item.Content, Attachments: item.Attachments, Tools: item.Tools,
	}, on}
	if item.Profile != nil {
		next.Profile = *item.Profile
	}
	var f startFacts
	reads := &pgx.Batch{}
	next.queueConversation(reads, &f.conversation)
	reads.Queue(accounts.LockAccountSQL, queue.AccountID)
	next.queueFacts(reads, &f)
	if err := tx.Run(ctx, reads); err != nil {
		return nil, err
	}
	f.liveTurns, f.conversation.live = f.liveTurns-ending, nil
	does, plan, refused := decide(next.Start, &f, on.MaxLiveTurns)
	if refused != nil || does != startsTurn {
		return nil, nil // the turn waits
	}
	plan.turn, plan.followUp = protocol.NewTurnID(), &item.FollowUpID
	row, err := plan.begin(on)
	if err != nil {
		log.Error("a turn from the queue cannot start", zap.Stringer("conversation_id", plan.conversation), zap.Error(err))
		return nil, nil
	}
	if err := row.queue(batch); err != nil {
		return nil, err
	}
	queues.Start(batch, plan.account, plan.conversation, item.FollowUpID, plan.turn)
	return &turnlog.Started{Spec: row.spec, Begin: row.begin, Epoch: 1}, nil
}

// StartNext plans a turn for the first queued item of a conversation. The caller has locked the conversation, and no
// turn is live in it. The batch stores the turn; both results are nil if nothing is queued or the turn has to wait.
func StartNext(ctx context.Context, tx *pg.Tx, queue *turnlog.Queue, on turnlog.Runner, log *zap.Logger) (*turnlog.Started, *pgx.Batch, error) {
	rows, err := tx.Query(ctx, nextQueuedSQL, queue.AccountID, queue.ConversationID)
	if err != nil {
		return nil, nil, err
	}
	items, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[queueItem])
	if err != nil || len(items) == 0 {
		return nil, nil, err
	}
	batch := &pgx.Batch{}
	started, err := startQueued(ctx, tx, batch, queue, on, items[0], 0, log)
	if started == nil {
		return nil, nil, err
	}
	return started, batch, nil
}
