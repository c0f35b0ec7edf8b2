package journal

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// appendOneSQL stores the append of one turn. It is the fence: owner, epoch and next sequence of the turn must be those of
// the append. The insert selects from the update: if no row was updated, none is inserted. The generated column terminal is
// true where open.Turns is false; the row is found by its key, so the condition need not be that of an index.
const appendOneSQL = `
with moved as (
    update turns set next_sequence = $6 + 1, state = $8, accepting = $9
    where account_id = $1 and turn_id = $2 and owner = $3 and owner_epoch = $4 and next_sequence = $5 and not terminal
    returning account_id, turn_id
), events as (
    insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
    select account_id, turn_id, $5, $6, $4, $7 from moved
)
select account_id, turn_id from moved`

// appendEventsSQL is the beginning of a statement that does the same for many turns. The statement returns the numbers
// of the appends that were stored.
const appendEventsSQL = `
with batch as (
    select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::bigint[], $6::bigint[], $7::bytea[], $8::text[], $9::bool[])
        with ordinality as b (account_id, turn_id, owner, owner_epoch, first_sequence, last_sequence, frames, state, accepting, n)
), moved as (
    update turns t set next_sequence = b.last_sequence + 1, state = b.state, accepting = b.accepting
    from batch b
    where t.account_id = b.account_id and t.turn_id = b.turn_id and t.owner = b.owner and t.owner_epoch = b.owner_epoch
      and t.next_sequence = b.first_sequence and not t.terminal
    returning b.account_id, b.turn_id, b.owner_epoch, b.first_sequence, b.last_sequence, b.frames, b.n
), events as (
    insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
    select account_id, turn_id, first_sequence, last_sequence, owner_epoch, frames from moved
)`

const appendManySQL = appendEventsSQL + `
select n from moved`

// appendRecordsSQL stores private records together with the events. "is true" keeps Postgres from joining records and
// turns, for which it has only a nested loop here (planSettings); in a condition it hashes the turns that moved. The order is
// that in which the audits of the accounts are locked (audit_approval).
const appendRecordsSQL = appendEventsSQL + `, records as (
    insert into turn_records (account_id, turn_id, kind, key, sequence, body)
    select r.account_id, r.turn_id, r.kind, r.key, r.sequence, r.body::json
    from unnest($10::uuid[], $11::uuid[], $12::text[], $13::text[], $14::bigint[], $15::text[])
        with ordinality as r (account_id, turn_id, kind, key, sequence, body, n)
    where ((r.account_id, r.turn_id) in (select account_id, turn_id from moved)) is true
    order by r.account_id, r.n
)
select n from moved`

// appendBatch stores appends of different turns and reports which of them were stored.
func appendBatch(ctx context.Context, on *pgx.Conn, batch []*journalEntry) (stored []bool, err error) {
	stored = make([]bool, len(batch))
	if only := batch[0]; len(batch) == 1 && len(only.Records) == 0 {
		tag, err := on.Exec(ctx, appendOneSQL, only.AccountID, only.TurnID, only.Owner, only.Epoch, only.First, only.Last,
			only.Frames, string(only.State), only.Accepts)
		stored[0] = tag.RowsAffected() == 1
		return stored, err
	}
	columns := appendArrays.get()
	defer appendArrays.put(columns)
	name, sql := "append_many", appendManySQL
	if columns.fill(batch) {
		name, sql = "append_records", appendRecordsSQL
	}
	statement, err := on.Prepare(ctx, name, sql) // once per connection
	if err != nil {
		return stored, err
	}
	result := on.PgConn().ExecPrepared(ctx, statement.Name, columns.values(len(statement.ParamOIDs)), binaryFormat, binaryFormat)
	for result.NextRow() {
		if n := int(binary.BigEndian.Uint64(result.Values()[0])); n <= len(stored) {
			stored[n-1] = true
		}
	}
	_, err = result.Close()
	return stored, err
}

// Records holds the arrays of a statement that inserts records.
type Records struct {
	Accounts  []protocol.AccountID
	Turns     []protocol.TurnID
	Kinds     []string
	Keys      []string
	Sequences []int64
	Bodies    []string
}

// Add adds the records of a turn.
func (c *Records) Add(account protocol.AccountID, turn protocol.TurnID, records []turnlog.Record) {
	for _, r := range records {
		c.Accounts, c.Turns = append(c.Accounts, account), append(c.Turns, turn)
		c.Kinds, c.Keys = append(c.Kinds, r.Kind), append(c.Keys, r.Key)
		c.Sequences, c.Bodies = append(c.Sequences, r.Sequence), append(c.Bodies, string(r.Body))
	}
}

// Position holds the values of a turn that decide whether an append is stored.
type Position struct {
	Owner *protocol.NodeID
	Epoch int32
	Next  int64
	State protocol.TurnState
}

const positionsSQL = `
select t.account_id, t.turn_id, t.owner, t.owner_epoch, t.next_sequence, t.state
from unnest($1::uuid[], $2::uuid[]) as b (account_id, turn_id)
join turns t on t.account_id = b.account_id and t.turn_id = b.turn_id`

func readPositions(ctx context.Context, on querier, entries []*journalEntry) (map[turnKey]Position, error) {
	accounts, turns := make([]protocol.AccountID, len(entries)), make([]protocol.TurnID, len(entries))
	for i, entry := range entries {
		accounts[i], turns[i] = entry.AccountID, entry.TurnID
	}
	rows, err := on.Query(ctx, positionsSQL, accounts, turns)
	if err != nil {
		return nil, err
	}
	positions := make(map[turnKey]Position, len(entries))
	var key turnKey
	var position Position
	_, err = pgx.ForEachRow(rows, []any{&key.account, &key.turn, &position.Owner, &position.Epoch, &position.Next, &position.State}, func() error {
		positions[key] = position
		position.Owner = nil // the next row must not share the pointer
		return nil
	})
	return positions, err
}

// querier is a connection, a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
