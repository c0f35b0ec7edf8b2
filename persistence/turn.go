package persistence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/protocol"
)

// TurnsOptions are optional.
type TurnsOptions struct {
	Journal JournalOptions
	Logger  *zap.Logger
}

// Turns is the durable side of turns: what begins them, ends them, appends to them and reads them. Its methods may be
// called from any goroutine.
type Turns struct {
	db      *DB
	journal *Journal
	log     *zap.Logger
	starts  gather[*sharedStart]
}

// NewTurns starts a journal. Close ends it.
func NewTurns(db *DB, options TurnsOptions) *Turns {
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	if options.Journal.Logger == nil {
		options.Journal.Logger = options.Logger
	}
	t := &Turns{db: db, journal: NewJournal(db, options.Journal), log: options.Logger}
	t.starts = gather[*sharedStart]{atOnce: sharedStarts, most: maxSharedStart, patience: startPatience, work: t.startWaiting}
	return t
}

// Close ends the journal; appends that wait are answered with protocol.CodeUnavailable.
func (t *Turns) Close() { t.journal.Close() }

// JournalStats is live.
func (t *Turns) JournalStats() *JournalStats { return t.journal.Stats() }

// Append hands a batch to the journal; see Journal.Append.
func (t *Turns) Append(batch *protocol.TurnAppend, done func(error)) { t.journal.Append(batch, done) }

// liveStates is the condition of the partial indexes, letter by letter: a look-up uses them only under the same one.
const liveStates = `state not in ('completed', 'cancelled', 'failed', 'incomplete')`

const getTurnSQL = `
select t.conversation_id, t.state, t.stop_reason, t.accepting, t.next_sequence - 1, t.spec, t.usage, t.error,
       t.assistant_message_id, t.created_at, t.finished_at
from turns t
join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id and c.deleted_at is null
where t.account_id = $1 and t.turn_id = $2`

// GetTurn reads a turn as a client sees it; protocol.CodeNotFound when the account has none of that name.
func (t *Turns) GetTurn(ctx context.Context, account protocol.AccountID, id protocol.TurnID) (*protocol.Turn, error) {
	turn, err := Row(ctx, t.db, account, func(row pgx.CollectableRow) (*protocol.Turn, error) {
		turn := &protocol.Turn{TurnID: id, PendingApprovals: []protocol.Approval{}}
		var spec protocol.TurnSpec
		err := row.Scan(&turn.ConversationID, &turn.State, &turn.StopReason, &turn.AcceptingSteering, &turn.LastSequence, &spec,
			&turn.Usage, &turn.Error, &turn.MessageID, &turn.CreatedAt, &turn.FinishedAt)
		turn.Profile = spec.Routing.Profile
		return turn, err
	}, getTurnSQL, account, id)
	if err != nil {
		return nil, fmt.Errorf("reading a turn: %w", err)
	}
	return turn, nil
}

const headColumns = `
t.state, t.accepting, t.owner, coalesce(n.address, ''), t.owner is not null and coalesce(n.dead, true), t.owner_epoch, t.next_sequence - 1`

const turnHeadSQL = `
select ` + headColumns + `
from turns t
join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id and c.deleted_at is null
left join nodes n on n.node_id = t.owner
where t.account_id = $1 and t.turn_id = $2`

// TurnHead tells where a turn stands.
func (t *Turns) TurnHead(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (protocol.TurnHead, error) {
	head, err := Row(ctx, t.db, account, func(row pgx.CollectableRow) (h protocol.TurnHead, err error) {
		return h, row.Scan(headTargets(&h)...)
	}, turnHeadSQL, account, turn)
	if err != nil {
		return head, fmt.Errorf("finding a turn: %w", err)
	}
	return head, nil
}

func headTargets(h *protocol.TurnHead) []any {
	return []any{&h.State, &h.Accepts, &h.Owner, &h.OwnerAddress, &h.OwnerDead, &h.Epoch, &h.LastSequence}
}

const turnRecordSQL = `
select kind, key, sequence, body from turn_records where account_id = $1 and turn_id = $2 and kind = $3 and key = $4`

// TurnRecord reads a private record; nil when there is none.
func (t *Turns) TurnRecord(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, kind, key string) (*protocol.TurnRecord, error) {
	found, err := Rows(ctx, t.db, account, pgx.RowToAddrOfStructByPos[protocol.TurnRecord], turnRecordSQL, account, turn, kind, key)
	if err != nil {
		return nil, fmt.Errorf("reading a record of a turn: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}

const (
	loadTurnSQL = `
select t.spec, m.parts, ` + headColumns + `
from turns t
left join messages m on m.account_id = t.account_id and m.message_id = t.user_message_id
left join nodes n on n.node_id = t.owner
where t.account_id = $1 and t.turn_id = $2`
	loadRecordsSQL = `
select kind, key, sequence, body from turn_records where account_id = $1 and turn_id = $2 order by sequence, kind, key`
	loadEventsSQL = `
select frames, first_sequence, last_sequence from turn_events where account_id = $1 and turn_id = $2 order by first_sequence`
)

// LoadTurn reads all that adoption needs, as it stood at one moment or later: its reader owns the turn by now, so
// nothing is added between the statements that its epoch did not fence.
func (t *Turns) LoadTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*protocol.StoredTurn, error) {
	stored := &protocol.StoredTurn{Spec: &protocol.TurnSpec{}}
	var log turnLog
	var parts []protocol.Part
	batch := &pgx.Batch{}
	batch.Queue(loadTurnSQL, account, turn).QueryRow(func(row pgx.Row) error {
		return row.Scan(append([]any{stored.Spec, &parts}, headTargets(&stored.Head)...)...)
	})
	batch.Queue(loadEventsSQL, account, turn).Query(log.read)
	batch.Queue(loadRecordsSQL, account, turn).Query(func(rows pgx.Rows) (err error) {
		stored.Records, err = pgx.CollectRows(rows, pgx.RowToStructByPos[protocol.TurnRecord])
		return err
	})
	if err := t.db.Send(ctx, account, batch); err != nil {
		return nil, fmt.Errorf("loading a turn: %w", err)
	}
	stored.Spec.Input = userText(parts)
	stored.Frames = log.frames
	stored.Head.LastSequence = log.last
	return stored, nil
}

// turnLog gathers the rows of a log and insists that none is missing.
type turnLog struct {
	frames []byte
	last   int64
}

var errLogGap = errors.New("the log of a turn has a gap")

func (l *turnLog) read(rows pgx.Rows) error {
	var frames []byte
	var first, last int64
	_, err := pgx.ForEachRow(rows, []any{&frames, &first, &last}, func() error {
		if first != l.last+1 {
			return errLogGap
		}
		l.frames, l.last = append(l.frames, frames...), last
		return nil
	})
	return err
}

// userText is what the user wrote: the text of a user's message.
func userText(parts []protocol.Part) string {
	for _, part := range parts {
		if part.Type == protocol.PartText {
			return part.Text
		}
	}
	return ""
}

func textParts(text string) []protocol.Part {
	return []protocol.Part{{Type: protocol.PartText, PartID: protocol.NewPartID(), Text: text}}
}

// millis is now or at in the precision that clients see.
func millis(at time.Time) time.Time { return at.UTC().Truncate(time.Millisecond) }

func jsonText(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding for the database: %w", err)
	}
	return text, nil
}
