package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"turnstone/providers/embedded"
)

// firstToken is P3: turns of ten seconds, thirty begun every second, so that 300 are live; every start is timed.
func (b *bench) firstToken(ctx context.Context) error {
	live, lifetime := b.few(300, 30), b.short(10*time.Second, 3*time.Second)
	over := b.short(15*time.Second, 6*time.Second)
	accounts, err := b.accountsFor(ctx, live)
	if err != nil {
		return err
	}
	text := script{Tokens: int(lifetime / tokenInterval), Interval: tokenInterval}.String()
	table := newTable("round", "asked", "starts", "first token p50 ms", "p99", "max", "head p50 ms", "p99", "others' CPUs")
	var p50s, p99s [2]samples
	for round := range b.rounds {
		for _, service := range alternate(round) {
			address, side, name := b.site.model.address, 1, "the model"
			request := func(int) []byte { return completionRequest(address, text) }
			if service {
				address, side, name = b.site.public, 0, "turnstone"
				request = func(i int) []byte { return accounts[i%len(accounts)].chatRequest(text, "") }
			}
			w, err := b.stream(ctx, address, live, lifetime, over, service, request)
			if err != nil {
				return err
			}
			p50s[side], p99s[side] = append(p50s[side], w.First.P50), append(p99s[side], w.First.P99)
			table.add(round+1, name, w.First.N, w.First.P50, w.First.P99, w.First.Max, w.Begin.P50, w.Begin.P99, w.foreign)
			b.say("  %s", table.last())
		}
	}
	b.report.add(figure{Goal: "P3 p50", Ours: p50s[0], Baseline: p50s[1], Unit: "ms", Score: p50s[0].minus(p50s[1])})
	b.report.add(figure{Goal: "P3 p99", Ours: p99s[0], Baseline: p99s[1], Unit: "ms", Score: p99s[0].minus(p99s[1])})
	b.report.detail("P3", fmt.Sprintf("%d live turns, %d starts/s", live, int(float64(live)/lifetime.Seconds())), table)
	return nil
}

// stream begins streams without end of their number, so that so many are live, and measures once they are.
func (b *bench) stream(ctx context.Context, address string, live int, lifetime, over time.Duration, service bool, request func(int) []byte) (w window, err error) {
	rec := newRecorder()
	measured := make(chan error, 1)
	go func() {
		if err := wait(ctx, lifetime+warm); err != nil {
			measured <- err
			return
		}
		window := func() (err error) {
			w, err = b.measure(ctx, rec, over)
			return err
		}
		if service {
			measured <- b.profiled(ctx, over, window)
		} else {
			measured <- window()
		}
	}()
	all := lifetime + warm + over
	f, err := launch(ctx, address, int(float64(live)*all.Seconds()/lifetime.Seconds()), all, rec, request)
	if err != nil {
		return w, errors.Join(err, <-measured)
	}
	defer f.close()
	if err := <-measured; err != nil {
		return w, err
	}
	if err := b.site.endTurns(ctx); err != nil {
		return w, err
	}
	if err := errors.Join(f.await(ctx, endWithin), f.check()); err != nil {
		return w, err
	}
	return w, b.site.settle(ctx)
}

// The load of P4.
const (
	inFlight      = 128
	quickInFlight = 16
	startWarm     = 500 * time.Millisecond
	startAccount  = 128
	quickAccounts = 8 // in a quick run: each has its password hashed
	// pacedShare of pgbench's rate begins in the open loop. With 128 in flight all the time, the delay of a start is 128
	// divided by the rate and says nothing else.
	pacedShare = 0.25
)

// starts is P4.
func (b *bench) starts(ctx context.Context) error {
	over := b.short(3*time.Second, 2*time.Second)
	accounts, err := b.site.users(ctx, b.few(startAccount, quickAccounts))
	if err != nil {
		return err
	}
	base, err := newPgbench(ctx, b)
	if err != nil {
		return err
	}
	var ours, theirs, p99 samples
	table := newTable("round", "by", "starts/s", "p50 ms", "p99", "max", "µs CPU a start", "with Postgres", "others' CPUs")
	add := func(round int, by string, w window) (rate float64) {
		n := float64(max(w.Begin.N, 1))
		rate = n / w.took.Seconds()
		table.add(round+1, by, rate, w.Begin.P50, w.Begin.P99, w.Begin.Max,
			float64(w.used.service.Microseconds())/n, float64((w.used.service+w.used.postgres).Microseconds())/n, w.foreign)
		b.say("  %s", table.last())
		return rate
	}
	for round := range b.rounds {
		for _, service := range alternate(round) {
			if !service {
				before, err := b.site.cpu()
				if err != nil {
					return err
				}
				rate, latency, err := base.run(ctx, over)
				if err != nil {
					return err
				}
				after, err := b.site.cpu()
				if err != nil {
					return err
				}
				theirs = append(theirs, rate)
				table.add(round+1, fmt.Sprintf("pgbench, %d clients", base.clients), rate, latency, "–", "–", "–",
					float64((after.postgres-before.postgres).Microseconds())/(rate*over.Seconds()), "–")
				b.say("  %s", table.last())
				continue
			}
			w, err := b.startAll(ctx, accounts, over)
			if err != nil {
				return err
			}
			ours, p99 = append(ours, add(round, "turnstone", w)), append(p99, w.Begin.P99)
		}
		rate := theirs[round] * pacedShare
		if b.quick { // it may run beside other work, or with the race detector
			rate = min(rate, quickInFlight)
		}
		w, err := b.startPaced(ctx, accounts, over, rate)
		if err != nil {
			return err
		}
		add(round, "turnstone, a quarter of pgbench's rate", w)
	}
	b.report.add(figure{Goal: "P4", Ours: ours, Baseline: theirs, Unit: "/s", Score: ours.by(theirs)})
	b.report.add(figure{Goal: "P4 p99", Ours: p99, Unit: "ms", Score: p99})
	b.report.detail("P4", fmt.Sprintf("%d starts in flight, by %d accounts, each in a new conversation", b.few(inFlight, quickInFlight), b.few(startAccount, quickAccounts)), table)
	return nil
}

// startAll keeps 128 starts in flight.
func (b *bench) startAll(ctx context.Context, accounts []*account, over time.Duration) (window, error) {
	return b.startWhile(ctx, accounts, over, func(load context.Context, start func(n int) bool) {
		var running sync.WaitGroup
		for i := range b.few(inFlight, quickInFlight) {
			running.Go(func() {
				for n := i; load.Err() == nil && start(n); n++ {
				}
			})
		}
		running.Wait()
	})
}

// startPaced begins so many a second, however long each of them takes.
func (b *bench) startPaced(ctx context.Context, accounts []*account, over time.Duration, rate float64) (window, error) {
	interval := time.Duration(float64(time.Second) / rate)
	return b.startWhile(ctx, accounts, over, func(load context.Context, start func(n int) bool) {
		var running sync.WaitGroup
		for n, due := 0, time.Now(); wait(load, time.Until(due)) == nil; n, due = n+1, due.Add(interval) {
			running.Go(func() { start(n) })
		}
		running.Wait()
	})
}

// startWhile measures while begin starts turns, until its context ends. A start counts when the head of its answer is
// there; then its reader leaves, the turn goes on, and the model says nothing before the window is over.
func (b *bench) startWhile(
	ctx context.Context, accounts []*account, over time.Duration, begin func(load context.Context, start func(n int) bool),
) (w window, err error) {
	text := script{Tokens: 1, First: 2*over + 2*time.Second}.String()
	rec := newRecorder()
	load, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() {
		begin(load, func(n int) bool {
			err := startOne(load, rec, b.site.public, n, accounts[n%len(accounts)].chatRequest(text, ""))
			if err != nil && load.Err() == nil {
				rec.fail(err)
			}
			return err == nil
		})
	})
	err = wait(ctx, startWarm)
	if err == nil {
		err = b.profiled(ctx, over, func() (err error) {
			w, err = b.measure(ctx, rec, over)
			return err
		})
	}
	stop()
	running.Wait()
	if len(rec.errors) > 0 {
		err = errors.Join(err, errors.New(rec.sample()))
	}
	if err != nil {
		return w, err
	}
	// The turns end by themselves, then get their titles.
	if err := wait(ctx, 2*over+2*time.Second); err != nil {
		return w, err
	}
	return w, b.site.rest(ctx)
}

// rest waits until no turn is live, then until nothing works.
func (s *site) rest(ctx context.Context) error {
	err := until(ctx, endWithin, func() (bool, error) {
		live, err := s.metric(ctx, "turnstone_turns_live")
		return live == 0, err
	})
	if err != nil {
		return fmt.Errorf("turns do not end: %w", err)
	}
	return s.settle(ctx)
}

// startOne opens a connection, as a new client does, asks, and leaves once it is told that the turn began.
func startOne(ctx context.Context, rec *recorder, address string, n int, request []byte) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	s := &stream{n: n, rec: rec, conn: conn, request: request}
	_, err = s.ask()
	return err
}

// pgbench is the baseline of P4: the rows of a start, written by one prepared statement.
type pgbench struct {
	bench   *bench
	script  string
	clients int
}

// The rows of a start are the same as those of the service: the key, the conversation with its branch, two messages, the
// turn with its first events. Identifiers sort by time, as the service's do, so that indexes grow at the same place. They
// are in a database of their own with the same schema: the service would take turns that nobody owns for those of a node
// that has died, and go on with them while either side is measured.
const (
	baselineName    = "baseline"
	pgbenchSetupSQL = `
insert into accounts (account_id, email, email_key, display_name)
select gen_random_uuid(), 'bench' || n || '@example.org', 'bench' || n || '@example.org', 'Bench' from generate_series(1, %d) as n;
create table bench_accounts as select row_number() over () as n, account_id from accounts;
create unique index on bench_accounts (n);
create or replace function bench_id(at text) returns uuid language sql as
$$ select overlay(gen_random_uuid()::text placing at from 1 for 13)::uuid $$;
analyze accounts;
analyze bench_accounts;`
	pgbenchScript = `\set account random(1, %d)
with clock as materialized (
    select overlay(lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') placing '-' from 9 for 0) as at
), ids as materialized (
    select (select account_id from bench_accounts where n = :account) as account, bench_id(at) as conversation, bench_id(at) as branch,
           bench_id(at) as question, bench_id(at) as answer, bench_id(at) as turn
    from clock
), key as (
    insert into idempotency (account_id, key_hash, path, body_hash, status, resource_id, created_at)
    select account, sha256(('bench-' || turn)::bytea), '/chat', '\x%s', 200, turn, clock_timestamp() from ids
), conversation as (
    insert into conversations (account_id, conversation_id, active_branch_id, live_turn_id, message_count)
    select account, conversation, branch, turn, 2 from ids
), branch as (
    insert into branches (account_id, branch_id, conversation_id, head_message_id, head_depth)
    select account, branch, conversation, answer, 2 from ids
), segment as (
    insert into branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)
    select account, branch, branch, 1, 2147483647 from ids
), messages as (
    insert into messages (account_id, message_id, conversation_id, branch_id, depth, parent_message_id, role, status, parts, turn_id, profile, model_id)
    select account, question, conversation, branch, 1, null, 'user', 'complete', '%s'::json, turn, null, null from ids
    union all
    select account, answer, conversation, branch, 2, question, 'assistant', 'streaming', '[]'::json, turn, 'balanced', 'load' from ids
), turn as (
    insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting,
                       owner, owner_epoch, next_sequence)
    select account, turn, conversation, branch, question, answer, '%s'::json, 'running', true, gen_random_uuid(), 1, 3 from ids
)
insert into turn_events (account_id, turn_id, first_sequence, last_sequence, epoch, frames)
select account, turn, 1, 2, 1, '\x%s' from ids;
`
	// startSizesSQL is how long the texts of a real start are, so that the baseline writes as much.
	startSizesSQL = `
select coalesce(round(avg(length(t.spec::text))), 600), coalesce(round(avg(length(e.frames))), 600), coalesce(round(avg(length(m.parts::text))), 100)
from (select * from turns order by created_at desc limit 100) t
join turn_events e on e.account_id = t.account_id and e.turn_id = t.turn_id and e.first_sequence = 1
join messages m on m.account_id = t.account_id and m.message_id = t.user_message_id`
)

// newPgbench measures a few starts for their sizes, writes the script and finds the best number of clients.
func newPgbench(ctx context.Context, b *bench) (*pgbench, error) {
	for range 3 {
		err := startOne(ctx, newRecorder(), b.site.public, 0, b.site.accounts[0].chatRequest(script{Tokens: 1}.String(), ""))
		if err != nil {
			return nil, err
		}
	}
	if err := b.site.settle(ctx); err != nil {
		return nil, err
	}
	sizes, err := b.site.sqlNumbers(ctx, startSizesSQL)
	if err != nil {
		return nil, err
	}
	if err := b.site.makeDatabase(ctx, baselineName); err != nil {
		return nil, err
	}
	if _, err := b.site.sqlIn(ctx, baselineName, fmt.Sprintf(pgbenchSetupSQL, startAccount)); err != nil {
		return nil, err
	}
	hash := fmt.Sprintf("%064x", 1)
	text := fmt.Sprintf(pgbenchScript, startAccount, hash, jsonOf(int(sizes[2])), jsonOf(int(sizes[0])), hexOf(int(sizes[1])))
	p := &pgbench{bench: b, script: filepath.Join(b.site.folder, "start.sql")}
	if err := os.WriteFile(p.script, []byte(text), 0o644); err != nil {
		return nil, err
	}
	best, most := 0, 0.0
	clients := []int{8, 16, 32, 64, 128}
	if b.quick {
		clients = clients[:1]
	}
	for _, p.clients = range clients {
		rate, _, err := p.run(ctx, 2*time.Second)
		if err != nil {
			return nil, err
		}
		b.say("  pgbench with %d clients: %.0f/s", p.clients, rate)
		if rate > most {
			best, most = p.clients, rate
		}
	}
	p.clients = best
	return p, nil
}

// jsonOf is a document of so many bytes.
func jsonOf(n int) string { return `{"text":"` + fmt.Sprintf("%0*d", max(1, n-11), 0) + `"}` }

// hexOf is so many bytes of a text, as bytea reads them.
func hexOf(n int) string {
	var text []byte
	for i := 0; len(text) < n; i++ {
		text = appendWord(text, 0, i)
	}
	return hex.EncodeToString(text[:n])
}

var (
	pgbenchRate    = regexp.MustCompile(`tps = ([0-9.]+)`)
	pgbenchLatency = regexp.MustCompile(`latency average = ([0-9.]+) ms`)
)

// run answers transactions a second and their mean time in milliseconds.
func (p *pgbench) run(ctx context.Context, over time.Duration) (rate, latency float64, err error) {
	program, err := tool("pgbench")
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, program, "--no-vacuum", "--protocol=prepared", "--file="+p.script,
		"--client="+strconv.Itoa(p.clients), "--jobs=2", "--time="+strconv.Itoa(max(1, int(over.Seconds()))),
		p.bench.site.postgres.DSN(embedded.Superuser, baselineName))
	output, err := cmd.CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("pgbench: %w: %.500s", err, output)
	}
	return parsePgbench(output)
}

func parsePgbench(output []byte) (rate, latency float64, err error) {
	tps, mean := pgbenchRate.FindSubmatch(output), pgbenchLatency.FindSubmatch(output)
	if tps == nil || mean == nil {
		return 0, 0, fmt.Errorf("pgbench printed no rate: %.300s", output)
	}
	rate, err = strconv.ParseFloat(string(tps[1]), 64)
	if err != nil {
		return 0, 0, err
	}
	latency, err = strconv.ParseFloat(string(mean[1]), 64)
	return rate, latency, err
}
