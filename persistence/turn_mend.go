package persistence

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

const (
	// The columns say what the spec says, for a spec that cannot be read.
	mendTurnSQL = `
select t.spec, t.conversation_id, t.branch_id, t.user_message_id, t.assistant_message_id, t.created_at, ` + headColumns + `
from turns t
left join nodes n on n.node_id = t.owner
where t.account_id = $1 and t.turn_id = $2`
)

// mendFrom are what a damaged turn is made of: everything, then less and less of what may be the reason why it cannot be
// read. The last attempt needs nothing but the row of the turn.
var mendFrom = []struct{ events, records bool }{{true, true}, {false, true}, {false, false}}

// MendTurn reads what can be read of a turn whose log cannot be read as it is. Its frames reach the turn's next sequence
// without a gap: mendedLog says how. Postgres may refuse to read a part of it at all (a damaged page): that part is lost.
func (t *Turns) MendTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (stored *protocol.StoredTurn, err error) {
	for _, from := range mendFrom {
		if stored, err = t.mend(ctx, account, turn, from.events, from.records); err == nil || protocol.CodeOf(err) == protocol.CodeUnavailable {
			break
		}
	}
	return stored, err
}

func (t *Turns) mend(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, events, records bool) (*protocol.StoredTurn, error) {
	stored := &protocol.StoredTurn{}
	var spec json.RawMessage
	columns := &protocol.TurnSpec{AccountID: account, TurnID: turn}
	var rows []logRow
	batch := &pgx.Batch{}
	batch.Queue(mendTurnSQL, account, turn).QueryRow(func(row pgx.Row) error {
		return row.Scan(append([]any{
			&spec, &columns.ConversationID, &columns.BranchID, &columns.UserMessageID, &columns.AssistantMessageID, &columns.CreatedAt,
		}, headTargets(&stored.Head)...)...)
	})
	if events {
		batch.Queue(loadEventsSQL, account, turn).Query(collectLog(&rows))
	}
	if records {
		batch.Queue(loadRecordsSQL, account, turn).Query(func(found pgx.Rows) (err error) {
			stored.Records, err = pgx.CollectRows(found, pgx.RowToStructByPos[protocol.TurnRecord])
			return err
		})
	}
	if err := t.db.Send(ctx, account, batch); err != nil {
		return nil, fmt.Errorf("loading a damaged turn: %w", err)
	}
	stored.Spec = &protocol.TurnSpec{}
	if json.Unmarshal(spec, stored.Spec) != nil || stored.Spec.TurnID != turn {
		stored.Spec = columns
	}
	var err error
	stored.Frames, err = mendedLog(turn, columns.CreatedAt, rows, stored.Head.LastSequence)
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

// mendedLog makes the events 1 to last of a turn from what is left of them. One that is missing or damaged is replaced by
// a turn.state that changes nothing; its time is the turn's, so that every call makes the same bytes.
func mendedLog(turn protocol.TurnID, at time.Time, rows []logRow, last int64) ([]byte, error) {
	left := map[int64][]byte{}
	for _, row := range rows {
		sequence := row.first
		for line := range protocol.FrameLines(row.frames) {
			if envelope, _, err := protocol.DecodeEvent(line); err == nil && envelope.Sequence == sequence && envelope.TurnID == turn {
				left[sequence] = line
			}
			sequence++
		}
	}
	var frames []byte
	for sequence := int64(1); sequence <= last; sequence++ {
		if line, there := left[sequence]; there {
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
