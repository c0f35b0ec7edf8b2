package turns_test

import (
	"context"
	"testing"

	"turnstone/persistence"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Text that Postgres cannot store fails only its own start, not the others of the shared transaction.
func TestAHostileAccountFailsOnlyItsOwnStart(t *testing.T) {
	w := storetest.NewWorld(t)
	key := protocol.IdempotencyKey{Method: "POST", Path: "/chat", Key: "\xff\x00"}
	hostile, odd := requestOf(w, pgtest.Account(t, w.DB), "text"), requestOf(w, pgtest.Account(t, w.DB), "with a key of any bytes")
	odd.Idempotency = &key
	requests := on(w.Runner, w.Request(nil, "one"), hostile, odd, requestOf(w, pgtest.Account(t, w.DB), "two"))
	requests[1].On.Begin = func(spec *turnlog.Spec) (turnlog.Begin, error) {
		begin, err := storetest.BeginTurn(spec)
		spec.Routing.ModelID = "\xff\x00"
		return begin, err
	}
	started := w.Turns.StartTogether(t.Context(), requests...)
	for i, s := range started {
		if (s.Err != nil) != (i == 1) {
			t.Errorf("the result of %d is %v", i, s.Err)
		}
	}
}

// While no database connection is available, the whole group of starts fails at once. None is tried again.
func TestAnOutageEndsAGroupOfStartsAtOnce(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := storetest.NewWorldOn(t, database, db)
	other := pgtest.Account(t, w.DB)
	w.Must(db.InTx(t.Context(), w.Account, func(context.Context, *pg.Tx) error { // holds the only connection
		for i, s := range w.Turns.StartTogether(t.Context(), on(w.Runner, w.Request(nil, "one"), requestOf(w, other, "two"))...) {
			if protocol.CodeOf(s.Err) != protocol.CodeUnavailable || s.Alone {
				t.Errorf("the result of %d is %v (alone: %t)", i, s.Err, s.Alone)
			}
		}
		return nil
	}))
}

// When the connection of a group breaks before the COMMIT, the group begins on another one.
func TestAGroupOfStartsWhoseConnectionBreaksBeginsOnAnother(t *testing.T) {
	database := pgtest.NewDatabase(t)
	cut := pgtest.NewCutter(t, database.URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := storetest.NewWorldOn(t, database, db)
	other := pgtest.Account(t, w.DB)
	cut.CutRequest("no key update")
	for _, s := range w.Turns.StartTogether(t.Context(), on(w.Runner, w.Request(nil, "one"), requestOf(w, other, "two"))...) {
		wantStarted(w, s, false)
	}
}
