package turns_test

import (
	"context"
	"encoding/json"
	"flag"
	"strings"
	"testing"
	"time"

	"turnstone/persistence/storetest"
	"turnstone/persistence/turns"
	"turnstone/protocol"
)

// partitionRows is the size of the partition that is dropped. docs/reliability.md has the figures for 20,000,000.
var partitionRows = flag.Int("rows", 100_000, "rows of the partition that TestAnOldPartitionIsDroppedWithoutReadingIt drops")

// oldPartition creates the partition of a day that is long past, with rows of ended turns, a hundred per turn.
func oldPartition(w *storetest.World, day string, rows int) {
	w.Helper()
	name := "turn_events_" + strings.ReplaceAll(day, "-", "")
	w.Database.Admin(w.T, `do $$ begin execute format('create table `+name+` partition of turn_events for values from (%L) to (%L)',
		turn_partition_bound('`+day+`'), turn_partition_bound(date '`+day+`' + 1)); end $$`)
	const batch = 500_000 // rows per transaction
	for first := 0; first < rows; first += batch {
		w.Database.Admin(w.T, `
			insert into `+name+` (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
			select $1, (left(turn_partition_bound('`+day+`')::text, 14) || '7000-8000-' || lpad(to_hex(n / 100), 12, '0'))::uuid,
				n % 100 + 1, n % 100 + 1, 1, convert_to(repeat('x', 120), 'UTF8')
			from generate_series($2::int, $3::int) n`, w.Account, first, min(first+batch, rows)-1)
	}
}

func hasPartition(w *storetest.World, day string) bool {
	w.Helper()
	return w.Count(`select count(*) from pg_class where relname = 'turn_events_`+strings.ReplaceAll(day, "-", "")+`'`) == 1
}

// buffersOf runs a statement in a transaction that is rolled back and returns the number of pages that it read.
func buffersOf(w *storetest.World, sql string, args ...any) int {
	w.Helper()
	conn := w.AdminConn()
	tx, err := conn.Begin(w.Context())
	w.Must(err)
	defer func() { w.Must(tx.Rollback(context.Background())) }()
	var text []byte
	w.Must(tx.QueryRow(w.Context(), `explain (analyze, buffers, format json) `+sql, args...).Scan(&text))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	w.Must(json.Unmarshal(text, &plans))
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// appendUntil appends single events to a turn until stop is closed. It returns the number of appends and the duration
// of the longest one.
func appendUntil(turn *storetest.Turn, stop <-chan struct{}) (appends int, longest time.Duration) {
	for {
		select {
		case <-stop:
			return appends, longest
		default:
			began := time.Now()
			turn.Append(1)
			appends, longest = appends+1, max(longest, time.Since(began))
		}
	}
}

func TestAnOldPartitionIsDroppedWithoutReadingIt(t *testing.T) {
	w := storetest.NewWorld(t)
	const day = "2020-01-01"
	oldPartition(w, day, *partitionRows)
	live := w.Start(w.Request(nil, "hello"))
	pages := w.Count(`select (pg_relation_size('turn_events_20200101') / 8192)::int`)
	oldPartition(w, "2020-01-02", 1)
	read, base := buffersOf(w, `select drop_turn_partition('turn_events_20200101')`), buffersOf(w, `select drop_turn_partition('turn_events_20200102')`)
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
	err := turns.MaintainPartitions(t.Context(), w.DB.DB)
	took := time.Since(began)
	close(stop)
	during := <-result
	if err != nil || hasPartition(w, day) {
		t.Fatalf("the partition is not dropped: %v", err)
	}
	t.Logf("%d rows in %d pages: %d pages read, dropped in %v; %d appends during it, the longest %v",
		*partitionRows, pages, read, took, during.appends, during.longest)
}

func TestAPartitionThatCannotBeDroppedDoesNotBlockTheOthers(t *testing.T) {
	w := storetest.NewWorld(t)
	const needed, locked, free = "2020-01-01", "2020-01-02", "2020-01-03"
	for _, day := range []string{needed, locked, free} {
		oldPartition(w, day, 200)
	}
	live := w.Start(w.Request(nil, "hello"))
	w.Database.Admin(t, `update turns set turn_id = turn_partition_bound('`+needed+`') where turn_id = $1`, live.Spec.TurnID)
	reader, err := w.AdminConn().Begin(t.Context())
	w.Must(err)
	_, err = reader.Exec(t.Context(), `lock table turn_events_20200102 in access share mode`)
	w.Must(err)
	err = turns.MaintainPartitions(t.Context(), w.DB.DB)
	if protocol.CodeOf(err) != protocol.CodeUnavailable || !strings.Contains(err.Error(), "turn_events_20200102") {
		t.Errorf("the job reports %v", err)
	}
	if !hasPartition(w, needed) || !hasPartition(w, locked) || hasPartition(w, free) {
		t.Errorf("partitions that exist: needed %v, locked %v, free %v", hasPartition(w, needed), hasPartition(w, locked), hasPartition(w, free))
	}
	w.Must(reader.Rollback(t.Context()))
	w.Database.Admin(t, `update turns set state = 'completed', accepting = false`)
	w.Must(turns.MaintainPartitions(t.Context(), w.DB.DB))
	if hasPartition(w, needed) || hasPartition(w, locked) {
		t.Error("a partition that is no longer needed was not dropped")
	}
}

func TestADropThatDoesNotGetItsLockIsGivenUp(t *testing.T) {
	w := storetest.NewWorld(t)
	oldPartition(w, "2020-01-01", 200)
	live := w.Start(w.Request(nil, "hello"))
	reader, err := w.AdminConn().Begin(t.Context())
	w.Must(err)
	_, err = reader.Exec(t.Context(), `lock table turn_events in access share mode`)
	w.Must(err)
	if err := turns.MaintainPartitions(t.Context(), w.DB.DB); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("the job reports %v", err)
	}
	live.Append(1)
	w.Must(reader.Rollback(t.Context()))
	w.Must(turns.MaintainPartitions(t.Context(), w.DB.DB))
	if hasPartition(w, "2020-01-01") {
		t.Error("the partition was not dropped")
	}
}

// The statement timeout of requests is too short for a large partition, and a drop that waits for its lock delays every
// append. The test replaces the function by one that records the timeouts it runs under.
func TestPartitionDropsHaveALongStatementTimeoutAndAShortLockTimeout(t *testing.T) {
	w := storetest.NewWorld(t)
	oldPartition(w, "2020-01-01", 1)
	w.Database.Admin(t, `
create table seen (statement text, lock text);
grant insert on seen to public;
create or replace function drop_turn_partition(part text) returns boolean language sql security definer
as $$ insert into public.seen values (current_setting('statement_timeout'), current_setting('lock_timeout')) returning true $$`)
	w.Must(turns.MaintainPartitions(t.Context(), w.DB.DB))
	var statement, lock string
	w.Must(w.AdminConn().QueryRow(t.Context(), `select statement, lock from seen`).Scan(&statement, &lock))
	if statement != "10min" || lock != "100ms" {
		t.Errorf("statement_timeout is %s, lock_timeout %s", statement, lock)
	}
}

func TestAYoungPartitionIsNeverDropped(t *testing.T) {
	w := storetest.NewWorld(t)
	w.Must(turns.MaintainPartitions(t.Context(), w.DB.DB))
	const todaySQL = `select 'turn_events_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')`
	var today string
	conn := w.AdminConn()
	w.Must(conn.QueryRow(t.Context(), todaySQL).Scan(&today))
	var dropped bool
	if err := conn.QueryRow(t.Context(), `select drop_turn_partition($1)`, today).Scan(&dropped); err == nil {
		t.Error("the partition of today was dropped")
	}
	if n := w.Count(`select count(*) from pg_class where relname = '` + today + `'`); n != 1 {
		t.Error("the partition of today is gone")
	}
}

func TestOldRowsOfTheDefaultPartitionAreDeletedUnlessTheirTurnIsLive(t *testing.T) {
	w := storetest.NewWorld(t)
	live := w.Start(w.Request(nil, "hello"))
	w.Database.Admin(t, `update turns set turn_id = turn_partition_bound('2020-01-01') where turn_id = $1`, live.Spec.TurnID)
	w.Database.Admin(t, `insert into turn_events_default (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
		select $1, turn_partition_bound(day), n, n, 1, '' from unnest(array['2020-01-01', '2020-01-02']::date[]) day, generate_series(1, 5) n`, w.Account)
	w.Must(turns.MaintainPartitions(t.Context(), w.DB.DB))
	var kept int
	w.Must(w.AdminConn().QueryRow(t.Context(), `select count(*) from turn_events_default`).Scan(&kept))
	if kept != 5 {
		t.Errorf("%d rows are left, want the 5 of the live turn", kept)
	}
}
