package turns

import (
	"context"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/accounts"
	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

const (
	queueLengthSQL = `
select (select count(*) from (
           select from follow_ups where account_id = $1 and conversation_id = $2 and state in ('queued', 'held') limit $3) waiting),
       (select coalesce(max(position), 0) from follow_ups where account_id = $1 and conversation_id = $2)`
	insertFollowUpSQL = `
insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, attachments, profile, position, created_at)
values (@account, @follow_up, @conversation, 'queued', @content, @attachments, @profile, @position, @at)`
	// TouchQueueSQL raises the version of a queue. Every transaction that changes a queue runs it.
	TouchQueueSQL = `
update conversations set queue_version = queue_version + 1 where account_id = $1 and conversation_id = $2`
)

// enqueue adds the input to the end of the conversation's queue, under the lock that ending the live turn takes. So the
// end of the turn either sees the item or was committed before it.
func (s *turnStart) enqueue(ctx context.Context) error {
	batch := &pgx.Batch{}
	item, err := Enqueue(ctx, s.tx, batch, &turnlog.NewFollowUp{
		Queue:   turnlog.Queue{AccountID: s.AccountID, ConversationID: *s.ConversationID, At: s.At},
		Content: s.Input, Attachments: s.Attachments, Profile: s.Profile,
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

// Enqueue adds the statements to batch that store a follow-up at the end of its queue. The caller has locked the
// conversation. The error is protocol.CodeTooManyFollowUps if the queue is full, and that of conversations.CheckFiles.
func Enqueue(ctx context.Context, tx *pg.Tx, batch *pgx.Batch, f *turnlog.NewFollowUp) (*protocol.FollowUp, error) {
	if err := conversations.CheckFiles(ctx, tx, f.AccountID, f.Attachments); err != nil {
		return nil, err
	}
	var waiting int
	var last int64
	if err := tx.QueryRow(ctx, queueLengthSQL, f.AccountID, f.ConversationID, protocol.MaxFollowUps).Scan(&waiting, &last); err != nil {
		return nil, err
	}
	if waiting >= protocol.MaxFollowUps {
		return nil, protocol.Errorf(protocol.CodeTooManyFollowUps,
			"%d follow-ups wait in this conversation, which is the limit. Cancel one, or wait until one has started.", waiting)
	}
	item := &protocol.FollowUp{
		FollowUpID: protocol.NewFollowUpID(), State: protocol.FollowUpQueued, Content: f.Content, Attachments: append([]protocol.FileID{}, f.Attachments...),
		Position: last + 1, Version: 1, CreatedAt: millis(f.At),
	}
	if f.Profile != "" {
		item.Profile = &f.Profile
	}
	batch.Queue(insertFollowUpSQL, pgx.NamedArgs{
		"account": f.AccountID, "conversation": f.ConversationID, "follow_up": item.FollowUpID, "content": item.Content, "attachments": item.Attachments,
		"profile": item.Profile, "position": item.Position, "at": item.CreatedAt,
	})
	batch.Queue(TouchQueueSQL, f.AccountID, f.ConversationID)
	return item, nil
}

// queueItem is the first queued item of a conversation.
type queueItem struct {
	FollowUpID  protocol.FollowUpID
	Content     string
	Attachments []protocol.FileID
	Profile     *protocol.Profile
}

const (
	nextQueuedSQL = `
select follow_up_id, content, attachments, profile
from follow_ups where account_id = $1 and conversation_id = $2 and state = 'queued'
order by position, follow_up_id limit 1`
	startFollowUpSQL = `
update follow_ups set state = 'started', turn_id = $4, version = version + 1
where account_id = $1 and conversation_id = $2 and follow_up_id = $3`
)

// queuedTurn reads what a turn from the queue depends on and plans the turn. It returns nil if the turn has to wait,
// because the account is at its limit, the node accepts no turns, or the project of the conversation is not active. ending is the number of live turns that end in this
// transaction.
func queuedTurn(ctx context.Context, tx *pg.Tx, plan turnPlan, item *queueItem, ending, maxLive int) (*turnPlan, error) {
	var c startConversation
	var f startFacts
	batch := &pgx.Batch{}
	batch.Queue(accounts.LockAccountSQL, plan.account)
	batch.Queue(startFactsSQL, plan.account, plan.owner, plan.conversation, nil).QueryRow(f.scan)
	batch.Queue(lockForTurnSQL, plan.account, plan.conversation).QueryRow(optional(&c.found, &c.branch, &c.live, &c.profile, &c.queueVersion))
	batch.Queue(branchHeadSQL, plan.account, plan.conversation).QueryRow(func(row pgx.Row) error {
		return row.Scan(&c.head, &c.headDepth, &c.headRole, &c.headParent, &c.headParts, &c.headFiles, &c.headProfile)
	})
	if err := tx.Run(ctx, batch); err != nil {
		return nil, err
	}
	if !f.ownerAlive || f.liveTurns-ending >= maxLive || !c.found || !f.project.takesTurns() {
		return nil, nil
	}
	plan.turn, plan.followUp = protocol.NewTurnID(), &item.FollowUpID
	plan.input, plan.attachments = item.Content, item.Attachments
	plan.requested = firstProfile(item.Profile, c.profile, f.project.defaultProfile, f.defaultProfile)
	plan.branch, plan.parent, plan.depth, plan.previous = c.branch, c.head, c.headDepth, c.headProfile
	plan.project = &f.project
	return &plan, nil
}

// StartNext plans a turn for the first queued item of a conversation. The caller has locked the conversation, and no
// turn is live in it. The batch stores the turn; both results are nil if nothing is queued or the turn has to wait.
func StartNext(ctx context.Context, tx *pg.Tx, queue *turnlog.Queue, on turnlog.Runner, log *zap.Logger) (*turnlog.Started, *pgx.Batch, error) {
	plan := turnPlan{account: queue.AccountID, conversation: queue.ConversationID, owner: on.NodeID, at: millis(queue.At)}
	rows, err := tx.Query(ctx, nextQueuedSQL, plan.account, plan.conversation)
	if err != nil {
		return nil, nil, err
	}
	items, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[queueItem])
	if err != nil || len(items) == 0 {
		return nil, nil, err
	}
	planned, err := queuedTurn(ctx, tx, plan, items[0], 0, on.MaxLiveTurns)
	if err != nil || planned == nil {
		return nil, nil, err
	}
	spec, first, err := planned.begin(on.Begin)
	if err != nil {
		log.Error("a turn from the queue cannot start", zap.Stringer("conversation_id", plan.conversation), zap.Error(err))
		return nil, nil, nil
	}
	batch := &pgx.Batch{}
	if err := planned.queueStarted(batch, spec, first); err != nil {
		return nil, nil, err
	}
	return &turnlog.Started{Spec: spec, Begin: first, Epoch: 1}, batch, nil
}

// queueStarted adds the statements that store a turn from the queue.
func (p *turnPlan) queueStarted(batch *pgx.Batch, spec *turnlog.Spec, begin turnlog.Begin) error {
	if err := p.queue(batch, spec, begin); err != nil {
		return err
	}
	batch.Queue(startFollowUpSQL, p.account, p.conversation, *p.followUp, p.turn)
	batch.Queue(TouchQueueSQL, p.account, p.conversation)
	return nil
}
