package pg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func TestTheAccountSettingAppliesToExactlyOnePipeline(t *testing.T) {
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
	for range 40 { // on any connection of the pool
		left, err := pg.Row(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[string], settingSQL)
		if err != nil || left != "" {
			t.Fatalf("a later request has account %q (%v)", left, err)
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
	for _, caller := range []protocol.AccountID{mine, pg.NoAccount} {
		seen, err := pg.Row(t.Context(), db.DB, caller, pgx.RowTo[int], seeSQL, theirs)
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

func TestSignInLookupReturnsTheAccountOnly(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	const lookupSQL = `select sign_in_lookup($1)`
	if found, err := pg.Row(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[*protocol.AccountID], lookupSQL, account.String()+"@example.com"); err != nil || found != nil {
		t.Errorf("found %v without a password (%v)", found, err)
	}
	if err := db.Accounts.SetPassword(t.Context(), account, "hash", time.Now(), audit.Requester{}); err != nil {
		t.Fatal(err)
	}
	found, err := pg.Row(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[*protocol.AccountID], lookupSQL, account.String()+"@example.com")
	if err != nil || found == nil || *found != account {
		t.Errorf("found %v (%v)", found, err)
	}
	found, err = pg.Row(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[*protocol.AccountID], lookupSQL, "nobody@example.com")
	if err != nil || found != nil {
		t.Errorf("found %v (%v)", found, err)
	}
}

func TestEveryOwnedTableForcesRowLevelSecurity(t *testing.T) {
	db := pgtest.New(t)
	// Exempt are tables that are queried before the account is known, and the audit, which only functions write.
	const openSQL = `
		select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id'
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
		  and not (c.relrowsecurity and c.relforcerowsecurity)
		  and c.relname not in ('sessions', 'account_identities', 'audit', 'audit_heads') order by 1`
	open, err := pg.Rows(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[string], openSQL)
	if err != nil || len(open) != 0 {
		t.Errorf("without forced row-level security: %v (%v)", open, err)
	}
}

// All pooled connections are terminated at once, as by a restart of the server. The next requests, including writes,
// succeed.
func TestConnectionsTerminatedInThePoolFailNoRequest(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	const requests = 8
	together := func(request func() error) {
		t.Helper()
		var all sync.WaitGroup
		failed := make(chan error, requests)
		for range requests {
			all.Go(func() { failed <- request() })
		}
		all.Wait()
		for range requests {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
	}
	in := make(chan struct{}, requests)
	full := make(chan struct{})
	go func() {
		for range requests {
			<-in
		}
		close(full)
	}()
	together(func() error { // opens one connection for each concurrent request
		return db.InTx(t.Context(), account, func(context.Context, *pg.Tx) error {
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

func TestADownPostgresIsReportedAsUnavailable(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := database.Server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[int], `select 1`)
	unready := db.Ready(t.Context())
	if err := database.Server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a read returned %v", err)
	}
	if protocol.CodeOf(unready) != protocol.CodeUnavailable {
		t.Errorf("Ready returned %v", unready)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Errorf("Ready after the restart: %v", err)
	}
	storetest.Eventually(t, func() bool {
		_, err = pg.Row(t.Context(), db.DB, account, pgx.RowTo[int], `select 1`)
		return err == nil
	})
}

func TestDatabaseErrorsMapToProtocolCodes(t *testing.T) {
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
		_, err := pg.Row(t.Context(), db.DB, account, func(row pgx.CollectableRow) (int, error) { return 0, nil }, c.sql)
		if protocol.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", c.sql, err, c.want)
		}
	}
	_, err := db.Exec(t.Context(), account, `insert into accounts (account_id, email, email_key, display_name) values ($1, $2, '', '')`, account, "a\x00b")
	if protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("a NUL character: %v", err)
	}
}

func TestTransactionCommitsOnNilAndRollsBackOnError(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	rename := func(name string, after error) error {
		return db.InTx(t.Context(), account, func(ctx context.Context, tx *pg.Tx) error {
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
	name, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[string], `select display_name from accounts`)
	if err != nil || name != "kept" {
		t.Errorf("the name is %q (%v)", name, err)
	}
}

// Two sessions of a node that has stopped: one has locked a row, the other one waits for it, and gets it when the first one ends.
func TestAWriteOutlastsTheLocksOfASilentNode(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	const lock = `update accounts set display_name = 'silent' where account_id = $1`
	var silent [2]*pgx.Conn
	granted := make(chan error, 1)
	for i := range silent {
		conn, err := pgx.Connect(t.Context(), database.AdminURL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
		if _, err := conn.Exec(t.Context(), `begin`); err != nil {
			t.Fatal(err)
		}
		silent[i] = conn
	}
	if _, err := silent[0].Exec(t.Context(), lock, account); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := silent[1].Exec(context.WithoutCancel(t.Context()), lock, account)
		granted <- err
	}()
	storetest.AwaitLocked(t, database, lock)
	runs := 0
	err := db.InTx(t.Context(), account, func(ctx context.Context, tx *pg.Tx) error {
		switch runs++; runs {
		case 2:
			database.Admin(t, `select pg_terminate_backend($1, 60000)`, silent[0].PgConn().PID())
		case 3:
			if err := <-granted; err != nil {
				t.Error(err)
			}
			database.Admin(t, `select pg_terminate_backend($1, 60000)`, silent[1].PgConn().PID())
		}
		batch := &pgx.Batch{}
		batch.Queue(`select set_config('lock_timeout', '50ms', true)`)
		if err := tx.Run(ctx, batch); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update accounts set display_name = 'written' where account_id = $1`, account)
		return err
	})
	if err != nil || runs != 3 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

func TestATransactionIsTriedUntilASilentNodeCanHoldNoLock(t *testing.T) {
	db := pgtest.New(t)
	outlasts, err := pg.Row(t.Context(), db.DB, pgtest.Account(t, db), pgx.RowTo[bool], `
		select (1 + $1::int) * max(setting::int) filter (where name = 'lock_timeout') > sum(setting::int)
		from pg_settings where name in ('lock_timeout', 'idle_in_transaction_session_timeout') and setting <> '0' having count(*) = 2`, pg.LockRetries)
	if err != nil || !outlasts {
		t.Errorf("%v, %v", outlasts, err)
	}
}

// awaitEndSQL waits until a session has ended.
const awaitEndSQL = `do $$ begin
	while exists (select from pg_stat_activity where pid = %d) loop perform pg_sleep(0.01), pg_stat_clear_snapshot(); end loop;
end $$`

func TestATransactionWhoseProcessWasTooSlowIsRetried(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	runs := 0
	err := db.InTx(t.Context(), pgtest.Account(t, db), func(ctx context.Context, tx *pg.Tx) error {
		if runs++; runs == 1 {
			if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = 1`); err != nil {
				return err
			}
			database.Admin(t, fmt.Sprintf(awaitEndSQL, tx.Conn().PgConn().PID()))
		}
		_, err := tx.Exec(ctx, `select 1`)
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

func TestADeadlockedTransactionIsRetried(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	runs := 0
	err := db.InTx(t.Context(), account, func(ctx context.Context, tx *pg.Tx) error {
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
