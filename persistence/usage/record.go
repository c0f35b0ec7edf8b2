package usage

import (
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

// Record is what the service itself has used for a conversation. Exactly one of the units is counted: a turn, a title or
// a research task.
type Record struct {
	AccountID      protocol.AccountID
	ConversationID protocol.ConversationID
	Kind           Kind
	TurnID         *protocol.TurnID // of KindTurn
	Profile, Model string           // empty: not known
	Usage          protocol.Usage
	At             time.Time // zero: now
}

// Kind is what was used.
type Kind string

// The kinds of records of the service. Those that clients report have other kinds.
const (
	KindTurn     Kind = "turn"
	KindTitle    Kind = "title" // the model call that generated a title, which belongs to no turn
	KindResearch Kind = "research"
)

var units = map[Kind]string{KindTurn: "turn", KindTitle: "call", KindResearch: "task"}

const insertRecordSQL = `
	insert into usage_records (account_id, usage_id, source, kind, quantity, unit, conversation_id, turn_id, profile, model_id, usage, occurred_at)
	values (@account, @usage_id, 'server', @kind, 1, @unit, @conversation, @turn, nullif(@profile, ''), nullif(@model, ''), @usage, coalesce(@at, now()))`

// Queue adds the statement to batch that stores a record.
func Queue(batch *pgx.Batch, r *Record) error {
	text, err := pg.JSONText(r.Usage)
	if err != nil {
		return err
	}
	var at *time.Time
	if !r.At.IsZero() {
		millis := protocol.Millis(r.At)
		at = &millis
	}
	batch.Queue(insertRecordSQL, pgx.NamedArgs{
		"account": r.AccountID, "usage_id": protocol.NewUsageID(), "kind": string(r.Kind), "unit": units[r.Kind], "conversation": r.ConversationID,
		"turn": r.TurnID, "profile": r.Profile, "model": r.Model, "usage": text, "at": at,
	})
	return nil
}
