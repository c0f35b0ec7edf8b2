package persistence_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func TestJobsMakeTitlesPurgeAndExpire(t *testing.T) {
	w := newWorld(t)
	titled := make(chan protocol.ConversationID, 1)
	jobs, err := persistence.StartJobs(t.Context(), w.db, persistence.JobWorkers{
		Title: func(_ context.Context, account protocol.AccountID, conversation protocol.ConversationID, turn protocol.TurnID) error {
			if account != w.account || turn.IsZero() {
				t.Errorf("asked for a title of %v, %v", account, turn)
			}
			titled <- conversation
			return nil
		},
	})
	w.must(err)
	defer func() { w.must(jobs.Close(context.Background())) }()

	turn := w.start(w.request(nil, "hello"))
	turn.end(nil)
	select {
	case conversation := <-titled:
		if conversation != turn.spec.ConversationID {
			t.Errorf("titled %v", conversation)
		}
	case <-time.After(patience):
		t.Fatal("no title was asked for")
	}

	const staleSQL = `
		insert into idempotency (account_id, key_hash, path, body_hash, status, created_at)
		select $1, n::text::bytea, '/things', '', 201, now() - interval '25 hours' from generate_series(1, 2500) n`
	_, err = w.db.Exec(t.Context(), w.account, staleSQL, w.account)
	w.must(err)
	live, err := w.db.DeleteConversation(t.Context(), w.account, &persistence.Deletion{ConversationID: turn.spec.ConversationID})
	if err != nil || live != nil {
		t.Fatal(live, err)
	}
	eventually(t, func() bool {
		return w.count(`select count(*) from messages`) == 0 && w.count(`select count(*) from turns`) == 0
	})
	w.database.Admin(t, `update river.river_job set scheduled_at = now(), state = 'available', attempt = 0, finalized_at = null where kind = 'expire'`)
	eventually(t, func() bool { return w.count(`select count(*) from idempotency`) == 0 })
}

func (w *world) count(sql string) int {
	w.Helper()
	n, err := persistence.Row(w.Context(), w.db, w.account, pgx.RowTo[int], sql)
	w.must(err)
	return n
}

func TestPartitionsAreMadeAndFilled(t *testing.T) {
	w := newWorld(t)
	live, ended := w.start(w.request(nil, "one")), w.start(w.request(nil, "two"))
	live.append(2)
	ended.append(2)
	ended.end(nil)
	const today = `to_char(now() at time zone 'UTC', 'YYYYMMDD')`
	inToday := func() int {
		return w.count(`select count(*) from turn_events e join pg_class c on c.oid = e.tableoid where c.relname = 'turn_events_' || ` + today)
	}
	if inToday() == 0 {
		t.Error("the events are not in the day's partition")
	}
	// A missing day: its rows wait in the default partition and move when the day is made.
	before := w.count(`select count(*) from turn_events`)
	w.database.Admin(t, `do $$ begin execute 'alter table turn_events detach partition turn_events_' || `+today+`;
		execute 'insert into turn_events select * from turn_events_' || `+today+`;
		execute 'drop table turn_events_' || `+today+`; end $$`)
	if inToday() != 0 || w.count(`select count(*) from turn_events`) != before {
		t.Fatal("the partition was not taken away")
	}
	w.database.Admin(t, `select ensure_turn_partitions(1)`)
	if got := inToday(); got != before {
		t.Errorf("%d of %d rows moved", got, before)
	}
}

func TestMigratingAtOnceAndAgainIsHarmless(t *testing.T) {
	database := pgtest.NewDatabase(t)
	failures := make(chan error, 4)
	for range cap(failures) {
		go func() {
			failures <- persistence.Migrate(context.Background(), database.OwnerURL, persistence.MigrateOptions{Login: pgtest.Login})
		}()
	}
	for range cap(failures) {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	database.Open(t)
}

func TestOpenRefusesWhatItCannotStandOn(t *testing.T) {
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
	refuses("nobody there", "postgres://u@127.0.0.1:1/x")
	database.Admin(t, `update schema_version set version = version + 1`)
	refuses("a newer schema", database.URL)
	database.Admin(t, `update schema_version set version = version - 2`)
	refuses("an older schema", database.URL)
	database.Admin(t, `update schema_version set version = version + 1; alter role `+pgtest.Login+` inherit`)
	defer database.Admin(t, `alter role `+pgtest.Login+` noinherit`)
	refuses("an inheriting role", database.URL)
	database.Admin(t, `alter role `+pgtest.Login+` noinherit bypassrls`)
	defer database.Admin(t, `alter role `+pgtest.Login+` nobypassrls`)
	refuses("a bypassing role", database.URL)
}
