package persistence_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

// What a shared trip may read, each with a column that may be changed, and what it may not.
var (
	sharedTables = map[string]string{"accounts": "display_name", "account_settings": "version", "turns": "state", "idempotency": "path"}
	closedTables = []string{
		"conversations", "branches", "branch_segments", "messages", "follow_ups", "turn_events", "turn_records", "turn_replays",
		"usage_records", "audit",
	}
)

const namedSQL = `select coalesce(current_setting('turnstone.account_ids', true), '')`

// threeAccounts have a turn that began with a key, and settings, each. There is one connection for requests, so whatever a
// trip leaves behind is met by the next one.
func threeAccounts(t *testing.T) (w *world, one, two, three protocol.AccountID) {
	t.Helper()
	database := pgtest.NewDatabase(t)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w = newWorldOn(t, database, db)
	one, two, three = w.account, pgtest.Account(t, db), pgtest.Account(t, db)
	for _, account := range []protocol.AccountID{one, two, three} {
		start, key := w.of(account, "hello"), keyOf("k", "body")
		start.Idempotency = &key
		w.start(start)
		_, err := db.Exec(t.Context(), account, `insert into account_settings (account_id, settings) values ($1, '{}')`, account)
		w.must(err)
	}
	return w, one, two, three
}

// named makes a trip of the accounts.
func named(accounts ...protocol.AccountID) *pgx.Batch {
	ids := make([]string, len(accounts))
	for i, account := range accounts {
		ids[i] = protocol.NodeID(account).String()
	}
	batch := &pgx.Batch{}
	batch.Queue(`select set_config('turnstone.account_ids', $1::uuid[]::text, true)`, ids)
	return batch
}

func TestASharedTripComesToTheRowsOfItsAccountsAndToNoOthers(t *testing.T) {
	w, one, two, three := threeAccounts(t)
	own := map[protocol.AccountID]bool{one: true, two: true}
	for table := range sharedTables {
		var seen []protocol.AccountID
		batch := named(one, two)
		batch.Queue(`select account_id from ` + table).Query(func(rows pgx.Rows) (err error) {
			seen, err = pgx.CollectRows(rows, pgx.RowTo[protocol.AccountID])
			return err
		})
		w.must(w.db.Send(t.Context(), persistence.Nobody, batch))
		if len(seen) != 2 || seen[0] == seen[1] || !own[seen[0]] || !own[seen[1]] {
			t.Errorf("of %s it sees the rows of %v", table, seen)
		}
	}
	for _, table := range closedTables {
		var count int
		batch := named(one, two, three)
		batch.Queue(`select count(*) from ` + table).QueryRow(func(row pgx.Row) error { return row.Scan(&count) })
		if err := w.db.Send(t.Context(), persistence.Nobody, batch); err != nil || count != 0 {
			t.Errorf("of %s it sees %d rows (%v)", table, count, err)
		}
	}
	// A group of starts locks its accounts. Nothing of what is there can be changed, not even what it may read.
	for table, column := range sharedTables {
		for _, statement := range []string{`update ` + table + ` set ` + column + ` = ` + column, `delete from ` + table} {
			touched := int64(0)
			batch := named(one, two, three)
			batch.Queue(statement).Query(func(rows pgx.Rows) error {
				rows.Close()
				touched = rows.CommandTag().RowsAffected()
				return rows.Err()
			})
			if err := w.db.Send(t.Context(), persistence.Nobody, batch); err == nil && touched != 0 {
				t.Errorf("%s: %d rows", statement, touched)
			}
		}
	}
	batch := named(one, two)
	batch.Queue(`insert into idempotency (account_id, key_hash, path, body_hash) values ($1, 'another', '/things', '')`, three)
	if err := w.db.Send(t.Context(), persistence.Nobody, batch); err == nil {
		t.Error("a row of an account that is not named was stored")
	}
}

// However a trip ends, the next one on its connection is for nobody.
func TestNothingOfASharedTripIsLeftOnItsConnection(t *testing.T) {
	w, one, two, _ := threeAccounts(t)
	misfortune := errors.New("a misfortune")
	inTx := func(end func(tx *persistence.Tx) error) error {
		return w.db.InTx(t.Context(), persistence.Nobody, func(ctx context.Context, tx *persistence.Tx) error {
			if err := tx.Run(ctx, named(one, two)); err != nil {
				return err
			}
			return end(tx)
		})
	}
	for name, trip := range map[string]func() error{
		"committed":   func() error { return w.db.Send(t.Context(), persistence.Nobody, named(one, two)) },
		"a look-up":   func() error { _, err := w.db.FindAnswer(t.Context(), one, keyOf("k", "body")); return err },
		"starts":      func() error { return w.turns.StartTogether(t.Context(), w.request(nil, "a"), w.of(two, "b"))[1].Err },
		"in a Tx":     func() error { return inTx(func(*persistence.Tx) error { return nil }) },
		"rolled back": func() error { return without(inTx(func(*persistence.Tx) error { return misfortune }), misfortune) },
		"failed": func() error {
			batch := named(one, two)
			batch.Queue(`select 1 / 0`)
			if err := w.db.Send(t.Context(), persistence.Nobody, batch); err == nil {
				return errors.New("it did not fail")
			}
			return nil
		},
		"failed in a Tx": func() error {
			if err := inTx(func(tx *persistence.Tx) error { _, err := tx.Exec(t.Context(), `select 1 / 0`); return err }); err == nil {
				return errors.New("it did not fail")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := trip(); err != nil {
				t.Fatal(err)
			}
			left, err := persistence.Row(t.Context(), w.db, persistence.Nobody, pgx.RowTo[string], namedSQL)
			if err != nil || left != "" {
				t.Errorf("accounts %q are left (%v)", left, err)
			}
			for table := range sharedTables {
				count, err := persistence.Row(t.Context(), w.db, persistence.Nobody, pgx.RowTo[int], `select count(*)::int from `+table)
				if err != nil || count != 0 {
					t.Errorf("nobody sees %d rows of %s (%v)", count, table, err)
				}
			}
		})
	}
}

// without is nil for the error that was wanted.
func without(err, wanted error) error {
	if errors.Is(err, wanted) {
		return nil
	}
	return errors.Join(errors.New("it ended otherwise"), err)
}
