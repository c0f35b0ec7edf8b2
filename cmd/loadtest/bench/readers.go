package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/load"
	"turnstone/cmd/loadtest/site"
	"turnstone/protocol/clock"
)

// memoryRamp is the time between two starts of P6. They are not measured, and come at less than a quarter of the rate
// of P4, at which no request is refused.
const memoryRamp = 8 * time.Millisecond

// liveMemory measures P6: memory per live turn of the service, and per stream of the proxy.
func (b *bench) liveMemory(ctx context.Context) error {
	const interval = 2 * time.Second
	n := b.pickCount(5000, 200)
	var ours, theirs figures.Samples
	table := figures.NewTable("round", "relay", "at rest MB", "under load MB", "kB per turn")
	for round := range b.rounds {
		for _, service := range alternate(round) {
			used, rest, err := b.relayMemory(ctx, service, n, interval)
			if err != nil {
				return err
			}
			each, name := float64(used-rest)/float64(n)/1000, "proxy"
			if service {
				ours, name = append(ours, each), "turnstone"
			} else {
				theirs = append(theirs, each)
			}
			table.Add(round+1, name, float64(rest)/1e6, float64(used)/1e6, each)
			b.Say("  %s", table.Last())
		}
	}
	b.report.Add(goals.Figure{Goal: "P6", Ours: ours, Baseline: theirs, Unit: "kB", Score: ours.DividedBy(theirs)})
	b.report.Detail("P6", fmt.Sprintf("%d live turns, a token every %s", n, interval), table)
	return nil
}

// relayMemory restarts the service or the proxy, so that earlier work does not count, and loads it with n streams. It
// returns the memory with the load and the memory at rest, in bytes.
func (b *bench) relayMemory(ctx context.Context, service bool, n int, interval time.Duration) (used, rest int64, err error) {
	if _, err := b.accountsFor(ctx, n); err != nil { // sign-ups take memory that is not released at once
		return 0, 0, err
	}
	pid := func() int { return b.site.Proxy.PID() }
	if service {
		pid, err = func() int { return b.site.Service.PID() }, b.site.RestartService(ctx)
	} else {
		err = b.site.RestartProxy(ctx)
	}
	if err != nil {
		return 0, 0, err
	}
	// A few streams first, so that one-time allocations are not measured.
	if _, err := b.relayed(ctx, service, 20, load.TokenInterval, 100*time.Millisecond, time.Second); err != nil {
		return 0, 0, err
	}
	if rest, err = site.SettledMemory(ctx, pid()); err != nil {
		return 0, 0, err
	}
	text := load.Script{Tokens: load.Endless, Interval: interval}.String()
	address, request := b.site.Proxy.Address, func(int) []byte { return load.CompletionRequest(b.site.Proxy.Address, text) }
	if service {
		accounts, err := b.accountsFor(ctx, n)
		if err != nil {
			return 0, 0, err
		}
		address, request = b.site.Public, func(i int) []byte { return accounts[i%len(accounts)].ChatRequest(text, "") }
	}
	f, err := load.Launch(ctx, address, n, time.Duration(n)*memoryRamp, load.NewRecorder(), request)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if err := f.AwaitFirst(ctx, beginWithin); err != nil {
		return 0, 0, err
	}
	if err := clock.Sleep(ctx, b.pickDuration(6*time.Second, 3*time.Second)); err != nil {
		return 0, 0, err
	}
	if used, err = site.MemoryOf(pid()); err != nil {
		return 0, 0, err
	}
	err = errors.Join(b.site.EndTurns(ctx), f.Await(ctx, load.EndWithin), f.Check())
	if err == nil {
		err = b.site.AwaitQuiet(ctx)
	}
	return used, rest, err
}

// eventSource is what readers follow: live turns of the service, or topics of the bare server.
type eventSource struct {
	address string
	request func(reader int, after int64) []byte
	server  func() int // its pid
	end     func() error
}

// readerBench measures readers of events.
type readerBench struct{ *bench }

// startTurns starts turns that run until end is called. Their first readers disconnect after the first token.
func (b readerBench) startTurns(ctx context.Context, turns int, interval time.Duration) (*eventSource, error) {
	accounts, err := b.site.EnsureAccounts(ctx, min(turns, 100))
	if err != nil {
		return nil, err
	}
	text := load.Script{Tokens: load.Endless, Interval: interval}.String()
	f, err := load.Launch(ctx, b.site.Public, turns, time.Duration(turns)*5*time.Millisecond, load.NewRecorder(),
		func(i int) []byte { return accounts[i%len(accounts)].ChatRequest(text, "") })
	if err != nil {
		return nil, err
	}
	if err := f.AwaitFirst(ctx, beginWithin); err != nil {
		f.Close()
		return nil, err
	}
	names := make([]string, turns)
	for i, s := range f.Streams {
		names[i] = s.Turn
	}
	f.Close() // so that the readers of follow are the only ones
	return &eventSource{
		address: b.site.Public,
		request: func(i int, after int64) []byte {
			return accounts[i%turns%len(accounts)].EventsRequest(names[i%turns], after)
		},
		server: b.site.Service.PID,
		end:    func() error { return b.site.EndAll(ctx) },
	}, nil
}

// startTopics starts topics of the bare server that add an event per interval; with an interval of 0 they get one
// event.
func (b readerBench) startTopics(ctx context.Context, topics int, interval time.Duration) (*eventSource, error) {
	url := func(i int) string { return fmt.Sprintf("http://%s/events/%d", b.site.SSE.Address, i%topics) }
	for i := range topics {
		if _, err := load.Fetch(ctx, http.MethodPost, url(i)+"?interval="+interval.String()); err != nil {
			return nil, err
		}
	}
	return &eventSource{
		address: b.site.SSE.Address,
		request: func(i int, after int64) []byte {
			return fmt.Appendf(nil, "GET /events/%d HTTP/1.1\r\nHost: %s\r\nLast-Event-ID: %d\r\n\r\n", i%topics, b.site.SSE.Address, after)
		},
		server: b.site.SSE.PID,
		end: func() error {
			for i := range topics {
				if _, err := load.Fetch(ctx, http.MethodDelete, url(i)); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// startEventSource starts n turns or topics. It also returns the name of the server for the tables.
func (b readerBench) startEventSource(ctx context.Context, service bool, n int, interval time.Duration) (*eventSource, string, error) {
	if service {
		c, err := b.startTurns(ctx, n, interval)
		return c, "turnstone", err
	}
	c, err := b.startTopics(ctx, n, interval)
	return c, "bare SSE", err
}

// followRamp is the time between two readers that start. An account may have 32 requests in progress.
const followRamp = time.Millisecond

// follow starts n readers that follow the source's logs from the first event. It returns once each has read one.
func (c *eventSource) follow(ctx context.Context, n int, rec *load.Recorder) (*load.Fleet, error) {
	f, err := load.Launch(ctx, c.address, n, time.Duration(n)*followRamp, rec, func(i int) []byte { return c.request(i, 0) })
	if err != nil {
		return nil, err
	}
	if err := f.AwaitFirst(ctx, beginWithin); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readers measures P7: memory per idle reader, and events per CPU second to many readers of one turn.
func (b readerBench) readers(ctx context.Context) error {
	idle, many := b.pickCount(10_000, 200), b.pickCount(1000, 200)
	over := b.pickDuration(6*time.Second, 3*time.Second)
	var memory, events [2]figures.Samples
	table := figures.NewTable("round", "server", "kB per idle reader", "events/s", "events per CPU second", "delay p50 ms", "p99", "max", "gaps", "others' CPUs")
	for round := range b.rounds {
		var each [2]float64
		for _, service := range alternate(round) {
			var err error
			var name string
			if each[sideOf(service)], name, err = b.idleReaders(ctx, service, idle); err != nil {
				return err
			}
			b.Say("  %s: %s kB per idle reader", name, figures.Number(each[sideOf(service)]))
		}
		// Each side has two windows, in mirrored order (A B B A). The cost of a write depends on the host computer's other
		// work and on whether its processors sleep between two events, and both change within seconds.
		var tokens, seconds [2]float64
		for _, service := range append(alternate(round), alternate(round+1)...) {
			w, name, err := b.oneTurnsReaders(ctx, service, many, over)
			if err != nil {
				return err
			}
			used := w.used.Sse
			if service {
				used = w.used.Service
			}
			side := sideOf(service)
			tokens[side], seconds[side] = tokens[side]+float64(w.Tokens), seconds[side]+used.Seconds()
			table.Add(round+1, name, each[side], w.rate(), float64(w.Tokens)/used.Seconds(), w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.othersCPUs)
			b.Say("  %s", table.Last())
		}
		for side := range each {
			memory[side], events[side] = append(memory[side], each[side]), append(events[side], tokens[side]/seconds[side])
		}
	}
	b.report.Add(goals.Figure{Goal: "P7 memory", Ours: memory[0], Baseline: memory[1], Unit: "kB", Score: memory[0].DividedBy(memory[1])})
	b.report.Add(goals.Figure{Goal: "P7 events", Ours: events[0], Baseline: events[1], Unit: "/s", Score: events[0].DividedBy(events[1])})
	b.report.Detail("P7", fmt.Sprintf("%d more idle readers of one turn; %d readers of one turn at %d tokens/s", idle, many, load.TokensPerSecond), table)
	return nil
}

// sideOf returns the index of a side's figures: 0 for the service, 1 for the baseline.
func sideOf(service bool) int {
	if service {
		return 0
	}
	return 1
}

// readersBefore is the number of idle readers before the measured ones, which bring the server's heap to its size.
const readersBefore = 2000

// quietInterval is a token interval so long that a turn sends only its first token during a measurement.
const quietInterval = time.Hour

// idleReaders restarts a server and returns the memory per idle reader in kB, and the name of the server. If the readers
// take less memory than the method resolves, it returns the bound.
func (b readerBench) idleReaders(ctx context.Context, service bool, n int) (each float64, name string, err error) {
	interval := quietInterval
	if _, err := b.site.EnsureAccounts(ctx, 1); err != nil {
		return 0, "", err
	}
	if service {
		err = b.site.RestartService(ctx)
	} else {
		interval, err = 0, b.site.RestartSSE(ctx)
	}
	if err != nil {
		return 0, "", err
	}
	c, name, err := b.startEventSource(ctx, service, 1, interval)
	if err != nil {
		return 0, "", err
	}
	few, err := c.follow(ctx, b.pickCount(readersBefore, 100), load.NewRecorder())
	if err != nil {
		return 0, "", errors.Join(err, c.end())
	}
	defer few.Close()
	rest, err := site.SettledMemory(ctx, c.server())
	if err != nil {
		return 0, "", err
	}
	f, err := c.follow(ctx, n, load.NewRecorder())
	if err != nil {
		return 0, "", errors.Join(err, c.end())
	}
	defer f.Close()
	used, err := site.SettledMemory(ctx, c.server())
	if err != nil {
		return 0, "", err
	}
	f.Close()
	few.Close()
	return float64(max(used-rest, site.MemoryResolution(rest))) / float64(n) / 1000, name, c.end()
}

// oneTurnsReaders measures n readers that follow one turn, or one topic of the bare server.
func (b readerBench) oneTurnsReaders(ctx context.Context, service bool, n int, over time.Duration) (w window, name string, err error) {
	c, name, err := b.startEventSource(ctx, service, 1, load.TokenInterval)
	if err != nil {
		return w, "", err
	}
	rec := load.NewRecorder()
	f, err := c.follow(ctx, n, rec)
	if err != nil {
		return w, "", errors.Join(err, c.end())
	}
	defer f.Close()
	if err := clock.Sleep(ctx, warm); err != nil {
		return w, "", err
	}
	w, err = b.measureSide(ctx, rec, over, service)
	w.gaps = f.Gaps()
	f.Close()
	return w, name, errors.Join(err, c.end())
}

// resume measures P9: all readers lose their connections at the same time and resume at the same time.
func (b readerBench) resume(ctx context.Context) error {
	n, turns := b.pickCount(5000, 200), b.pickCount(100, 20)
	var times [2]figures.Samples
	var gaps, queries figures.Samples
	table := figures.NewTable("round", "server", "half resumed after ms", "99 %", "all", "gaps", "failed", "transactions per hundred resumes")
	for round := range b.rounds {
		for _, service := range alternate(round) {
			c, name, err := b.startEventSource(ctx, service, turns, readerPause)
			if err != nil {
				return err
			}
			f, err := c.follow(ctx, n, load.NewRecorder())
			if err != nil {
				return errors.Join(err, c.end())
			}
			r, err := b.reconnectAll(ctx, c, f)
			if err = errors.Join(err, c.end()); err != nil {
				return err
			}
			side := 1
			if service {
				side = 0
				gaps, queries = append(gaps, float64(r.gaps+r.failed)), append(queries, r.queries)
			}
			times[side] = append(times[side], r.times.Max)
			table.Add(round+1, name, r.times.P50, r.times.P99, r.times.Max, r.gaps, r.failed, r.queries)
			b.Say("  %s", table.Last())
		}
	}
	b.report.Add(goals.Figure{Goal: "P9", Ours: times[0], Baseline: times[1], Unit: "ms", Score: times[0]})
	b.report.Add(goals.Figure{Goal: "P9 gaps", Ours: gaps, Score: gaps})
	b.report.Add(goals.Figure{Goal: "P9 queries", Ours: queries, Score: queries})
	b.report.Detail("P9", fmt.Sprintf("%d readers of %d turns, each turn with two events a second", n, turns), table)
	return nil
}

// resumed is the result of one common reconnect of all readers.
type resumed struct {
	times        load.Spread // from the start of the common reconnect to the next event of each reader
	gaps, failed int
	queries      float64
}

const transactionsSQL = `select xact_commit + xact_rollback from pg_stat_database where datname = current_database()`

// transactions returns the number of transactions that Postgres has counted in the service's database.
func (b readerBench) transactions(ctx context.Context) (float64, error) {
	if err := clock.Sleep(ctx, 1500*time.Millisecond); err != nil { // Postgres updates its counts at most once a second
		return 0, err
	}
	counted, err := b.site.QueryNumbers(ctx, transactionsSQL)
	if err != nil {
		return 0, err
	}
	return counted[0], nil
}

// Each log gets an event per readerPause, so two events while the readers are disconnected.
const (
	disconnectedFor = time.Second
	readerPause     = 500 * time.Millisecond
)

// reconnectAll disconnects every reader of a fleet and reconnects all of them at once, each after its own last event.
func (b readerBench) reconnectAll(ctx context.Context, c *eventSource, f *load.Fleet) (r resumed, err error) {
	// The rate of transactions without reconnects is measured first and subtracted: it belongs to the turns.
	idle, err := b.transactions(ctx)
	if err != nil {
		return r, err
	}
	idleBegun := time.Now()
	if err := clock.Sleep(ctx, 2*time.Second); err != nil {
		return r, err
	}
	before, err := b.transactions(ctx)
	if err != nil {
		return r, err
	}
	background := (before - idle) / time.Since(idleBegun).Seconds()
	countBegun := time.Now()
	f.Close()
	// This is long enough for every log to grow, so that a reader that resumes finds missed events immediately.
	if err := clock.Sleep(ctx, disconnectedFor); err != nil {
		return r, err
	}
	again := load.NewRecorder()
	begun := load.Monotonic()
	took := load.NewHistogram()
	var mu sync.Mutex
	var failed atomic.Int64
	var running sync.WaitGroup
	readers := make([]*load.Stream, len(f.Streams))
	for i, old := range f.Streams {
		readers[i] = &load.Stream{N: i, Rec: again, Request: c.request(i, old.Last), After: old.Last, Tally: old.Tally, Resumes: true}
		running.Go(func() {
			if err := readers[i].Resume(ctx, c.address); err != nil {
				failed.Add(1)
				again.Fail(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			load.Record(took, load.Monotonic()-begun)
		})
	}
	running.Wait()
	after, err := b.transactions(ctx)
	if err != nil {
		return r, err
	}
	elapsed := time.Since(countBegun).Seconds()
	r.queries = max(0, after-before-background*elapsed) / float64(len(readers)) * 100
	for _, s := range readers {
		r.gaps += s.Gaps + s.Tally.Broken
		if s.Conn != nil {
			_ = s.Conn.Close()
		}
	}
	r.times, r.failed = load.SpreadOf(took), int(failed.Load())
	if r.failed > 0 {
		b.Say("  %s", again.Sample())
	}
	return r, nil
}
