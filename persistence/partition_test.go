package persistence_test

import (
	"context"
	"encoding/json"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// partitionRows is the size of the partition that is dropped. docs/reliability.md has the figures of 20,000,000.
var partitionRows = flag.Int("rows", 100_000, "rows of the partition that TestAnOldPartitionIsDroppedWithoutReadingIt drops")

// oldPartition creates the partition of a day long ago, with rows of ended turns, a hundred a turn.
func (w *world) oldPartition(day string, rows int) {
	w.Helper()
	name := "turn_events_" + strings.ReplaceAll(day, "-", "")
	w.database.Admin(w.T, `do $$ begin execute format('create table `+name+` partition of turn_events for values from (%L) to (%L)',
		turn_partition_bound('`+day+`'), turn_partition_bound(date '`+day+`' + 1)); end $$`)
	const batch = 500_000 // a transaction
	for first := 0; first < rows; first += batch {
		w.database.Admin(w.T, `
			insert into `+name+` (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
			select $1, (left(turn_partition_bound('`+day+`')::text, 14) || '7000-8000-' || lpad(to_hex(n / 100), 12, '0'))::uuid,
				n % 100 + 1, n % 100 + 1, 1, convert_to(repeat('x', 120), 'UTF8')
			from generate_series($2::int, $3::int) n`, w.account, first, min(first+batch, rows)-1)
	}
}

func (w *world) hasPartition(day string) bool {
	w.Helper()
	return w.count(`select count(*) from pg_class where relname = 'turn_events_`+strings.ReplaceAll(day, "-", "")+`'`) == 1
}

// buffersOf runs a statement in a transaction that is rolled back and returns how many pages it read.
func (w *world) buffersOf(sql string, args ...any) int {
	w.Helper()
	conn := w.adminConn()
	tx, err := conn.Begin(w.Context())
	w.must(err)
	defer func() { w.must(tx.Rollback(context.Background())) }()
	var text []byte
	w.must(tx.QueryRow(w.Context(), `explain (analyze, buffers, format json) `+sql, args...).Scan(&text))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	w.must(json.Unmarshal(text, &plans))
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

func (w *world) adminConn() *pgx.Conn {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.database.AdminURL)
	w.must(err)
	w.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// appendUntil appends to a turn one event after the other until stop is closed and returns how many appends there were and
// the longest.
func appendUntil(turn *actedTurn, stop <-chan struct{}) (appends int, longest time.Duration) {
	for {
		select {
		case <-stop:
			return appends, longest
		default:
			began := time.Now()
			turn.append(1)
			appends, longest = appends+1, max(longest, time.Since(began))
		}
	}
}

func TestAnOldPartitionIsDroppedWithoutReadingIt(t *testing.T) {
	w := newWorld(t)
	const day = "2020-01-01"
	w.oldPartition(day, *partitionRows)
	live := w.start(w.request(nil, "hello"))
	pages := w.count(`select (pg_relation_size('turn_events_20200101') / 8192)::int`)
	w.oldPartition("2020-01-02", 1)
	read, base := w.buffersOf(`select drop_turn_partition('turn_events_20200101')`), w.buffersOf(`select drop_turn_partition('turn_events_20200102')`)
	if read > base+pages/10 {
		t.Errorf("dropping %d rows in %d pages reads %d pages; dropping 1 row reads %d", *partitionRows, pages, read, base)
	}
	stop := make(chan struct{})
	type appended struct {
		appends int
		longest time.Duration
	}
	result := make(chan appended, 1)
	go func() {
		n, longest := appendUntil(live, stop)
		result <- appended{n, longest}
	}()
	began := time.Now()
	err := w.db.MaintainPartitions(t.Context())
	took := time.Since(began)
	close(stop)
	during := <-result
	if err != nil || w.hasPartition(day) {
		t.Fatalf("the partition is not dropped: %v", err)
	}
	t.Logf("%d rows in %d pages: %d pages read, dropped in %v; %d appends during it, the longest %v",
		*partitionRows, pages, read, took, during.appends, during.longest)
}

func TestAPartitionThatCannotBeDroppedDoesNotKeepTheOthers(t *testing.T) {
	w := newWorld(t)
	const needed, locked, free = "2020-01-01", "2020-01-02", "2020-01-03"
	for _, day := range []string{needed, locked, free} {
		w.oldPartition(day, 200)
	}
	live := w.start(w.request(nil, "hello"))
	w.database.Admin(t, `update turns set turn_id = turn_partition_bound('`+needed+`') where turn_id = $1`, live.spec.TurnID)
	reader, err := w.adminConn().Begin(t.Context())
	w.must(err)
	_, err = reader.Exec(t.Context(), `lock table turn_events_20200102 in access share mode`)
	w.must(err)
	err = w.db.MaintainPartitions(t.Context())
	if protocol.CodeOf(err) != protocol.CodeUnavailable || !strings.Contains(err.Error(), "turn_events_20200102") {
		t.Errorf("the job reports %v", err)
	}
	if !w.hasPartition(needed) || !w.hasPartition(locked) || w.hasPartition(free) {
		t.Errorf("needed %v, locked %v, free %v are there", w.hasPartition(needed), w.hasPartition(locked), w.hasPartition(free))
	}
	w.must(reader.Rollback(t.Context()))
	w.database.Admin(t, `update turns set state = 'completed', accepting = false`)
	w.must(w.db.MaintainPartitions(t.Context()))
	if w.hasPartition(needed) || w.hasPartition(locked) {
		t.Error("a partition that nothing needs any more is kept")
	}
}

func TestADropThatDoesNotGetItsLockIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.oldPartition("2020-01-01", 200)
	live := w.start(w.request(nil, "hello"))
	reader, err := w.adminConn().Begin(t.Context())
	w.must(err)
	_, err = reader.Exec(t.Context(), `lock table turn_events in access share mode`)
	w.must(err)
	if err := w.db.MaintainPartitions(t.Context()); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("the job reports %v", err)
	}
	live.append(1)
	w.must(reader.Rollback(t.Context()))
	w.must(w.db.MaintainPartitions(t.Context()))
	if w.hasPartition("2020-01-01") {
		t.Error("the partition is kept")
	}
}

// The limit of requests is too short for a large partition, and a drop that waits for its lock delays every append. The
// function is replaced by one that notes what it runs under.
func TestAPartitionIsDroppedUnderALongLimitForTheStatementAndAShortOneForItsLock(t *testing.T) {
	w := newWorld(t)
	w.oldPartition("2020-01-01", 1)
	w.database.Admin(t, `
create table seen (statement text, lock text);
grant insert on seen to public;
create or replace function drop_turn_partition(part text) returns boolean language sql security definer
as $$ insert into public.seen values (current_setting('statement_timeout'), current_setting('lock_timeout')) returning true $$`)
	w.must(w.db.MaintainPartitions(t.Context()))
	var statement, lock string
	w.must(w.adminConn().QueryRow(t.Context(), `select statement, lock from seen`).Scan(&statement, &lock))
	if statement != "10min" || lock != "100ms" {
		t.Errorf("statement_timeout is %s, lock_timeout %s", statement, lock)
	}
}

func TestAYoungPartitionIsNeverDropped(t *testing.T) {
	w := newWorld(t)
	w.must(w.db.MaintainPartitions(t.Context()))
	const todaySQL = `select 'turn_events_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')`
	var today string
	conn := w.adminConn()
	w.must(conn.QueryRow(t.Context(), todaySQL).Scan(&today))
	var dropped bool
	if err := conn.QueryRow(t.Context(), `select drop_turn_partition($1)`, today).Scan(&dropped); err == nil {
		t.Error("the partition of today was dropped")
	}
	if n := w.count(`select count(*) from pg_class where relname = '` + today + `'`); n != 1 {
		t.Error("the partition of today is gone")
	}
}

func TestOldRowsOfTheDefaultPartitionAreDeletedUnlessTheirTurnIsLive(t *testing.T) {
	w := newWorld(t)
	live := w.start(w.request(nil, "hello"))
	w.database.Admin(t, `update turns set turn_id = turn_partition_bound('2020-01-01') where turn_id = $1`, live.spec.TurnID)
	w.database.Admin(t, `insert into turn_events_default (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
		select $1, turn_partition_bound(day), n, n, 1, '' from unnest(array['2020-01-01', '2020-01-02']::date[]) day, generate_series(1, 5) n`, w.account)
	w.must(w.db.MaintainPartitions(t.Context()))
	var kept int
	w.must(w.adminConn().QueryRow(t.Context(), `select count(*) from turn_events_default`).Scan(&kept))
	if kept != 5 {
		t.Errorf("%d rows are kept, want the 5 of the live turn", kept)
	}
}
