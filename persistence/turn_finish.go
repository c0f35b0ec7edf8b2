package persistence

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/protocol"
)

// FinishTurn stores the last batch and all that ends with a turn, in one transaction, and begins what follows from the
// queue. The same finish again is a success without effect; a turn that it began is then found by the node's own
// comparison of turns and actors.
func (t *Turns) FinishTurn(ctx context.Context, finish *protocol.TurnFinish) (*protocol.StartedTurn, error) {
	replay, err := t.fold(ctx, finish)
	if err != nil {
		return nil, fmt.Errorf("folding the log of a turn: %w", err)
	}
	var f *turnFinish
	err = t.db.InTx(ctx, finish.AccountID, func(ctx context.Context, tx *Tx) error {
		f = &turnFinish{TurnFinish: finish, turns: t, tx: tx, replay: replay}
		return f.run(ctx)
	})
	if err == nil || errors.Is(err, errAnswered) {
		t.db.streaming.forget(finish.AccountID, finish.TurnID)
	}
	switch {
	case errors.Is(err, errAnswered):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("finishing a turn: %w", err)
	default:
		return f.started, nil
	}
}

// foldedLog is the row of turn_replays.
type foldedLog struct {
	before int64 // the sequence of the last event before the finish's own
	*replayBlocks
}

// fold makes the replay row before the transaction begins, so that no lock is held meanwhile: what an owner has appended
// does not change any more, and if somebody else has appended since, the fence refuses all of it.
func (t *Turns) fold(ctx context.Context, finish *protocol.TurnFinish) (*foldedLog, error) {
	if finish.Mended {
		return t.foldMended(ctx, finish)
	}
	var log turnLog
	batch := &pgx.Batch{}
	batch.Queue(loadEventsSQL, finish.AccountID, finish.TurnID).Query(log.read)
	if err := t.db.Send(ctx, finish.AccountID, batch); err != nil {
		return nil, err
	}
	return &foldedLog{before: log.last, replayBlocks: compressBlocks(append(log.frames, finish.Frames...))}, nil
}

// foldMended makes the replay row of a turn whose log is damaged, so that its readers get every sequence once.
func (t *Turns) foldMended(ctx context.Context, finish *protocol.TurnFinish) (*foldedLog, error) {
	stored, err := t.MendTurn(ctx, finish.AccountID, finish.TurnID)
	if err != nil {
		return nil, err
	}
	return &foldedLog{before: stored.Head.LastSequence, replayBlocks: compressBlocks(append(stored.Frames, finish.Frames...))}, nil
}

// turnFinish is one attempt at a finish.
type turnFinish struct {
	*protocol.TurnFinish
	turns   *Turns
	tx      *Tx
	replay  *foldedLog
	started *protocol.StartedTurn

	titled  bool // the conversation has a title, gets none (it is temporary), or the user decided about it
	deleted bool
	place   turnPlace
	next    *queueItem
}

const (
	lockEndingSQL = `
select title <> '' or title_source <> 'auto' or temporary, deleted_at is not null
from conversations where account_id = $1 and conversation_id = $2
for update`
	lockTurnSQL = `
select owner, owner_epoch, next_sequence, state from turns where account_id = $1 and turn_id = $2
for update`
)

func (f *turnFinish) run(ctx context.Context) error {
	if err := f.read(ctx); err != nil {
		return err
	}
	if err := f.fence(); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	if err := f.queue(batch); err != nil {
		return err
	}
	if err := f.queueNext(ctx, batch); err != nil {
		return err
	}
	if f.State == protocol.TurnCompleted && !f.titled && !f.deleted {
		err := f.turns.db.enqueue(ctx, f.tx, TitleArgs{AccountID: f.AccountID, ConversationID: f.Spec.ConversationID, TurnID: f.TurnID})
		if err != nil {
			return err
		}
	}
	return f.tx.CommitWith(ctx, batch)
}

// read takes the locks, the conversation's first as every other does, and reads what decides.
func (f *turnFinish) read(ctx context.Context) error {
	conversation := f.Spec.ConversationID
	batch := &pgx.Batch{}
	batch.Queue(lockEndingSQL, f.AccountID, conversation).QueryRow(fencedRow(&f.titled, &f.deleted))
	batch.Queue(lockTurnSQL, f.AccountID, f.TurnID).QueryRow(fencedRow(&f.place.owner, &f.place.epoch, &f.place.next, &f.place.state))
	batch.Queue(nextQueuedSQL, f.AccountID, conversation).Query(func(rows pgx.Rows) error {
		items, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[queueItem])
		if len(items) > 0 {
			f.next = items[0]
		}
		return err
	})
	return f.tx.Run(ctx, batch)
}

// fencedRow scans a row without which the turn is gone: its conversation was purged.
func fencedRow(targets ...any) func(pgx.Row) error {
	return func(row pgx.Row) error {
		err := row.Scan(targets...)
		if errors.Is(err, pgx.ErrNoRows) {
			return protocol.ErrFenced
		}
		return err
	}
}

// errLogIncomplete says that chunks of an owned turn are missing: a defect, since appends are in order.
var errLogIncomplete = errors.New("the log of a turn does not reach its next sequence")

func (f *turnFinish) fence() error {
	ours := f.place.owner != nil && *f.place.owner == f.Owner && f.place.epoch == f.Epoch
	switch {
	case ours && f.place.state == f.State && f.place.next == f.Last+1: // this finish, committed before
		return errAnswered
	case !ours || f.place.state.Terminal() || f.place.next != f.First:
		return protocol.ErrFenced
	case f.replay.before != f.First-1:
		return errLogIncomplete
	default:
		return nil
	}
}

const (
	endTurnSQL = `
update turns
set state = @state, accepting = false, next_sequence = @last + 1, stop_reason = @stop_reason, usage = @usage, error = @error, finished_at = @at
where account_id = @account and turn_id = @turn`
	insertRecordsSQL = `
insert into turn_records (account_id, turn_id, kind, key, sequence, body)
select account_id, turn_id, kind, key, sequence, body::json
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[]) as r (account_id, turn_id, kind, key, sequence, body)`
	insertReplaySQL = `
insert into turn_replays (account_id, turn_id, last_sequence, raw_bytes, frames, block_ends, block_offsets)
values (@account, @turn, @last, @raw_bytes, @replay, @block_ends, @block_offsets)`
	endMessageSQL = `
update messages set status = @status, parts = @parts, usage = @usage,
    model_id = coalesce(@model, model_id), profile = coalesce(@profile, profile)
where account_id = @account and message_id = @answer`
	freeConversationSQL = `
update conversations set live_turn_id = null, last_activity_at = @at
where account_id = @account and conversation_id = @conversation`
	insertTurnUsageSQL = `
insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, model_id, usage, occurred_at)
values (@account, @usage_id, 'server', 'turn', 1, 'turn', @conversation, @turn, @profile, @model, @usage, @at)`
	parkSQL = `
insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position, source, created_at)
select @account, p.follow_up_id, @conversation, 'held', p.content,
       (select coalesce(max(position), 0) from follow_ups where account_id = @account and conversation_id = @conversation) + p.place,
       'steering', @at
from unnest(@parked::uuid[], @texts::text[]) with ordinality as p (follow_up_id, content, place)`
	settleQueueSQL = `
update follow_ups set state = @queue_state, version = version + 1
where account_id = @account and conversation_id = @conversation and state = 'queued'`
)

// queue adds the statements that end the turn itself.
func (f *turnFinish) queue(batch *pgx.Batch) error {
	usage, err := jsonText(f.Usage)
	if err != nil {
		return err
	}
	parts, err := jsonText(append([]protocol.Part{}, f.Parts...))
	if err != nil {
		return err
	}
	args := pgx.NamedArgs{
		"account": f.AccountID, "turn": f.TurnID, "conversation": f.Spec.ConversationID, "answer": f.Spec.AssistantMessageID,
		"state": string(f.State), "first": f.First, "last": f.Last, "epoch": f.Epoch, "frames": f.Frames, "at": millis(f.At),
		"stop_reason": string(f.StopReason), "usage": usage, "error": f.Error, "raw_bytes": f.replay.rawBytes, "replay": f.replay.compressed,
		"block_ends": f.replay.ends, "block_offsets": f.replay.offsets,
		"status": string(f.Status), "parts": parts, "model": nullable(f.ModelID), "profile": nullable(string(f.Spec.Routing.Profile)),
		"usage_id": protocol.NewUsageID(),
	}
	batch.Queue(insertEventsSQL, args)
	if len(f.Records) > 0 {
		var r recordColumns
		r.add(f.AccountID, f.TurnID, f.Records)
		batch.Queue(insertRecordsSQL, r.accounts, r.turns, r.kinds, r.keys, r.sequences, r.bodies)
	}
	batch.Queue(endTurnSQL, args)
	batch.Queue(insertReplaySQL, args)
	batch.Queue(endMessageSQL, args)
	batch.Queue(freeConversationSQL, args)
	batch.Queue(insertTurnUsageSQL, args)
	if !f.deleted {
		f.queueFollowUps(batch)
	}
	return nil
}

func nullable(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// queueFollowUps parks what was returned and settles what was queued, where this end stops the queue.
func (f *turnFinish) queueFollowUps(batch *pgx.Batch) {
	args := pgx.NamedArgs{"account": f.AccountID, "conversation": f.Spec.ConversationID, "at": millis(f.At)}
	if len(f.Parked) > 0 {
		ids, texts := make([]protocol.FollowUpID, len(f.Parked)), make([]string, len(f.Parked))
		for i, parked := range f.Parked {
			ids[i], texts[i] = parked.FollowUpID, parked.Text
		}
		args["parked"], args["texts"] = ids, texts
		batch.Queue(parkSQL, args)
	}
	settles := f.next != nil && (f.DropQueue || f.PauseQueue)
	if settles {
		args["queue_state"] = protocol.FollowUpHeld
		if f.DropQueue {
			args["queue_state"] = protocol.FollowUpCancelled
		}
		batch.Queue(settleQueueSQL, args)
	}
	if settles || len(f.Parked) > 0 {
		batch.Queue(touchQueueSQL, f.AccountID, f.Spec.ConversationID)
	}
}

// queueNext begins the turn of the first queued item, where this end lets the queue go on. When it cannot, the item stays
// queued and a sweep starts it.
func (f *turnFinish) queueNext(ctx context.Context, batch *pgx.Batch) error {
	if f.next == nil || f.deleted || f.State != protocol.TurnCompleted || f.PauseQueue || f.DropQueue || f.Begin == nil {
		return nil
	}
	plan, err := queuedTurn(ctx, f.tx, turnPlan{
		account: f.AccountID, conversation: f.Spec.ConversationID, owner: f.Owner, at: millis(f.At),
	}, f.next, 1, f.MaxLiveTurns)
	if err != nil || plan == nil {
		return err
	}
	spec, begin, err := plan.begin(f.Begin)
	if err != nil {
		f.turns.log.Error("a queued turn cannot begin", zap.Stringer("conversation_id", f.Spec.ConversationID), zap.Error(err))
		return nil
	}
	f.started = &protocol.StartedTurn{Spec: spec, Begin: begin, Epoch: 1}
	return plan.queueStarted(batch, spec, begin)
}
