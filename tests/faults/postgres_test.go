package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/timelimit"
	"turnstone/providers/embedded"
)

const (
	restarts = 3
	// deadlockWait is the deadlock_timeout of the service's sessions: how long a session waits for a lock before
	// Postgres checks, once, for a deadlock. It is longer than the sleep of the storm, so that both sessions wait
	// when Postgres checks.
	deadlockWait = "80ms"
)

// ownServer starts a Postgres that no other test uses. The server's account must be able to reach folder.
func ownServer(t *testing.T, folder string, settings map[string]string) *embedded.Postgres {
	t.Helper()
	server, err := embedded.StartPostgres(sitetest.Within(t, sitetest.HangGuard), embedded.PostgresOptions{
		DataDir: filepath.Join(folder, "postgres"), ExtraSettings: settings,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), sitetest.HangGuard)
		defer cancel()
		_ = server.Resume() // it may be stopped
		if err := server.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return server
}

// openFolder creates a folder with a short path that other accounts can enter.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "turnstone-faults-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// TestTheServiceRecoversFromPostgresCrashesAndFreezes crashes and freezes a server while clients write and a turn is
// live. After a crash Postgres recovers from its log.
func TestTheServiceRecoversFromPostgresCrashesAndFreezes(t *testing.T) {
	t.Parallel()
	server := ownServer(t, openFolder(t), nil)
	site := sitetest.NewSiteOn(t, server)
	site.Start()
	r := newReport()
	t.Cleanup(func() { r.print(t) })
	type serverFault struct {
		name           string
		inject, repair func() error
		allowed        want
	}
	start := func() error { return server.Start(sitetest.Within(t, sitetest.HangGuard)) }
	var serverFaults []serverFault
	for n := range restarts {
		serverFaults = append(serverFaults, serverFault{fmt.Sprintf("crash %d", n+1), server.Kill, start, refuses})
	}
	serverFaults = append(serverFaults, serverFault{"frozen", server.Pause, server.Resume, refuses})
	for _, f := range serverFaults {
		t.Run(f.name, func(t *testing.T) {
			w := newRow(t, site, r, "server", f.name)
			during(w, f.allowed, f.inject, f.repair)
			w.checkWrites()
		})
	}
}

// during injects a fault of the server into a row and checks the promises to its clients.
func during(w *row, allowed want, inject, repair func() error) {
	w.t.Helper()
	writers := startWriters(w.t, w.User, sitetest.HangGuard, func(a *sitetest.Response) { w.check(mixed, a) })
	sitetest.Eventually(w.t, "something was written", func() bool { n, _ := writers.acknowledged(); return n >= stormWriters })
	planned := w.Ledger.Plan()
	if err := inject(); err != nil {
		w.t.Fatal(err)
	}
	runConcurrently(func() { w.sendAll(allowed, allowed) }, func() { w.awaitDown("persistence") })
	if err := repair(); err != nil {
		w.t.Fatal(err)
	}
	w.recover()
	planned()
	w.wantNoRefusals()
	writers.end()
	w.wholeTurn()
	writers.checkStored(w.t, w, superuser(w.t, w.site))
}

// TestPostgresErrorsAreReturnedAsRefusals checks the responses of the service while Postgres runs but refuses
// statements or connections.
func TestPostgresErrorsAreReturnedAsRefusals(t *testing.T) {
	t.Parallel()
	site := sitetest.NewSite(t)
	admin := func(t *testing.T, sql string, args ...any) {
		t.Helper()
		asSuperuser(t, superuser(t, site), func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, sql, args...)
			return err
		})
	}
	admin(t, `do $$ begin execute format('alter database %I set deadlock_timeout = '''||'`+deadlockWait+`'||'''', current_database()); end $$`)
	site.Start()
	r := newReport()
	t.Cleanup(func() { r.print(t) })
	u := sitetest.NewUser(t, site.Base)
	fresh := func(t *testing.T, fault string) *row {
		return &row{User: u, t: t, site: site, report: r, link: "reply", fault: fault}
	}
	t.Run("every error of a statement", func(t *testing.T) { refusals(t, fresh, admin) })
	t.Run("a lock that is not granted", func(t *testing.T) { lockNotGranted(fresh(t, "55P03 lock")) })
	t.Run("a deadlock storm", func(t *testing.T) { deadlockStorm(fresh(t, "40P01 storm")) })
	t.Run("no free connection", func(t *testing.T) {
		w := newRow(t, site, r, "reply", "53300 connections")
		limit := func(n int) func() error {
			return func() error {
				admin(t, fmt.Sprintf(`do $$ begin execute format('alter database %%I connection limit %d', current_database()); end $$`, n))
				admin(t, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
				return nil
			}
		}
		during(w, refuses, limit(0), limit(-1))
		w.checkWrites()
	})
}

// addFaultTriggerSQL makes every update of a conversation's title fail with one SQLSTATE as long as a sequence is below
// a bound. A sequence also counts updates that are rolled back.
const (
	addFaultTriggerSQL = `
create sequence if not exists fault_count;
grant usage on sequence fault_count to public;
select setval('fault_count', 1, false);
create or replace function fault() returns trigger language plpgsql as $$ begin
    if nextval('fault_count') <= %d then %s end if;
    return new;
end $$;
create or replace trigger fault before update of title on conversations for each row execute function fault();`
	dropFaultTriggerSQL = `drop trigger fault on conversations`
)

const always = 1 << 30

// refuses makes Postgres return one SQLSTATE after the other. The service makes up to three retries if a retry can
// help. No SQLSTATE may be reported as a defect, and no effect may be partial.
func refusals(t *testing.T, fresh func(*testing.T, string) *row, admin func(*testing.T, string, ...any)) {
	raise := func(state string) string { return fmt.Sprintf("raise exception 'broken' using errcode = '%s';", state) }
	for _, one := range []struct {
		state, does string
		times       int
		response    want
	}{
		{"40001", "", 3, works},
		{"40P01", "", 3, works},
		{"40001", "", always, refuses},
		{"40P01", "", always, refuses},
		{"55P03", "", always, refuses},
		{"57014", "", always, refuses},
		{"53100", "", always, refuses},
		{"53200", "", always, refuses},
		{"53300", "", always, refuses},
		{"58030", "", always, refuses},
		{"57014 statement_timeout", fmt.Sprintf("perform pg_sleep(%.0f);", 6*timelimit.Of(5*time.Second).Seconds()), always, refuses},
	} {
		name := one.state
		if one.times == always {
			name += " always"
		}
		t.Run(name, func(t *testing.T) {
			w := fresh(t, name)
			conversation := w.NewConversation(t)
			does := one.does
			if does == "" {
				does = raise(one.state)
			}
			planned := w.Ledger.Plan()
			admin(t, fmt.Sprintf(addFaultTriggerSQL, one.times, does))
			a := w.requestAndCheck(one.response, http.MethodPut, "/conversations/"+conversation+"/title", map[string]string{"title": newTitle})
			admin(t, dropFaultTriggerSQL)
			planned()
			w.report.cell()
			if title := w.Page(t, conversation).Title; (title == newTitle) != (a != nil && a.Status == http.StatusOK) {
				t.Errorf("the title is %q after %+v", title, a)
			}
		})
	}
}

const lockSQL = `select from conversations where title = $1 for update`

// lockNotGranted locks a row for longer than the service waits for it.
func lockNotGranted(w *row) {
	const held = "Held"
	conversation := w.NewConversation(w.t)
	w.Do(w.t, http.MethodPut, "/conversations/"+conversation+"/title", map[string]string{"title": held}).Want(w.t, http.StatusOK, nil)
	asSuperuser(w.t, superuser(w.t, w.site), func(ctx context.Context, conn *pgx.Conn) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, lockSQL, held); err != nil {
			return err
		}
		w.report.cell()
		defer w.Ledger.Plan()()
		w.requestAndCheck(refuses, http.MethodPut, "/conversations/"+conversation+"/title", map[string]string{"title": newTitle})
		return tx.Rollback(ctx)
	})
	if title := w.Page(w.t, conversation).Title; title != held {
		w.t.Errorf("the title is %q", title)
	}
	w.requestAndCheck(works, http.MethodPut, "/conversations/"+conversation+"/title", map[string]string{"title": newTitle})
}

// The storm takes the locks of a turn's start in the opposite order. It is never the session that Postgres aborts,
// because its own deadlock_timeout is 60 s.
const (
	stormSQL = `
do $$
declare mine accounts.account_id%%type;
begin
    perform set_config('deadlock_timeout', '60s', true);
    select account_id into mine from accounts where email = '%s' for update;
    perform pg_sleep(0.03);
    perform from conversations where account_id = mine for update;
end $$`
	deadlocksSQL = `select deadlocks from pg_stat_database where datname = current_database()`
	stormStarts  = 8 // of a round, in each conversation
	stormQueues  = 2
)

// deadlockStorm starts turns while another session causes deadlocks. The starts succeed or are refused, and never
// return a conflict.
func deadlockStorm(w *row) {
	defer w.Ledger.Plan()()
	ctx, cancel := context.WithCancel(w.t.Context())
	var stormy, starting sync.WaitGroup
	dsn := superuser(w.t, w.site)
	stormy.Go(func() {
		asSuperuser(w.t, dsn, func(_ context.Context, conn *pgx.Conn) error {
			for ctx.Err() == nil {
				if _, err := conn.Exec(ctx, fmt.Sprintf(stormSQL, w.Email)); err != nil && !errors.Is(err, context.Canceled) {
					return err
				}
				_ = clock.Sleep(ctx, stormPause) // the loop checks ctx
			}
			return nil
		})
	})
	w.report.cell()
	var conversations [stormQueues]string
	for i := range conversations {
		conversations[i] = w.NewConversation(w.t)
	}
	n := 0
	sitetest.Eventually(w.t, "Postgres reports deadlocks", func() bool {
		for _, conversation := range conversations {
			starting.Go(func() {
				for i := range stormStarts {
					w.startInStorm(conversation, n+i)
				}
			})
		}
		starting.Wait()
		n += stormStarts
		return deadlocks(w.t, dsn) > 0
	})
	cancel()
	stormy.Wait()
	w.t.Logf("%d deadlocks in %d starts", deadlocks(w.t, dsn), n*stormQueues)
}

func deadlocks(t *testing.T, dsn string) (n int) {
	t.Helper()
	asSuperuser(t, dsn, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, deadlocksSQL).Scan(&n)
	})
	return n
}

// startInStorm starts a turn, repeats the start with the same key while it is refused, and reads the turn to its end.
func (w *row) startInStorm(conversation string, n int) {
	body := sitetest.NewChatBody("[[script tokens=3 ttft=0 interval=0s]]").In(conversation)
	key := fmt.Sprintf("%s-%d", conversation, n)
	ctx := sitetest.Within(w.t, sitetest.HangGuard)
	for {
		s, refused, err := w.TryChat(ctx, body, "Idempotency-Key", key)
		if err != nil {
			w.t.Error(err)
			return
		}
		if s != nil {
			if events, err := s.Rest(); err != nil || events[len(events)-1].Payload().(*protocol.TurnFinished).Status != protocol.TurnCompleted {
				w.t.Errorf("the turn ended with %v", err)
			}
			s.Close()
			return
		}
		w.check(refuses, refused)
		if refused.Status != http.StatusServiceUnavailable {
			return
		}
	}
}
