package turns_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// sharedTables are the tables that a shared round trip may read, each with a column for an update. It may not read
// closedTables.
var (
	sharedTables = map[string]string{"accounts": "display_name", "account_settings": "version", "account_instructions": "content", "turns": "state", "idempotency": "path"}
	closedTables = []string{
		"conversations", "branches", "branch_segments", "messages", "follow_ups", "turn_events", "turn_records", "turn_replays",
		"usage_records", "audit",
	}
)

const namedSQL = `select coalesce(current_setting('turnstone.account_ids', true), '')`

// threeAccounts creates three accounts, each with settings and a turn that was started with an idempotency key.
// Requests share one connection, so that the next round trip sees what one leaves on it.
func threeAccounts(t *testing.T) (w *storetest.World, one, two, three protocol.AccountID) {
	t.Helper()
	database := pgtest.NewDatabase(t)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w = storetest.NewWorldOn(t, database, db)
	one, two, three = w.Account, pgtest.Account(t, db), pgtest.Account(t, db)
	for _, account := range []protocol.AccountID{one, two, three} {
		start, key := requestOf(w, account, "hello"), storetest.KeyOf("k", "body")
		start.Idempotency = &key
		w.Start(start)
		_, err := db.Exec(t.Context(), account, `insert into account_settings (account_id, settings) values ($1, '{}')`, account)
		w.Must(err)
		_, err = w.DB.Accounts.PutInstructions(t.Context(), account, new(int64), "Be brief.")
		w.Must(err)
	}
	return w, one, two, three
}

// setAccounts returns a batch that starts a shared round trip of the accounts.
func setAccounts(accounts ...protocol.AccountID) *pgx.Batch {
	ids := make([]string, len(accounts))
	for i, account := range accounts {
		ids[i] = protocol.NodeID(account).String()
	}
	batch := &pgx.Batch{}
	batch.Queue(`select set_config('turnstone.account_ids', $1::uuid[]::text, true)`, ids)
	return batch
}

func TestASharedRoundTripReachesOnlyTheRowsOfItsAccounts(t *testing.T) {
	w, one, two, three := threeAccounts(t)
	own := map[protocol.AccountID]bool{one: true, two: true}
	for table := range sharedTables {
		var seen []protocol.AccountID
		batch := setAccounts(one, two)
		batch.Queue(`select account_id from ` + table).Query(func(rows pgx.Rows) (err error) {
			seen, err = pgx.CollectRows(rows, pgx.RowTo[protocol.AccountID])
			return err
		})
		w.Must(w.DB.Send(t.Context(), pg.NoAccount, batch))
		if len(seen) != 2 || seen[0] == seen[1] || !own[seen[0]] || !own[seen[1]] {
			t.Errorf("in %s it sees the rows of %v", table, seen)
		}
	}
	for _, table := range closedTables {
		var count int
		batch := setAccounts(one, two, three)
		batch.Queue(`select count(*) from ` + table).QueryRow(func(row pgx.Row) error { return row.Scan(&count) })
		if err := w.DB.Send(t.Context(), pg.NoAccount, batch); err != nil || count != 0 {
			t.Errorf("in %s it sees %d rows (%v)", table, count, err)
		}
	}
	// A group of starts locks the rows of its accounts. It cannot change an existing row, not even one that it may
	// read.
	for table, column := range sharedTables {
		for _, statement := range []string{`update ` + table + ` set ` + column + ` = ` + column, `delete from ` + table} {
			touched := int64(0)
			batch := setAccounts(one, two, three)
			batch.Queue(statement).Query(func(rows pgx.Rows) error {
				rows.Close()
				touched = rows.CommandTag().RowsAffected()
				return rows.Err()
			})
			if err := w.DB.Send(t.Context(), pg.NoAccount, batch); err == nil && touched != 0 {
				t.Errorf("%s: %d rows", statement, touched)
			}
		}
	}
	batch := setAccounts(one, two)
	batch.Queue(`insert into idempotency (account_id, key_hash, path, body_hash) values ($1, 'another', '/things', '')`, three)
	if err := w.DB.Send(t.Context(), pg.NoAccount, batch); err == nil {
		t.Error("a row of an account that is not named was stored")
	}
}

// However a round trip ends, the next one on its connection starts without accounts.
func TestNothingOfASharedTripIsLeftOnItsConnection(t *testing.T) {
	w, one, two, _ := threeAccounts(t)
	failure := errors.New("deliberate failure")
	inTx := func(end func(tx *pg.Tx) error) error {
		return w.DB.InTx(t.Context(), pg.NoAccount, func(ctx context.Context, tx *pg.Tx) error {
			if err := tx.Run(ctx, setAccounts(one, two)); err != nil {
				return err
			}
			return end(tx)
		})
	}
	for name, trip := range map[string]func() error{
		"committed": func() error { return w.DB.Send(t.Context(), pg.NoAccount, setAccounts(one, two)) },
		"a lookup": func() error {
			_, err := w.DB.Idempotency.FindResponse(t.Context(), one, storetest.KeyOf("k", "body"))
			return err
		},
		"starts": func() error {
			return w.Turns.StartTogether(t.Context(), on(w.Runner, w.Request(nil, "a"), requestOf(w, two, "b"))...)[1].Err
		},
		"in a Tx":     func() error { return inTx(func(*pg.Tx) error { return nil }) },
		"rolled back": func() error { return expectError(inTx(func(*pg.Tx) error { return failure }), failure) },
		"failed": func() error {
			batch := setAccounts(one, two)
			batch.Queue(`select 1 / 0`)
			if err := w.DB.Send(t.Context(), pg.NoAccount, batch); err == nil {
				return errors.New("it did not fail")
			}
			return nil
		},
		"failed in a Tx": func() error {
			if err := inTx(func(tx *pg.Tx) error { _, err := tx.Exec(t.Context(), `select 1 / 0`); return err }); err == nil {
				return errors.New("it did not fail")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := trip(); err != nil {
				t.Fatal(err)
			}
			left, err := pg.Row(t.Context(), w.DB.DB, pg.NoAccount, pgx.RowTo[string], namedSQL)
			if err != nil || left != "" {
				t.Errorf("accounts %q are left (%v)", left, err)
			}
			for table := range sharedTables {
				count, err := pg.Row(t.Context(), w.DB.DB, pg.NoAccount, pgx.RowTo[int], `select count(*)::int from `+table)
				if err != nil || count != 0 {
					t.Errorf("a request without an account sees %d rows of %s (%v)", count, table, err)
				}
			}
		})
	}
}

// expectError returns nil if err is the wanted error, and an error otherwise.
func expectError(err, wanted error) error {
	if errors.Is(err, wanted) {
		return nil
	}
	return errors.Join(errors.New("the round trip did not end with the wanted error"), err)
}
