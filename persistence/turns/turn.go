package turns

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/conversations"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

const turnColumns = `
select t.turn_id, t.conversation_id, t.state, t.stop_reason, t.accepting, t.next_sequence - 1, t.spec, t.usage, t.error,
       t.assistant_message_id, t.created_at, t.finished_at,
       ` + conversations.PendingApprovals + `
from turns t`

const getTurnSQL = turnColumns + `
join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id and ` + conversations.Visible + `
where t.account_id = $1 and t.turn_id = $2`

// GetTurn returns a turn as a client sees it; protocol.CodeNotFound if the account has no such turn.
func (t *Store) GetTurn(ctx context.Context, account protocol.AccountID, id protocol.TurnID) (*protocol.Turn, error) {
	turn, err := pg.Row(ctx, t.db, account, scanTurn, getTurnSQL, account, id)
	if err != nil {
		return nil, fmt.Errorf("reading a turn: %w", err)
	}
	return &turn, nil
}

// scanTurn scans turnColumns.
func scanTurn(row pgx.CollectableRow) (turn protocol.Turn, err error) {
	var spec turnlog.Spec
	err = row.Scan(&turn.TurnID, &turn.ConversationID, &turn.State, &turn.StopReason, &turn.AcceptingSteering, &turn.LastSequence, &spec,
		&turn.Usage, &turn.Error, &turn.MessageID, &turn.CreatedAt, &turn.FinishedAt, &turn.PendingApprovals)
	if turn.PendingApprovals == nil {
		turn.PendingApprovals = []protocol.Approval{}
	}
	turn.Profile = spec.Routing.Profile
	return turn, err
}

const listTurnsSQL = turnColumns + `
where t.account_id = @account and t.conversation_id = @conversation and t.turn_id < @after
order by t.conversation_id desc, t.turn_id desc
limit @limit`

// ListTurns returns a page of the turns of a conversation, newest first, after a turn; nil starts at the beginning. next
// is nil at the end.
func (t *Store) ListTurns(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, after *protocol.TurnID, limit int) (
	page []protocol.Turn, next *protocol.TurnID, err error,
) {
	args := pgx.NamedArgs{"account": account, "conversation": id, "after": pg.HighestID, "limit": limit + 1}
	if after != nil {
		args["after"] = *after
	}
	page, err = conversations.ScanRowsOfConversation(ctx, t.db, account, scanTurn, listTurnsSQL, args)
	if err != nil {
		return nil, nil, fmt.Errorf("listing turns: %w", err)
	}
	page, more, err := pg.CutPage(page, limit)
	if err != nil || !more {
		return page, nil, err
	}
	return page, &page[len(page)-1].TurnID, nil
}

var countLiveSQL = `select ` + conversations.LiveTurnsOf("$1")

// CountLive returns the number of live turns of an account, as its limit counts them.
func (t *Store) CountLive(ctx context.Context, account protocol.AccountID) (int64, error) {
	return pg.Row(ctx, t.db, account, pgx.RowTo[int64], countLiveSQL, account)
}

const headColumns = `
t.state, t.accepting, t.owner, t.owner is not null and coalesce(n.dead, true), coalesce(n.address, ''), t.owner_epoch, t.next_sequence - 1, t.owner is null and t.parked_until is not null`

const turnHeadSQL = `
select ` + headColumns + `
from turns t
join conversations c on c.account_id = t.account_id and c.conversation_id = t.conversation_id and ` + conversations.Visible + `
left join nodes n on n.node_id = t.owner
where t.account_id = $1 and t.turn_id = $2`

// TurnHead returns the state, the owner and the last sequence of a turn.
func (t *Store) TurnHead(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (turnlog.Head, error) {
	head, err := pg.Row(ctx, t.db, account, func(row pgx.CollectableRow) (h turnlog.Head, err error) {
		return h, row.Scan(headTargets(&h)...)
	}, turnHeadSQL, account, turn)
	if err != nil {
		return head, fmt.Errorf("finding a turn: %w", err)
	}
	return head, nil
}

func headTargets(h *turnlog.Head) []any {
	return []any{&h.State, &h.Accepts, &h.Owner, &h.OwnerDead, &h.OwnerAddress, &h.Epoch, &h.LastSequence, &h.Parked}
}

const turnRecordSQL = `
select kind, key, sequence, body from turn_records where account_id = $1 and turn_id = $2 and kind = $3 and key = $4`

// TurnRecord returns a private record; nil if there is none.
func (t *Store) TurnRecord(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, kind, key string) (*turnlog.Record, error) {
	found, err := pg.Rows(ctx, t.db, account, pgx.RowToAddrOfStructByPos[turnlog.Record], turnRecordSQL, account, turn, kind, key)
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

// LoadTurn reads everything that adoption needs. Its statements do not share a snapshot, but they agree: the caller
// already owns the turn, so the epoch fences every append of an earlier owner.
func (t *Store) LoadTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*turnlog.Stored, error) {
	stored := &turnlog.Stored{Spec: &turnlog.Spec{}}
	var log turnLog
	var parts []protocol.Part
	batch := &pgx.Batch{}
	batch.Queue(loadTurnSQL, account, turn).QueryRow(func(row pgx.Row) error {
		return row.Scan(append([]any{stored.Spec, &parts}, headTargets(&stored.Head)...)...)
	})
	batch.Queue(loadEventsSQL, account, turn).Query(log.read)
	batch.Queue(loadRecordsSQL, account, turn).Query(func(rows pgx.Rows) (err error) {
		stored.Records, err = pgx.CollectRows(rows, pgx.RowToStructByPos[turnlog.Record])
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

// turnLog collects the rows of a log and fails if one is missing.
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

// userText returns the text of a user's message.
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

const turnAccountSQL = `select account_id from turns where turn_id = $1`

// AccountOfTurn returns the account of a turn, for operators: only they look up a turn without its account. It may read
// the whole table.
func (t *Store) AccountOfTurn(ctx context.Context, turn protocol.TurnID) (protocol.AccountID, error) {
	var found []protocol.AccountID
	batch := &pgx.Batch{}
	batch.Queue(turnAccountSQL, turn).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowTo[protocol.AccountID])
		return err
	})
	if err := t.db.SendOn(ctx, t.db.Engine, pg.NoAccount, batch); err != nil {
		return protocol.AccountID{}, fmt.Errorf("finding the account of a turn: %w", pg.Classify(err))
	}
	if len(found) != 1 { // none: the service generates the identifiers of turns, so there are never two
		return protocol.AccountID{}, protocol.Errorf(protocol.CodeNotFound, "there is no turn %s", turn)
	}
	return found[0], nil
}
