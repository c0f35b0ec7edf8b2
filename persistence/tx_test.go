package persistence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

// behind opens a database through a cutter.
func behind(t *testing.T) (*persistence.DB, *pgtest.Cutter, protocol.AccountID) {
	t.Helper()
	cut := pgtest.NewCutter(t, pgtest.NewDatabase(t).URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, cut, pgtest.Account(t, db)
}

func displayName(t *testing.T, db *persistence.DB, account protocol.AccountID) string {
	t.Helper()
	name, err := persistence.Row(t.Context(), db, account, pgx.RowTo[string], `select display_name from accounts`)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

const renameSQL = `update accounts set display_name = $2 where account_id = $1`

func TestCommitWhoseAnswerWasLostIsResolved(t *testing.T) {
	db, cut, account := behind(t)
	plain := func(ctx context.Context, tx *persistence.Tx) error {
		_, err := tx.Exec(ctx, renameSQL, account, "committed")
		return err
	}
	together := func(ctx context.Context, tx *persistence.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(renameSQL, account, "committed")
		return tx.CommitWith(ctx, batch)
	}
	for name, work := range map[string]func(context.Context, *persistence.Tx) error{"on its own": plain, "in a pipeline": together} {
		if _, err := db.Exec(t.Context(), account, renameSQL, account, "before"); err != nil {
			t.Fatal(err)
		}
		for round := range 10 {
			cut.CutReply("COMMIT\x00")
			if err := db.InTx(t.Context(), account, work); err != nil {
				t.Fatalf("%s, round %d: %v", name, round, err)
			}
			if got := displayName(t, db, account); got != "committed" {
				t.Fatalf("%s, round %d: the name is %q", name, round, got)
			}
		}
	}
	if cut.Count() != 20 {
		t.Errorf("%d answers were lost, want 20", cut.Count())
	}
}

func TestCommitThatNeverArrivedIsResolved(t *testing.T) {
	db, cut, account := behind(t)
	cut.CutRequest("commit\x00")
	err := db.InTx(t.Context(), account, func(ctx context.Context, tx *persistence.Tx) error {
		_, err := tx.Exec(ctx, renameSQL, account, "lost")
		return err
	})
	if protocol.CodeOf(err) != protocol.CodeUnavailable || strings.Contains(err.Error(), persistence.OutcomeUnknown) {
		t.Errorf("answered %v", err)
	}
	if got := displayName(t, db, account); got != "Test" || cut.Count() != 1 {
		t.Errorf("the name is %q after %d cuts", got, cut.Count())
	}
}

func TestLostAnswerOfASingleWriteStaysUnknown(t *testing.T) {
	db, cut, account := behind(t)
	cut.CutReply("UPDATE 1\x00")
	_, err := db.Exec(t.Context(), account, renameSQL, account, "maybe")
	if protocol.CodeOf(err) != protocol.CodeUnavailable || !strings.Contains(err.Error(), persistence.OutcomeUnknown) {
		t.Errorf("answered %v", err)
	}
}

func TestStartWhoseAnswerWasLostIsOneTurn(t *testing.T) {
	database := newWorld(t).database
	cut := pgtest.NewCutter(t, database.URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := newWorldOn(t, database, db)
	for range 3 {
		cut.CutReply("COMMIT\x00")
		turn := w.start(w.request(nil, "hello"))
		cut.CutReply("COMMIT\x00")
		turn.end(nil)
	}
	turns, err := persistence.Row(t.Context(), w.db, w.account, pgx.RowTo[int], `select count(*) from turns where terminal`)
	if err != nil || turns != 3 || cut.Count() != 6 {
		t.Errorf("%d turns after %d cuts (%v)", turns, cut.Count(), err)
	}
}

// The server crashes before anything of a transaction has reached its log, and hands the identifier out again. What that
// other transaction did is not taken for ours.
func TestCommitOfAnotherTransactionAfterACrashIsNotTakenForOurs(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	const successors = 30 // more than there were transactions whose identifiers are free again
	err := db.InTx(t.Context(), account, func(ctx context.Context, tx *persistence.Tx) error {
		if _, err := tx.Exec(ctx, renameSQL, account, "lost"); err != nil {
			return err
		}
		if err := errors.Join(database.Server.StopAtOnce(ctx), database.Server.Start(ctx)); err != nil {
			return err
		}
		for range successors {
			database.Admin(t, `select pg_current_xact_id()`)
		}
		return nil
	})
	if protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a transaction that was lost in a crash answers %v", err)
	}
	if got := displayName(t, db, account); got != "Test" {
		t.Errorf("the name is %q", got)
	}
}
