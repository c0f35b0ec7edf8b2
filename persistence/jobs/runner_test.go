package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"turnstone/persistence"
	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/ownership"
)

func TestJobsMakeTitlesPurgeAndExpire(t *testing.T) {
	w := storetest.NewWorld(t)
	titled := make(chan protocol.ConversationID, 1)
	var changes clocktest.Changes
	jobs, err := w.DB.StartJobs(t.Context(), persistence.JobWorkers{
		Observe: changes.Job,
		Title: func(_ context.Context, account protocol.AccountID, conversation protocol.ConversationID, turn protocol.TurnID) error {
			if account != w.Account || turn.IsZero() {
				t.Errorf("title job for account %v, turn %v", account, turn)
			}
			titled <- conversation
			return nil
		},
	})
	w.Must(err)
	defer func() { w.Must(jobs.Close(context.Background())) }()

	turn := w.Start(w.Request(nil, "hello"))
	turn.End(nil)
	select {
	case conversation := <-titled:
		if conversation != turn.Spec.ConversationID {
			t.Errorf("titled conversation %v", conversation)
		}
	case <-time.After(storetest.WaitLimit):
		t.Fatal("no title job ran")
	}

	const staleSQL = `
		insert into idempotency (account_id, key_hash, path, body_hash, status, created_at)
		select $1, n::text::bytea, '/things', '', 201, now() - interval '25 hours' from generate_series(1, 2500) n`
	_, err = w.DB.Exec(t.Context(), w.Account, staleSQL, w.Account)
	w.Must(err)
	live, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: turn.Spec.ConversationID})
	if err != nil || live != nil {
		t.Fatal(live, err)
	}
	changes.Await(t, "the conversation is purged", func() bool {
		return w.Count(`select count(*) from messages`) == 0 && w.Count(`select count(*) from turns`) == 0
	})
	w.Database.Admin(t, `update river.river_job set scheduled_at = now(), state = 'available', attempt = 0, finalized_at = null where kind = 'expire'`)
	changes.Await(t, "the responses are deleted", func() bool { return w.Count(`select count(*) from idempotency`) == 0 })
}

// More titles than a node asks for at once wait for a model that does not answer.
func TestAModelThatDoesNotAnswerForTitlesDelaysNoOtherJob(t *testing.T) {
	const titles = 24
	w := storetest.NewWorld(t)
	var last *storetest.Turn
	for range titles {
		last = w.Start(w.Request(nil, "hello"))
		last.End(nil)
	}
	asked := make(chan struct{}, titles)
	var changes clocktest.Changes
	runner, err := w.DB.StartJobs(t.Context(), persistence.JobWorkers{
		Observe: changes.Job,
		Title: func(ctx context.Context, _ protocol.AccountID, _ protocol.ConversationID, _ protocol.TurnID) error {
			asked <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		},
	})
	w.Must(err)
	ending, end := context.WithCancel(context.Background())
	end() // Close cancels the jobs at once
	defer func() { _ = runner.Close(ending) }()
	<-asked
	live, err := w.DB.Conversations.DeleteConversation(t.Context(), w.Account, &conversations.Deletion{ConversationID: last.Spec.ConversationID})
	if err != nil || live != nil {
		t.Fatal(live, err)
	}
	changes.Await(t, "the conversation is purged", func() bool {
		return w.Count(`select count(*) from turns where conversation_id = '`+pg.UUIDText(last.Spec.ConversationID)+`'`) == 0
	})
	changes.Await(t, "the texts are indexed", func() bool { return w.Count(`select count(*) from search_pending`) == 0 })
	if waiting := w.Count(`select count(*) from river.river_job where kind = 'title' and state = 'available'`); waiting < titles/2 {
		t.Errorf("%d titles wait", waiting)
	}
}

// urgentArgs is a short job.
type urgentArgs struct{}

func (urgentArgs) Kind() string { return "urgent" }

func (urgentArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: jobs.UrgentQueue} }

func TestSlowJobsDelayNoUrgentOne(t *testing.T) {
	w := storetest.NewWorld(t)
	queue, err := jobs.NewQueue(w.DB.DB)
	w.Must(err)
	w.Must(w.DB.InTx(t.Context(), w.Account, func(ctx context.Context, tx *pg.Tx) error {
		var failed error
		for range 24 {
			failed = errors.Join(failed, queue.Insert(ctx, tx, contentArgs{"slow"}))
		}
		return errors.Join(failed, queue.Insert(ctx, tx, urgentArgs{}))
	}))
	done, urgent := make(chan struct{}), make(chan struct{})
	runner, err := jobs.Start(t.Context(), w.DB.DB, w.Node, nil,
		jobs.New(func(context.Context, contentArgs) error { <-done; return nil }),
		jobs.New(func(context.Context, urgentArgs) error { close(urgent); return nil }))
	w.Must(err)
	select {
	case <-urgent:
	case <-time.After(storetest.WaitLimit):
		t.Error("the urgent job waits for the slow ones")
	}
	close(done)
	w.Must(runner.Close(context.Background()))
}

func TestWhatSomebodyWaitsForIsUrgent(t *testing.T) {
	w := storetest.NewWorld(t)
	w.Must(w.DB.Operator.DisableAccount(t.Context(), w.Account, time.Now(), audit.Requester{}))
	runner, err := w.DB.StartJobs(t.Context(), persistence.JobWorkers{})
	w.Must(err)
	storetest.Eventually(t, func() bool { return w.Count(`select count(*) from river.river_job where kind = 'index_search'`) > 0 })
	w.Must(runner.Close(context.Background()))
	if n := w.Count(`select count(*) from river.river_job where kind in ('index_search', 'disable_account') and queue <> 'urgent'`); n != 0 {
		t.Errorf("%d urgent jobs wait behind slow ones", n)
	}
}

// contentArgs is a job that reads a content.
type contentArgs struct {
	Content string `json:"content"`
}

func (contentArgs) Kind() string { return "read_content" }

func TestAJobThatEndsItsProcessTwiceIsGivenUpAndNotAProperlyFailedOne(t *testing.T) {
	w := storetest.NewWorld(t)
	queue, err := jobs.NewQueue(w.DB.DB)
	w.Must(err)
	const lost, failed = `'{"at":"2026-01-01T00:00:00Z","attempt":1,"error":"Stuck job rescued by JobRescuer","trace":""}'::jsonb`,
		`'{"at":"2026-01-01T00:00:00Z","attempt":1,"error":"the store is down","trace":""}'::jsonb`
	for content, errors := range map[string]string{"harmless": lost + "," + failed + "," + failed, "deadly": lost + "," + failed} {
		w.Must(w.DB.InTx(t.Context(), w.Account, func(ctx context.Context, tx *pg.Tx) error { return queue.Insert(ctx, tx, contentArgs{content}) }))
		w.Database.Admin(t, `update river.river_job set errors = array[`+errors+`], attempt = 3 where args ->> 'content' = $1`, content)
	}
	w.Database.Admin(t, `update river.river_job set state = 'running', attempted_at = now() - interval '1 day', attempted_by = array['a node that has ended']
		where args ->> 'content' = 'deadly'`)
	type call struct{ function, content string }
	calls := make(chan call, 4)
	note := func(function string) func(context.Context, contentArgs) error {
		return func(_ context.Context, args contentArgs) error { calls <- call{function, args.Content}; return nil }
	}
	runner, err := jobs.Start(t.Context(), w.DB.DB, w.Node, nil, jobs.NewGuarded(0, note("run"), note("give up")))
	w.Must(err)
	// The second run of the deadly job ends with its process now: the queue itself notes that.
	storetest.Eventually(t, func() bool {
		return w.Count(`select count(*) from river.river_job where args ->> 'content' = 'deadly' and cardinality(errors) = 3`) == 1
	})
	w.Database.Admin(t, `update river.river_job set state = 'available', scheduled_at = now() where args ->> 'content' = 'deadly'`)
	got := map[call]bool{<-calls: true, <-calls: true}
	if !got[call{"run", "harmless"}] || !got[call{"give up", "deadly"}] {
		t.Errorf("%v", got)
	}
	w.Must(runner.Close(context.Background()))
	if n := w.Count(`select count(*) from river.river_job where args ->> 'content' = 'deadly' and state = 'cancelled'`); n != 1 {
		t.Error("the job may run again")
	}
}

// The jobs have just begun, so that the queue itself does not rescue them.
func TestJobsOfANodeThatHasEndedRunAgain(t *testing.T) {
	w := storetest.NewWorld(t)
	dead := protocol.NewNodeID()
	w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: dead}))
	w.Database.Admin(t, `update nodes set dead = true where node_id = $1`, dead)
	queue, err := jobs.NewQueue(w.DB.DB)
	w.Must(err)
	const lost = `array['{"at":"2026-01-01T00:00:00Z","attempt":1,"error":"Stuck job rescued by JobRescuer","trace":""}'::jsonb]`
	for content, c := range map[string]struct {
		node             protocol.NodeID
		attempt, history string
	}{
		"lost": {dead, "1", "null"}, "left": {protocol.NewNodeID(), "1", "null"}, "deadly": {dead, "2", lost}, "last": {dead, "25", "null"}, "running": {w.Node, "1", "null"},
	} {
		w.Must(w.DB.InTx(t.Context(), w.Account, func(ctx context.Context, tx *pg.Tx) error { return queue.Insert(ctx, tx, contentArgs{content}) }))
		w.Database.Admin(t, `update river.river_job set state = 'running', attempted_at = now(), attempted_by = array['another node', $2::text],
			attempt = `+c.attempt+`, errors = `+c.history+` where args ->> 'content' = $1`, content, pg.UUIDText(c.node))
	}
	calls := make(chan string, 8)
	note := func(function string) func(context.Context, contentArgs) error {
		return func(_ context.Context, args contentArgs) error { calls <- function + " " + args.Content; return nil }
	}
	runner, err := jobs.Start(t.Context(), w.DB.DB, w.Node, nil, jobs.NewGuarded(0, note("run"), note("give up")))
	w.Must(err)
	got := []string{<-calls, <-calls, <-calls}
	w.Must(runner.Close(context.Background()))
	close(calls)
	for one := range calls {
		got = append(got, one)
	}
	slices.Sort(got)
	if want := []string{"give up deadly", "run left", "run lost"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for content, state := range map[string]string{"last": "discarded", "running": "running"} {
		if w.Count(`select count(*) from river.river_job where args ->> 'content' = '`+content+`' and state = '`+state+`'`) != 1 {
			t.Errorf("the job %q is not %s", content, state)
		}
	}
}

// The others run again what it begins, and count it as a run that has ended its process.
func TestANodeThatWasDeclaredDeadBeginsNoJob(t *testing.T) {
	w := storetest.NewWorld(t)
	queue, err := jobs.NewQueue(w.DB.DB)
	w.Must(err)
	w.Must(w.DB.InTx(t.Context(), w.Account, func(ctx context.Context, tx *pg.Tx) error { return queue.Insert(ctx, tx, contentArgs{"new"}) }))
	w.Database.Admin(t, `update nodes set dead = true where node_id = $1`, w.Node)
	ran := make(chan struct{}, 1)
	runner, err := jobs.Start(t.Context(), w.DB.DB, w.Node, nil, jobs.New(func(context.Context, contentArgs) error { ran <- struct{}{}; return nil }))
	w.Must(err)
	defer func() { w.Must(runner.Close(context.Background())) }()
	storetest.Eventually(t, func() bool {
		return w.Count(`select count(*) from river.river_job where kind = 'read_content' and (state = 'completed' or metadata ? 'snoozes')`) == 1
	})
	select {
	case <-ran:
		t.Fatal("the dead node has run a job")
	default:
	}
	w.Database.Admin(t, `update nodes set dead = false where node_id = $1`, w.Node)
	<-ran // the job is not lost
}

// withoutReplies opens a database on which the first n statements that contain text get no reply, as those of a server that is frozen; then
// their connections are silent.
func withoutReplies(t *testing.T, database pgtest.Database, text string, n int32) *persistence.Stores {
	var statements atomic.Int32
	_, through := pgtest.NewProxy(t, database.URL, func(client, server net.Conn) {
		var silent atomic.Bool
		forward := func(to, from net.Conn, drops func([]byte) bool) {
			defer func() { _, _ = to.Close(), from.Close() }()
			buffer := make([]byte, 32<<10)
			for {
				read, err := from.Read(buffer)
				if err == nil && !drops(buffer[:read]) {
					_, err = to.Write(buffer[:read])
				}
				if err != nil {
					return
				}
			}
		}
		var both sync.WaitGroup
		both.Go(func() {
			forward(server, client, func(request []byte) bool {
				if bytes.Contains(request, []byte(text)) && statements.Add(1) <= n {
					silent.Store(true)
				}
				return false
			})
		})
		both.Go(func() { forward(client, server, func([]byte) bool { return silent.Load() }) })
		both.Wait()
	})
	return database.Open(t, func(c *persistence.Config) { c.URL = through })
}

// Each check of the node has a connection of the queue, and a worker.
func TestTheQueueContinuesAfterItsOwnStatementsGotNoReply(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		n    int32
	}{"checks of the node": {"select exists (select from nodes", pg.JobConns}, "the rescue of lost jobs": {"update river.river_job set\n\tstate = (case", 1}} {
		t.Run(name, func(t *testing.T) {
			database := pgtest.NewDatabase(t)
			w := storetest.NewWorldOn(t, database, database.Open(t))
			queue, err := jobs.NewQueue(w.DB.DB)
			w.Must(err)
			insert := func(content string, n int) {
				w.Must(w.DB.InTx(t.Context(), w.Account, func(ctx context.Context, tx *pg.Tx) (failed error) {
					for range n {
						failed = errors.Join(failed, queue.Insert(ctx, tx, contentArgs{content}))
					}
					return failed
				}))
			}
			insert("lost", 1)
			w.Database.Admin(t, `update river.river_job set state = 'running', attempt = 1, attempted_at = now() + interval '1 day', attempted_by = array[$1::text]`,
				pg.UUIDText(protocol.NewNodeID()))
			const waiting = pg.JobConns
			ran := make(chan struct{}, waiting+1)
			runner, err := jobs.Start(t.Context(), withoutReplies(t, database, c.text, c.n).DB, w.Node, nil,
				jobs.New(func(context.Context, contentArgs) error { ran <- struct{}{}; return nil }))
			w.Must(err)
			defer func() { w.Must(runner.Close(context.Background())) }()
			insert("waiting", waiting)
			late := time.After(storetest.WaitLimit)
			for n := range waiting + 1 {
				select {
				case <-ran:
				case <-late:
					t.Fatalf("only %d jobs have run", n)
				}
			}
		})
	}
}

func TestAMissingPartitionIsCreatedAndGetsItsRows(t *testing.T) {
	w := storetest.NewWorld(t)
	live, ended := w.Start(w.Request(nil, "one")), w.Start(w.Request(nil, "two"))
	live.Append(2)
	ended.Append(2)
	ended.End(nil)
	const today = `to_char(now() at time zone 'UTC', 'YYYYMMDD')`
	inToday := func() int {
		return w.Count(`select count(*) from turn_events e join pg_class c on c.oid = e.tableoid where c.relname = 'turn_events_' || ` + today)
	}
	if inToday() == 0 {
		t.Error("the events are not in the day's partition")
	}
	// While the partition of a day is missing, its rows are stored in the default partition. They move when the
	// partition is created.
	before := w.Count(`select count(*) from turn_events`)
	w.Database.Admin(t, `do $$ begin execute 'alter table turn_events detach partition turn_events_' || `+today+`;
		execute 'insert into turn_events select * from turn_events_' || `+today+`;
		execute 'drop table turn_events_' || `+today+`; end $$`)
	if inToday() != 0 || w.Count(`select count(*) from turn_events`) != before {
		t.Fatal("the partition was not removed")
	}
	w.Database.Admin(t, `select ensure_turn_partitions(1)`)
	if got := inToday(); got != before {
		t.Errorf("%d of %d rows moved", got, before)
	}
}

func TestConcurrentAndRepeatedMigrationsSucceed(t *testing.T) {
	database := pgtest.NewDatabase(t)
	failures := make(chan error, 4)
	for range cap(failures) {
		go func() {
			failures <- pg.Migrate(context.Background(), database.OwnerURL, pg.MigrateOptions{Login: pgtest.Login})
		}()
	}
	for range cap(failures) {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	database.Open(t)
}

func TestOpenRefusesUnsafeRolesAndOtherSchemaVersions(t *testing.T) {
	database := pgtest.NewDatabase(t)
	refuses := func(name, url string) {
		t.Helper()
		db, err := persistence.Open(t.Context(), persistence.Config{URL: url})
		if err == nil {
			db.Close()
			t.Errorf("%s: opened", name)
			return
		}
		t.Logf("%s: %v", name, err)
	}
	refuses("superuser", database.AdminURL)
	refuses("owner", database.OwnerURL)
	refuses("garbage", "mysql://x")
	refuses("no server", "postgres://u@127.0.0.1:1/x")
	database.Admin(t, `update schema_version set version = version + 1, oldest_supported = version + 1`)
	refuses("a newer schema that supports no binary of this version", database.URL)
	if err := pg.Migrate(t.Context(), database.OwnerURL, pg.MigrateOptions{Login: pgtest.Login}); err == nil {
		t.Error("a newer schema that supports no binary of this version was migrated")
	}
	database.Admin(t, `update schema_version set version = version - 2, oldest_supported = oldest_supported - 1`)
	refuses("an older schema", database.URL)
	database.Admin(t, `update schema_version set version = version + 1; alter role `+pgtest.Login+` inherit`)
	defer database.Admin(t, `alter role `+pgtest.Login+` noinherit`)
	refuses("an inheriting role", database.URL)
	database.Admin(t, `alter role `+pgtest.Login+` noinherit bypassrls`)
	defer database.Admin(t, `alter role `+pgtest.Login+` nobypassrls`)
	refuses("a bypassing role", database.URL)
}

func TestABinaryRunsOnANewerSchemaThatSupportsIt(t *testing.T) {
	database := pgtest.NewDatabase(t)
	database.Admin(t, `update schema_version set version = version + 1`)
	if err := pg.Migrate(t.Context(), database.OwnerURL, pg.MigrateOptions{Login: pgtest.Login}); err != nil {
		t.Errorf("migrating: %v", err)
	}
	database.Open(t)
}

// The job queue finds its few open jobs without reading the finished jobs of the last day.
func TestTheJobQueueReadsNoFinishedJobs(t *testing.T) {
	w := storetest.NewWorld(t)
	const insertJobsSQL = `
		insert into river.river_job (args, kind, max_attempts, state, finalized_at, attempted_at, attempt, queue, created_at, scheduled_at)
		select '{}', 'title', 3, $1::text::river.river_job_state, case $1 when 'completed' then now() end, now(), 1, 'default', now(), now()
		from generate_series(1, $2::int)`
	w.Database.Admin(t, insertJobsSQL, "completed", 20_000)
	w.Database.Admin(t, insertJobsSQL, "running", 3)
	w.Database.Admin(t, `vacuum analyze river.river_job`)
	pool, err := jobs.JobPool(t.Context(), w.DB.DB)
	w.Must(err)
	defer pool.Close()
	const schema, most = "river", 1000
	for name, run := range map[string]func(queue riverdriver.Executor) error{
		"rescuing": func(queue riverdriver.Executor) error {
			stuck, err := queue.JobGetStuck(t.Context(), &riverdriver.JobGetStuckParams{Max: most, Schema: schema, StuckHorizon: time.Now().Add(time.Hour)})
			if len(stuck) != 3 {
				t.Errorf("%d jobs are stuck", len(stuck))
			}
			return err
		},
		"cleaning": func(queue riverdriver.Executor) error {
			yesterday := time.Now().Add(-24 * time.Hour)
			deleted, err := queue.JobDeleteBefore(t.Context(), &riverdriver.JobDeleteBeforeParams{
				CancelledDoDelete: true, CompletedDoDelete: true, DiscardedDoDelete: true, Max: most, Schema: schema,
				CancelledFinalizedAtHorizon: yesterday, CompletedFinalizedAtHorizon: yesterday, DiscardedFinalizedAtHorizon: yesterday,
			})
			if deleted != 0 {
				t.Errorf("%d jobs were deleted", deleted)
			}
			return err
		},
		"scheduling": func(queue riverdriver.Executor) error {
			_, err := queue.JobSchedule(t.Context(), &riverdriver.JobScheduleParams{Max: most, Schema: schema})
			return err
		},
		"fetching": func(queue riverdriver.Executor) error {
			_, err := queue.JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{ClientID: "test", MaxToLock: 4, MaxAttemptedBy: 10, Queue: "default", Schema: schema})
			return err
		},
	} {
		w.Must(pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			// Counts the rows that this session read since it last reported to the statistics of all sessions.
			const rowsReadSQL = `select (seq_tup_read + idx_tup_fetch)::int from pg_stat_xact_user_tables where schemaname = 'river' and relname = 'river_job'`
			var before, after int
			if err := errors.Join(
				tx.QueryRow(t.Context(), rowsReadSQL).Scan(&before),
				run(riverpgxv5.New(nil).UnwrapExecutor(tx)),
				tx.QueryRow(t.Context(), rowsReadSQL).Scan(&after),
			); err != nil {
				return err
			}
			if read := after - before; read > 10 {
				t.Errorf("%s reads %d rows", name, read)
			}
			return nil
		}))
	}
}
