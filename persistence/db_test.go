package persistence_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/machine"
	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func TestAccountHoldsForEveryStatementOfAPipelineAndNoLonger(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	const settingSQL = `select coalesce(current_setting('turnstone.account_id', true), '')`
	var first, second string
	batch := &pgx.Batch{}
	batch.Queue(settingSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&first) })
	batch.Queue(settingSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&second) })
	if err := db.Send(t.Context(), account, batch); err != nil {
		t.Fatal(err)
	}
	if want := protocol.NodeID(account).String(); first != want || second != want {
		t.Errorf("the account of the statements is %q and %q, want %q", first, second, want)
	}
	for range 40 { // whatever connection comes
		left, err := persistence.Row(t.Context(), db, persistence.Nobody, pgx.RowTo[string], settingSQL)
		if err != nil || left != "" {
			t.Fatalf("a later request finds account %q (%v)", left, err)
		}
	}
}

func TestIdentifiersAreUUIDColumns(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	var id protocol.AccountID
	var none *protocol.AccountID
	var many []protocol.AccountID
	batch := &pgx.Batch{}
	batch.Queue(`select account_id, null::uuid, array[account_id] from accounts where account_id = any($1::uuid[])`, []protocol.AccountID{account}).
		QueryRow(func(row pgx.Row) error { return row.Scan(&id, &none, &many) })
	if err := db.Send(t.Context(), account, batch); err != nil {
		t.Fatal(err)
	}
	if id != account || none != nil || len(many) != 1 || many[0] != account {
		t.Errorf("read back %v, %v, %v", id, none, many)
	}
}

func TestAnotherAccountsRowsAreNeitherSeenNorStored(t *testing.T) {
	db := pgtest.New(t)
	mine, theirs := pgtest.Account(t, db), pgtest.Account(t, db)
	const seeSQL = `select count(*) from accounts where account_id = $1`
	for _, caller := range []protocol.AccountID{mine, persistence.Nobody} {
		seen, err := persistence.Row(t.Context(), db, caller, pgx.RowTo[int], seeSQL, theirs)
		if err != nil || seen != 0 {
			t.Errorf("sees %d rows of another account (%v)", seen, err)
		}
	}
	touched, err := db.Exec(t.Context(), mine, `update accounts set display_name = 'x' where account_id = $1`, theirs)
	if err != nil || touched != 0 {
		t.Errorf("changed %d rows of another account (%v)", touched, err)
	}
	_, err = db.Exec(t.Context(), mine, `insert into account_settings (account_id, settings) values ($1, '{}')`, theirs)
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("storing a row of another account: %v", err)
	}
}

func TestSignInLookupTellsTheAccountOnly(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	const lookupSQL = `select sign_in_lookup($1)`
	if found, err := persistence.Row(t.Context(), db, persistence.Nobody, pgx.RowTo[*protocol.AccountID], lookupSQL, account.String()+"@example.com"); err != nil || found != nil {
		t.Errorf("found %v without a password (%v)", found, err)
	}
	if err := db.SetPassword(t.Context(), account, "hash", time.Now(), persistence.Requester{}); err != nil {
		t.Fatal(err)
	}
	found, err := persistence.Row(t.Context(), db, persistence.Nobody, pgx.RowTo[*protocol.AccountID], lookupSQL, account.String()+"@example.com")
	if err != nil || found == nil || *found != account {
		t.Errorf("found %v (%v)", found, err)
	}
	found, err = persistence.Row(t.Context(), db, persistence.Nobody, pgx.RowTo[*protocol.AccountID], lookupSQL, "nobody@example.com")
	if err != nil || found != nil {
		t.Errorf("found %v (%v)", found, err)
	}
}

func TestEveryOwnedTableForcesRowLevelSecurity(t *testing.T) {
	db := pgtest.New(t)
	// Tables with an account_id that are looked up before anybody is known, and the audit, which only functions write.
	const openSQL = `
		select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id'
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
		  and not (c.relrowsecurity and c.relforcerowsecurity)
		  and c.relname not in ('sessions', 'account_identities', 'audit', 'audit_heads') order by 1`
	open, err := persistence.Rows(t.Context(), db, persistence.Nobody, pgx.RowTo[string], openSQL)
	if err != nil || len(open) != 0 {
		t.Errorf("without forced row-level security: %v (%v)", open, err)
	}
}

// Every pooled connection dies at once, as with a restart, and the very next requests, writes among them, do not notice.
func TestConnectionsThatDiedInThePoolCostNoRequest(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	const crowd = 8
	together := func(ask func() error) {
		t.Helper()
		var all sync.WaitGroup
		failed := make(chan error, crowd)
		for range crowd {
			all.Go(func() { failed <- ask() })
		}
		all.Wait()
		for range crowd {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
	}
	in := make(chan struct{}, crowd)
	full := make(chan struct{})
	go func() {
		for range crowd {
			<-in
		}
		close(full)
	}()
	together(func() error { // so many connections as there are requests at once
		return db.InTx(t.Context(), account, func(context.Context, *persistence.Tx) error {
			in <- struct{}{}
			<-full
			return nil
		})
	})
	for range 3 {
		database.Admin(t, `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()`, database.Name)
		together(func() error {
			_, err := db.Exec(t.Context(), account, renameSQL, account, "after")
			return err
		})
	}
}

func TestDownPostgresAnswersUnavailableWithinASecond(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := database.Server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	meter, began := machine.Start(), time.Now()
	_, err := persistence.Row(t.Context(), db, account, pgx.RowTo[int], `select 1`)
	meter.Check(t, "a read", began, time.Since(began), time.Second)
	meter.Stop()
	unready := db.Ready(t.Context())
	if err := database.Server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a read answers %v", err)
	}
	if protocol.CodeOf(unready) != protocol.CodeUnavailable {
		t.Errorf("Ready answers %v", unready)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Errorf("Ready after the restart: %v", err)
	}
	eventually(t, func() bool {
		_, err = persistence.Row(t.Context(), db, account, pgx.RowTo[int], `select 1`)
		return err == nil
	})
}

func TestErrorsGetTheirMeaning(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	for _, c := range []struct {
		sql  string
		want protocol.Code
	}{
		{`select 1 where false`, protocol.CodeNotFound},
		{`select 1/0`, protocol.CodeInternal},
		{`do $$ begin raise exception 'timeout' using errcode = '57014'; end $$`, protocol.CodeUnavailable},
		{`do $$ begin raise exception 'full' using errcode = '53100'; end $$`, protocol.CodeUnavailable},
		{`do $$ begin raise exception 'locked' using errcode = '55P03'; end $$`, protocol.CodeUnavailable},
	} {
		_, err := persistence.Row(t.Context(), db, account, func(row pgx.CollectableRow) (int, error) { return 0, nil }, c.sql)
		if protocol.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", c.sql, err, c.want)
		}
	}
	_, err := db.Exec(t.Context(), account, `insert into accounts (account_id, email, email_key, display_name) values ($1, $2, '', '')`, account, "a\x00b")
	if protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("a NUL answers %v", err)
	}
}

func TestTransactionCommitsOnNilAndRollsBackOnError(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	rename := func(name string, after error) error {
		return db.InTx(t.Context(), account, func(ctx context.Context, tx *persistence.Tx) error {
			if _, err := tx.Exec(ctx, `update accounts set display_name = $2 where account_id = $1`, account, name); err != nil {
				return err
			}
			return after
		})
	}
	stop := errors.New("stop")
	if err := rename("kept", nil); err != nil {
		t.Fatal(err)
	}
	if err := rename("lost", stop); !errors.Is(err, stop) {
		t.Fatalf("got %v", err)
	}
	name, err := persistence.Row(t.Context(), db, account, pgx.RowTo[string], `select display_name from accounts`)
	if err != nil || name != "kept" {
		t.Errorf("the name is %q (%v)", name, err)
	}
}

func TestDeadlockIsRunAgain(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	runs := 0
	err := db.InTx(t.Context(), account, func(ctx context.Context, tx *persistence.Tx) error {
		if runs++; runs < 3 {
			_, err := tx.Exec(ctx, `do $$ begin raise exception 'deadlock' using errcode = '40P01'; end $$`)
			return err
		}
		return nil
	})
	if err != nil || runs != 3 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

// patience is only a guard: nothing takes it when all is well.
const patience = time.Minute

// eventually polls a condition until it holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the condition never held")
		}
	}
}

// awaitLocked waits until a statement of the database, known by its beginning, waits for a lock.
func awaitLocked(t *testing.T, database pgtest.Database, beginning string) {
	t.Helper()
	awaitWaiting(t, database, beginning, true)
}

// awaitWaiting waits until a statement with this beginning waits for a lock, or until none does.
func awaitWaiting(t *testing.T, database pgtest.Database, beginning string, want bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database.AdminURL) // within a transaction the activity would stand still
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	eventually(t, func() bool {
		var waits bool
		err := conn.QueryRow(t.Context(), `
			select exists (select from pg_stat_activity
				where datname = current_database() and wait_event_type = 'Lock' and starts_with(ltrim(query, E' \n'), $1))`, beginning).Scan(&waits)
		return err == nil && waits == want
	})
}
