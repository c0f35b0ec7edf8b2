package turns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"turnstone/persistence/followups/queues"
	"turnstone/persistence/jobs"
	"turnstone/persistence/journal"
	"turnstone/persistence/pg"
	"turnstone/persistence/usage"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

// FinishTurn stores the last batch of a turn and everything else that its end changes, in one transaction, and starts
// the next turn from the queue, if the queue continues. Repeating a finish that was committed succeeds without an
// effect. If that finish started a turn, the repetition does not return it; the node finds it when it compares its
// turns with its actors.
func (t *Store) FinishTurn(ctx context.Context, finish *turnlog.Finish, on turnlog.Runner) (*turnlog.Started, error) {
	replay, err := t.buildReplay(ctx, finish)
	if err != nil {
		return nil, fmt.Errorf("folding the log of a turn: %w", err)
	}
	var f *turnFinish
	err = t.db.InTx(ctx, finish.AccountID, func(ctx context.Context, tx *pg.Tx) error {
		f = &turnFinish{Finish: finish, on: on, turns: t, tx: tx, replay: replay}
		return f.run(ctx)
	})
	if err == nil || errors.Is(err, errNoChange) {
		t.conversations.ForgetStreaming(finish.AccountID, finish.TurnID)
	}
	switch {
	case errors.Is(err, errNoChange):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("finishing a turn: %w", err)
	default:
		return f.started, nil
	}
}

// replayRow is the row of turn_replays.
type replayRow struct {
	before int64 // the last sequence before the events of the finish
	*replayBlocks
}

// buildReplay builds the replay row before the transaction begins, so that no lock is held during that time. The events
// that the owner has appended do not change any more; if another owner has appended events since, the fence refuses the
// whole finish.
func (t *Store) buildReplay(ctx context.Context, finish *turnlog.Finish) (*replayRow, error) {
	if finish.Repaired {
		return t.buildRepairedReplay(ctx, finish)
	}
	var log turnLog
	batch := &pgx.Batch{}
	batch.Queue(loadEventsSQL, finish.AccountID, finish.TurnID).Query(log.read)
	if err := t.db.Send(ctx, finish.AccountID, batch); err != nil {
		return nil, err
	}
	return &replayRow{before: log.last, replayBlocks: compressBlocks(append(log.frames, finish.Frames...))}, nil
}

// buildRepairedReplay builds the replay row of a turn whose log is damaged, so that its readers get every sequence
// once.
func (t *Store) buildRepairedReplay(ctx context.Context, finish *turnlog.Finish) (*replayRow, error) {
	stored, err := t.RepairTurn(ctx, finish.AccountID, finish.TurnID)
	if err != nil {
		return nil, err
	}
	return &replayRow{before: stored.Head.LastSequence, replayBlocks: compressBlocks(append(stored.Frames, finish.Frames...))}, nil
}

// turnFinish is one attempt at a finish.
type turnFinish struct {
	*turnlog.Finish
	on      turnlog.Runner
	turns   *Store
	tx      *pg.Tx
	replay  *replayRow
	started *turnlog.Started

	skipTitle bool // no title is to be generated: there is one, the conversation is temporary, or the user decided
	deleted   bool
	position  journal.Position
	next      *queueItem
	promoted  *queueItem // the first item that interrupts this turn; nil after a turn that completed
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
	if f.State == protocol.TurnCompleted && !f.skipTitle && !f.deleted {
		err := f.turns.queue.Insert(ctx, f.tx, TitleArgs{AccountID: f.AccountID, ConversationID: f.Spec.ConversationID, TurnID: f.TurnID})
		if err != nil {
			return err
		}
	}
	f.queueRecords(batch)
	return f.tx.CommitWith(ctx, batch)
}

// queueRecords adds the statement that stores the private records. It is the last one, because it may lock the audit of the
// account: a transaction that holds this lock waits for no other.
func (f *turnFinish) queueRecords(batch *pgx.Batch) {
	if len(f.Records) == 0 {
		return
	}
	var r journal.Records
	r.Add(f.AccountID, f.TurnID, f.Records)
	batch.Queue(insertRecordsSQL, r.Accounts, r.Turns, r.Kinds, r.Keys, r.Sequences, r.Bodies)
}

// read locks the conversation first, as every other transaction does, and then the turn, and reads what the finish
// depends on.
func (f *turnFinish) read(ctx context.Context) error {
	conversation := f.Spec.ConversationID
	batch := &pgx.Batch{}
	batch.Queue(lockEndingSQL, f.AccountID, conversation).QueryRow(fencedRow(&f.skipTitle, &f.deleted))
	batch.Queue(lockTurnSQL, f.AccountID, f.TurnID).QueryRow(fencedRow(&f.position.Owner, &f.position.Epoch, &f.position.Next, &f.position.State))
	batch.Queue(nextQueuedSQL, f.AccountID, conversation).Query(firstItem(&f.next))
	if f.State != protocol.TurnCompleted {
		batch.Queue(promotedSQL, f.AccountID, conversation, f.TurnID).Query(firstItem(&f.promoted))
	}
	return f.tx.Run(ctx, batch)
}

// firstItem returns a callback that reads at most one item of a queue.
func firstItem(into **queueItem) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		items, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[queueItem])
		if len(items) > 0 {
			*into = items[0]
		}
		return err
	}
}

// fencedRow scans a row; if there is none, the conversation was purged, and the error is ownership.ErrFenced.
func fencedRow(targets ...any) func(pgx.Row) error {
	return func(row pgx.Row) error {
		err := row.Scan(targets...)
		if errors.Is(err, pgx.ErrNoRows) {
			return ownership.ErrFenced
		}
		return err
	}
}

// errLogIncomplete means that chunks of an owned turn are missing: a defect, since appends are stored in order.
var errLogIncomplete = errors.New("the log of a turn does not reach its next sequence")

// fence returns an error unless the turn still has this owner and epoch and the finish is its next batch. It returns
// errNoChange if this finish was already committed.
func (f *turnFinish) fence() error {
	ours := f.position.Owner != nil && *f.position.Owner == f.Owner && f.position.Epoch == f.Epoch
	switch {
	case ours && f.position.State == f.State && f.position.Next == f.Last+1: // this finish was already committed
		return errNoChange
	case !ours || f.position.State.Terminal() || f.position.Next != f.First:
		return ownership.ErrFenced
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
    model_id = coalesce(nullif(@model, ''), model_id), profile = coalesce(nullif(@profile, ''), profile)
where account_id = @account and message_id = @answer`
	freeConversationSQL = `
update conversations set live_turn_id = null, last_activity_at = @at
where account_id = @account and conversation_id = @conversation`
	promotedSQL = `
select follow_up_id, content, attachments, profile, tools
from follow_ups where account_id = $1 and conversation_id = $2 and state = 'queued' and interrupts_turn_id = $3
order by position, follow_up_id limit 1`
)

// queue adds the statements that end the turn itself.
func (f *turnFinish) queue(batch *pgx.Batch) error {
	used, err := pg.JSONText(f.Usage)
	if err != nil {
		return err
	}
	parts, err := pg.JSONText(append([]protocol.Part{}, f.Parts...))
	if err != nil {
		return err
	}
	args := pgx.NamedArgs{
		"account": f.AccountID, "turn": f.TurnID, "conversation": f.Spec.ConversationID, "answer": f.Spec.AssistantMessageID,
		"state": string(f.State), "first": f.First, "last": f.Last, "epoch": f.Epoch, "frames": f.Frames, "at": protocol.Millis(f.At),
		"stop_reason": string(f.StopReason), "usage": used, "error": f.Error, "raw_bytes": f.replay.rawBytes, "replay": f.replay.compressed,
		"block_ends": f.replay.ends, "block_offsets": f.replay.offsets,
		"status": string(f.Status), "parts": parts, "model": f.ModelID, "profile": string(f.Spec.Routing.Profile),
	}
	batch.Queue(insertEventsSQL, args)
	batch.Queue(endTurnSQL, args)
	batch.Queue(insertReplaySQL, args)
	batch.Queue(endMessageSQL, args)
	batch.Queue(freeConversationSQL, args)
	err = usage.Queue(batch, &usage.Record{
		AccountID: f.AccountID, ConversationID: f.Spec.ConversationID, Kind: usage.KindTurn, TurnID: &f.TurnID,
		Profile: string(f.Spec.Routing.Profile), Model: f.ModelID, Usage: f.Usage, At: f.At,
	})
	if err != nil {
		return err
	}
	if !f.deleted {
		f.queueFollowUps(batch)
	}
	return nil
}

// queueFollowUps stores returned steering inputs as held follow-ups. If this end stops the queue, it also cancels the
// queued items, or holds those that do not interrupt this turn.
func (f *turnFinish) queueFollowUps(batch *pgx.Batch) {
	conversation := f.Spec.ConversationID
	queues.AppendReturned(batch, f.AccountID, conversation, f.At, f.Returned)
	if f.next == nil || !f.DropQueue && !f.PauseQueue {
		return
	}
	if f.DropQueue {
		queues.Cancel(batch, f.AccountID, conversation)
	} else {
		queues.Hold(batch, f.AccountID, conversation, f.TurnID)
	}
	if len(f.Returned) == 0 { // otherwise AppendReturned has raised the version
		queues.Touch(batch, f.AccountID, conversation)
	}
}

// queueNext starts the turn of the first queued item, if this end lets the queue continue, or of the first item that
// interrupts this turn. If the turn cannot start, the item stays queued and a sweep starts it.
func (f *turnFinish) queueNext(ctx context.Context, batch *pgx.Batch) (err error) {
	next := f.promoted
	if f.State == protocol.TurnCompleted && !f.PauseQueue {
		next = f.next
	}
	if next == nil || f.deleted || f.DropQueue || f.on.Begin == nil {
		return nil
	}
	queue := &turnlog.Queue{AccountID: f.AccountID, ConversationID: f.Spec.ConversationID, At: f.At}
	f.started, err = startQueued(ctx, f.tx, batch, queue, f.on, next, 1, f.turns.log)
	return err
}

// TitleArgs is the job that generates an automatic title of a conversation.
type TitleArgs struct {
	AccountID      protocol.AccountID      `json:"account_id" river:"unique"`
	ConversationID protocol.ConversationID `json:"conversation_id" river:"unique"`
	TurnID         protocol.TurnID         `json:"turn_id"` // the turn whose end enqueued the job
}

// Kind returns the name of the job.
func (TitleArgs) Kind() string { return "title" }

// InsertOpts allows one job of a conversation at a time.
func (TitleArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: jobs.TitleQueue, MaxAttempts: maxTitleAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

const (
	maxTitleAttempts = 3
	titleTimeout     = 5 * time.Minute // of all routes of models together; each call of a model has a limit of its own
)

// TitleJob returns the job that calls title for a conversation whose first turn has ended.
func TitleJob(title func(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, turn protocol.TurnID) error) jobs.Job {
	return jobs.NewLong(titleTimeout, func(ctx context.Context, args TitleArgs) error {
		return title(ctx, args.AccountID, args.ConversationID, args.TurnID)
	})
}
