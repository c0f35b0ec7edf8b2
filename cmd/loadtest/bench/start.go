package bench

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

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol/clock"
	"turnstone/providers/embedded"
)

// startBench measures the starts of turns.
type startBench struct{ *bench }

// firstToken measures P3: turns of ten seconds, thirty started per second, so that 300 are live. Every start is timed.
func (b startBench) firstToken(ctx context.Context) error {
	table := figures.NewTable("round", "target", "starts", "first token p50 ms", "p99", "max", "header p50 ms", "p99", "others' CPUs")
	var p50s, p99s [2]figures.Samples
	l := b.startingLoad()
	for round := range b.rounds {
		for _, service := range alternate(round) {
			w, err := b.starting(ctx, service, l)
			if err != nil {
				return err
			}
			side, name := sideOf(service), "the model"
			if service {
				name = "turnstone"
			}
			p50s[side], p99s[side] = append(p50s[side], w.First.P50), append(p99s[side], w.First.P99)
			table.Add(round+1, name, w.First.N, w.First.P50, w.First.P99, w.First.Max, w.Begin.P50, w.Begin.P99, w.othersCPUs)
			b.Say("  %s", table.Last())
		}
	}
	b.report.Add(goals.Figure{Goal: "P3 p50", Ours: p50s[0], Baseline: p50s[1], Unit: "ms", Score: p50s[0].Minus(p50s[1])})
	b.report.Add(goals.Figure{Goal: "P3 p99", Ours: p99s[0], Baseline: p99s[1], Unit: "ms", Score: p99s[0].Minus(p99s[1])})
	b.report.Detail("P3", l.String(), table)
	return b.stages(ctx)
}

// startLoad is a steady load of turns that start and end: so many are live at the same time, and each lasts a lifetime.
type startLoad struct {
	live           int
	lifetime, over time.Duration // over: of the measurement
}

func (l startLoad) String() string {
	return fmt.Sprintf("%d live turns, %d starts/s", l.live, int(float64(l.live)/l.lifetime.Seconds()))
}

// startingLoad returns the load of P3.
func (b startBench) startingLoad() startLoad {
	return startLoad{live: b.pickCount(300, 30), lifetime: b.pickDuration(10*time.Second, 3*time.Second), over: b.pickDuration(15*time.Second, 6*time.Second)}
}

// starting measures the starts of turns of the service, or of streams of the model itself.
func (b startBench) starting(ctx context.Context, service bool, l startLoad) (window, error) {
	text := load.Script{Tokens: int(l.lifetime / load.TokenInterval), Interval: load.TokenInterval}.String()
	if !service {
		request := load.CompletionRequest(b.site.Model.Address, text)
		return b.measureStarts(ctx, l, b.site.Model.Address, false, func(int) []byte { return request })
	}
	accounts, err := b.accountsFor(ctx, l.live)
	if err != nil {
		return window{}, err
	}
	return b.measureStarts(ctx, l, b.site.Public, true, func(i int) []byte { return accounts[i%len(accounts)].ChatRequest(text, "") })
}

// measureStarts starts streams at a constant rate, and measures once as many as the load has are live.
func (b startBench) measureStarts(ctx context.Context, l startLoad, address string, service bool, request func(int) []byte) (w window, err error) {
	rec := load.NewRecorder()
	measured := make(chan error, 1)
	go func() {
		if err := clock.Sleep(ctx, l.lifetime+warm); err != nil {
			measured <- err
			return
		}
		window := func() (err error) {
			w, err = b.measure(ctx, rec, l.over)
			return err
		}
		if service {
			measured <- b.profiled(ctx, l.over, window)
		} else {
			measured <- window()
		}
	}()
	all := l.lifetime + warm + l.over
	f, err := load.Launch(ctx, address, int(float64(l.live)*all.Seconds()/l.lifetime.Seconds()), all, rec, request)
	if err != nil {
		return w, errors.Join(err, <-measured)
	}
	defer f.Close()
	if err := <-measured; err != nil {
		return w, err
	}
	if err := b.site.EndTurns(ctx); err != nil {
		return w, err
	}
	if err := errors.Join(f.Await(ctx, load.EndWithin), f.Check()); err != nil {
		return w, err
	}
	return w, b.site.AwaitQuiet(ctx)
}

// The load of P4.
const (
	inFlight      = 128
	quickInFlight = 16
	startWarm     = 500 * time.Millisecond
	startAccount  = 128
	quickAccounts = 8 // in a quick run, since each account needs a password hash
	// pacedShare is the rate of starts in the open loop, as a share of pgbench's rate. With 128 starts always in
	// flight, the delay of a start is just 128 divided by the rate.
	pacedShare = 0.25
)

// starts measures P4.
func (b startBench) starts(ctx context.Context) error {
	over := b.startsFor()
	accounts, err := b.site.EnsureAccounts(ctx, b.pickCount(startAccount, quickAccounts))
	if err != nil {
		return err
	}
	base, err := newPgbench(ctx, b.bench)
	if err != nil {
		return err
	}
	var ours, theirs, p99 figures.Samples
	table := figures.NewTable("round", "program", "starts/s", "p50 ms", "p99", "max", "µs CPU per start", "with Postgres", "others' CPUs")
	add := func(round int, by string, w window) (rate float64) {
		n := float64(max(w.Begin.N, 1))
		rate = n / w.took.Seconds()
		table.Add(round+1, by, rate, w.Begin.P50, w.Begin.P99, w.Begin.Max,
			float64(w.used.Service.Microseconds())/n, float64((w.used.Service+w.used.Postgres).Microseconds())/n, w.othersCPUs)
		b.Say("  %s", table.Last())
		return rate
	}
	for round := range b.rounds {
		for _, service := range alternate(round) {
			if !service {
				before, err := b.site.CPU()
				if err != nil {
					return err
				}
				rate, latency, err := base.run(ctx, over)
				if err != nil {
					return err
				}
				after, err := b.site.CPU()
				if err != nil {
					return err
				}
				theirs = append(theirs, rate)
				table.Add(round+1, fmt.Sprintf("pgbench, %d clients", base.clients), rate, latency, "–", "–", "–",
					float64((after.Postgres-before.Postgres).Microseconds())/(rate*over.Seconds()), "–")
				b.Say("  %s", table.Last())
				continue
			}
			w, err := b.startAll(ctx, accounts, over)
			if err != nil {
				return err
			}
			ours, p99 = append(ours, add(round, "turnstone", w)), append(p99, w.Begin.P99)
		}
		rate := theirs[round] * pacedShare
		if b.quick { // it may share the host computer with other work, or use the race detector
			rate = min(rate, quickInFlight)
		}
		w, err := b.startPaced(ctx, accounts, over, rate)
		if err != nil {
			return err
		}
		add(round, "turnstone, open loop at a quarter of pgbench's rate", w)
	}
	b.report.Add(goals.Figure{Goal: "P4", Ours: ours, Baseline: theirs, Unit: "/s", Score: ours.DividedBy(theirs)})
	b.report.Add(goals.Figure{Goal: "P4 p99", Ours: p99, Unit: "ms", Score: p99})
	b.report.Detail("P4", fmt.Sprintf("%d starts in flight, by %d accounts, each in a new conversation", b.pickCount(inFlight, quickInFlight), b.pickCount(startAccount, quickAccounts)), table)
	return nil
}

// startsFor returns the window of P4.
func (b startBench) startsFor() time.Duration { return b.pickDuration(3*time.Second, 2*time.Second) }

// startAll keeps a fixed number of starts in flight: 128 in a full run.
func (b startBench) startAll(ctx context.Context, accounts []*load.Account, over time.Duration) (window, error) {
	return b.startWhile(ctx, accounts, over, func(period context.Context, start func(n int) bool) {
		var running sync.WaitGroup
		for i := range b.pickCount(inFlight, quickInFlight) {
			running.Go(func() {
				for n := i; period.Err() == nil && start(n); n++ {
				}
			})
		}
		running.Wait()
	})
}

// startPaced starts turns at a rate per second, however long each start takes.
func (b startBench) startPaced(ctx context.Context, accounts []*load.Account, over time.Duration, rate float64) (window, error) {
	interval := time.Duration(float64(time.Second) / rate)
	return b.startWhile(ctx, accounts, over, func(period context.Context, start func(n int) bool) {
		var running sync.WaitGroup
		for n, due := 0, time.Now(); clock.Sleep(period, time.Until(due)) == nil; n, due = n+1, due.Add(interval) {
			running.Go(func() { start(n) })
		}
		running.Wait()
	})
}

// startWhile measures while begin starts turns; begin returns after its context has ended. A start counts when its
// response header has arrived. Its reader then disconnects and the turn continues; the model sends nothing before the
// window is over.
func (b startBench) startWhile(
	ctx context.Context, accounts []*load.Account, over time.Duration, begin func(period context.Context, start func(n int) bool),
) (w window, err error) {
	text := load.Script{Tokens: 1, First: 2*over + 2*time.Second}.String()
	rec := load.NewRecorder()
	period, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() {
		begin(period, func(n int) bool {
			err := startOne(period, rec, b.site.Public, n, accounts[n%len(accounts)].ChatRequest(text, ""))
			if err != nil && period.Err() == nil {
				rec.Fail(err)
			}
			return err == nil
		})
	})
	err = clock.Sleep(ctx, startWarm)
	if err == nil {
		err = b.profiled(ctx, over, func() (err error) {
			w, err = b.measure(ctx, rec, over)
			return err
		})
	}
	stop()
	running.Wait()
	if len(rec.Errors) > 0 {
		err = errors.Join(err, errors.New(rec.Sample()))
	}
	if err != nil {
		return w, err
	}
	// The turns end by themselves; then the service generates their titles.
	if err := clock.Sleep(ctx, 2*over+2*time.Second); err != nil {
		return w, err
	}
	return w, b.site.AwaitIdle(ctx)
}

// startOne opens a connection like a new client, starts a turn, and disconnects once the response header has arrived.
func startOne(ctx context.Context, rec *load.Recorder, address string, n int, request []byte) error {
	conn, err := load.Dial(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	s := &load.Stream{N: n, Rec: rec, Conn: conn, Request: request}
	_, err = s.SendRequest()
	return err
}

// pgbench is the baseline of P4: the rows of a start, written by one prepared statement.
type pgbench struct {
	bench   *bench
	script  string
	clients int
}

// The rows of a start are the same as those of the service: the idempotency key, the conversation with its branch, two
// messages, and the turn with its first events. Identifiers sort by time, like those of the service, so that indexes
// grow at the same end. The rows are in a separate database with the same schema: in its own database the service would
// take these turns, which have no live owner, for turns of a dead node, and would continue them during the measurement.
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
	// startSizesSQL returns the average lengths of the texts of real starts, so that the baseline writes as much.
	startSizesSQL = `
select coalesce(round(avg(length(t.spec::text))), 600), coalesce(round(avg(length(e.frames))), 600), coalesce(round(avg(length(m.parts::text))), 100)
from (select * from turns order by created_at desc limit 100) t
join turn_events e on e.account_id = t.account_id and e.turn_id = t.turn_id and e.first_sequence = 1
join messages m on m.account_id = t.account_id and m.message_id = t.user_message_id`
)

// newPgbench starts a few turns to learn the sizes of their texts, writes the script and finds the number of clients
// with the highest rate.
func newPgbench(ctx context.Context, b *bench) (*pgbench, error) {
	for range 3 {
		err := startOne(ctx, load.NewRecorder(), b.site.Public, 0, b.site.Accounts[0].ChatRequest(load.Script{Tokens: 1}.String(), ""))
		if err != nil {
			return nil, err
		}
	}
	if err := b.site.AwaitQuiet(ctx); err != nil {
		return nil, err
	}
	sizes, err := b.site.QueryNumbers(ctx, startSizesSQL)
	if err != nil {
		return nil, err
	}
	if err := b.site.MakeDatabase(ctx, baselineName); err != nil {
		return nil, err
	}
	if _, err := b.site.SQLIn(ctx, baselineName, fmt.Sprintf(pgbenchSetupSQL, startAccount)); err != nil {
		return nil, err
	}
	hash := fmt.Sprintf("%064x", 1)
	text := fmt.Sprintf(pgbenchScript, startAccount, hash, jsonOf(int(sizes[2])), jsonOf(int(sizes[0])), hexOf(int(sizes[1])))
	p := &pgbench{bench: b, script: filepath.Join(b.site.Folder, "start.sql")}
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
		b.Say("  pgbench with %d clients: %.0f/s", p.clients, rate)
		if rate > most {
			best, most = p.clients, rate
		}
	}
	p.clients = best
	return p, nil
}

// jsonOf returns a JSON document of n bytes.
func jsonOf(n int) string { return `{"text":"` + fmt.Sprintf("%0*d", max(1, n-11), 0) + `"}` }

// hexOf returns n bytes of text in hexadecimal, the input format of bytea.
func hexOf(n int) string {
	var text []byte
	for i := 0; len(text) < n; i++ {
		text = load.AppendWord(text, 0, i)
	}
	return hex.EncodeToString(text[:n])
}

var (
	pgbenchRate    = regexp.MustCompile(`tps = ([0-9.]+)`)
	pgbenchLatency = regexp.MustCompile(`latency average = ([0-9.]+) ms`)
)

// run runs the script over a duration. It returns the transactions per second and their mean latency in milliseconds.
func (p *pgbench) run(ctx context.Context, over time.Duration) (rate, latency float64, err error) {
	program, err := embedded.PostgresProgram("pgbench")
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, program, "--no-vacuum", "--protocol=prepared", "--file="+p.script,
		"--client="+strconv.Itoa(p.clients), "--jobs=2", "--time="+strconv.Itoa(max(1, int(over.Seconds()))),
		p.bench.site.Postgres.DSN(embedded.Superuser, baselineName))
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
