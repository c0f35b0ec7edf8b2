package pg_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// openThroughCutter opens a database through a Cutter and creates an account.
func openThroughCutter(t *testing.T) (*persistence.Stores, *pgtest.Cutter, protocol.AccountID) {
	t.Helper()
	cut := pgtest.NewCutter(t, pgtest.NewDatabase(t).URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, cut, pgtest.Account(t, db)
}

func displayName(t *testing.T, db *persistence.Stores, account protocol.AccountID) string {
	t.Helper()
	name, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[string], `select display_name from accounts`)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

const renameSQL = `update accounts set display_name = $2 where account_id = $1`

func TestACommitWhoseReplyWasLostIsResolved(t *testing.T) {
	db, cut, account := openThroughCutter(t)
	plain := func(ctx context.Context, tx *pg.Tx) error {
		_, err := tx.Exec(ctx, renameSQL, account, "committed")
		return err
	}
	together := func(ctx context.Context, tx *pg.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(renameSQL, account, "committed")
		return tx.CommitWith(ctx, batch)
	}
	for name, work := range map[string]func(context.Context, *pg.Tx) error{"on its own": plain, "in a pipeline": together} {
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
		t.Errorf("%d replies were lost, want 20", cut.Count())
	}
}

func TestCommitThatNeverArrivedIsResolved(t *testing.T) {
	db, cut, account := openThroughCutter(t)
	cut.CutRequest("commit\x00")
	err := db.InTx(t.Context(), account, func(ctx context.Context, tx *pg.Tx) error {
		_, err := tx.Exec(ctx, renameSQL, account, "lost")
		return err
	})
	if protocol.CodeOf(err) != protocol.CodeUnavailable || strings.Contains(err.Error(), protocol.OutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	if got := displayName(t, db, account); got != "Test" || cut.Count() != 1 {
		t.Errorf("the name is %q after %d cuts", got, cut.Count())
	}
}

func TestASingleWriteWhoseReplyWasLostStaysUnknown(t *testing.T) {
	db, cut, account := openThroughCutter(t)
	cut.CutReply("UPDATE 1\x00")
	_, err := db.Exec(t.Context(), account, renameSQL, account, "maybe")
	if protocol.CodeOf(err) != protocol.CodeUnavailable || !strings.Contains(err.Error(), protocol.OutcomeUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestAStartWhoseReplyWasLostStartsOneTurn(t *testing.T) {
	database := storetest.NewWorld(t).Database
	cut := pgtest.NewCutter(t, database.URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := storetest.NewWorldOn(t, database, db)
	for range 3 {
		cut.CutReply("COMMIT\x00")
		turn := w.Start(w.Request(nil, "hello"))
		cut.CutReply("COMMIT\x00")
		turn.End(nil)
	}
	turns, err := pg.Row(t.Context(), w.DB.DB, w.Account, pgx.RowTo[int], `select count(*) from turns where terminal`)
	if err != nil || turns != 3 || cut.Count() != 6 {
		t.Errorf("%d turns after %d cuts (%v)", turns, cut.Count(), err)
	}
}

// The server crashes before anything of a transaction has reached its log, and later assigns the same identifier to
// another transaction. The commit of that transaction is not taken for ours.
func TestCommitOfAnotherTransactionAfterACrashIsNotTakenForOurs(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	const successors = 30 // more than the number of identifiers that are assigned again after the crash
	err := db.InTx(t.Context(), account, func(ctx context.Context, tx *pg.Tx) error {
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
		t.Errorf("a transaction that was lost in a crash returned %v", err)
	}
	if got := displayName(t, db, account); got != "Test" {
		t.Errorf("the name is %q", got)
	}
}
