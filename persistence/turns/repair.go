package turns

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

const (
	// The columns repeat values of the spec, for a spec that cannot be read.
	repairTurnSQL = `
select t.spec, t.conversation_id, t.branch_id, t.user_message_id, t.assistant_message_id, t.created_at, ` + headColumns + `
from turns t
left join nodes n on n.node_id = t.owner
where t.account_id = $1 and t.turn_id = $2`
)

// repairAttempts lists what each attempt reads of a damaged turn: first everything, then less and less of what may be
// unreadable. The last attempt needs only the row of the turn.
var repairAttempts = []struct{ events, records bool }{{true, true}, {false, true}, {false, false}}

// RepairTurn reads as much as possible of a turn whose log cannot be read as it is. Its frames reach the next sequence
// of the turn without a gap; see repairedLog. If Postgres cannot read a part of the log at all (a damaged page), that
// part is lost.
func (t *Store) RepairTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (stored *turnlog.Stored, err error) {
	for _, from := range repairAttempts {
		if stored, err = t.repair(ctx, account, turn, from.events, from.records); err == nil || protocol.CodeOf(err) == protocol.CodeUnavailable {
			break
		}
	}
	return stored, err
}

func (t *Store) repair(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, events, records bool) (*turnlog.Stored, error) {
	stored := &turnlog.Stored{}
	var spec json.RawMessage
	columns := &turnlog.Spec{AccountID: account, TurnID: turn}
	var rows []logRow
	batch := &pgx.Batch{}
	batch.Queue(repairTurnSQL, account, turn).QueryRow(func(row pgx.Row) error {
		return row.Scan(append([]any{
			&spec, &columns.ConversationID, &columns.BranchID, &columns.UserMessageID, &columns.AssistantMessageID, &columns.CreatedAt,
		}, headTargets(&stored.Head)...)...)
	})
	if events {
		batch.Queue(loadEventsSQL, account, turn).Query(collectLog(&rows))
	}
	if records {
		batch.Queue(loadRecordsSQL, account, turn).Query(func(found pgx.Rows) (err error) {
			stored.Records, err = pgx.CollectRows(found, pgx.RowToStructByPos[turnlog.Record])
			return err
		})
	}
	if err := t.db.Send(ctx, account, batch); err != nil {
		return nil, fmt.Errorf("loading a damaged turn: %w", err)
	}
	stored.Spec = &turnlog.Spec{}
	if json.Unmarshal(spec, stored.Spec) != nil || stored.Spec.TurnID != turn {
		stored.Spec = columns
	}
	var err error
	stored.Frames, err = repairedLog(turn, columns.CreatedAt, rows, stored.Head.LastSequence)
	return stored, err
}

// logRow is a row of turn_events.
type logRow struct {
	frames      []byte
	first, last int64
}

func collectLog(into *[]logRow) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var row logRow
		_, err := pgx.ForEachRow(rows, []any{&row.frames, &row.first, &row.last}, func() error {
			*into = append(*into, logRow{bytes.Clone(row.frames), row.first, row.last})
			return nil
		})
		return err
	}
}

// repairedLog builds the events 1 to last of a turn from the readable ones. A missing or damaged event is replaced by a
// turn.state event that changes nothing. The time of that event is the creation time of the turn, so every call builds
// the same bytes.
func repairedLog(turn protocol.TurnID, at time.Time, rows []logRow, last int64) ([]byte, error) {
	readable := map[int64][]byte{}
	for _, row := range rows {
		sequence := row.first
		for line := range protocol.FrameLines(row.frames) {
			if envelope, _, err := protocol.DecodeEvent(line); err == nil && envelope.Sequence == sequence && envelope.TurnID == turn {
				readable[sequence] = line
			}
			sequence++
		}
	}
	var frames []byte
	for sequence := int64(1); sequence <= last; sequence++ {
		if line, found := readable[sequence]; found {
			frames = append(frames, line...)
		} else {
			var err error
			if frames, err = protocol.AppendEvent(frames, turn, sequence, at, &protocol.TurnStateChanged{State: protocol.TurnRecovering}); err != nil {
				return nil, err
			}
		}
		frames = append(frames, '\n')
	}
	return frames, nil
}
