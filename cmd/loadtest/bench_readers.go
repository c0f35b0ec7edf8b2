package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// liveMemory is P6.
func (b *bench) liveMemory(ctx context.Context) error {
	const interval = 2 * time.Second
	n := b.few(5000, 200)
	var ours, theirs samples
	table := newTable("round", "relay", "at rest MB", "with the load MB", "kB a turn")
	for round := range b.rounds {
		for _, service := range alternate(round) {
			used, rest, err := b.heldMemory(ctx, service, n, interval)
			if err != nil {
				return err
			}
			each, name := float64(used-rest)/float64(n)/1000, "proxy"
			if service {
				ours, name = append(ours, each), "turnstone"
			} else {
				theirs = append(theirs, each)
			}
			table.add(round+1, name, float64(rest)/1e6, float64(used)/1e6, each)
			b.say("  %s", table.last())
		}
	}
	b.report.add(figure{Goal: "P6", Ours: ours, Baseline: theirs, Unit: "kB", Score: ours.by(theirs)})
	b.report.detail("P6", fmt.Sprintf("%d live turns, a token every %s", n, interval), table)
	return nil
}

// heldMemory starts the relay anew, so that nothing is left of what it did before, and loads it.
func (b *bench) heldMemory(ctx context.Context, service bool, n int, interval time.Duration) (used, rest int64, err error) {
	if _, err := b.accountsFor(ctx, n); err != nil { // signing up takes memory that stays for a while
		return 0, 0, err
	}
	pid := func() int { return b.site.proxy.pid() }
	if service {
		pid, err = func() int { return b.site.service.pid() }, b.site.restartService(ctx)
	} else {
		err = b.site.restartProxy(ctx)
	}
	if err != nil {
		return 0, 0, err
	}
	// A first few, so that what is needed once is there.
	if _, err := b.relayed(ctx, service, 20, tokenInterval, 100*time.Millisecond, time.Second); err != nil {
		return 0, 0, err
	}
	if rest, err = settledMemory(ctx, pid()); err != nil {
		return 0, 0, err
	}
	text := script{Tokens: endless, Interval: interval}.String()
	address, request := b.site.proxy.address, func(int) []byte { return completionRequest(b.site.proxy.address, text) }
	if service {
		accounts, err := b.accountsFor(ctx, n)
		if err != nil {
			return 0, 0, err
		}
		address, request = b.site.public, func(i int) []byte { return accounts[i%len(accounts)].chatRequest(text, "") }
	}
	f, err := launch(ctx, address, n, time.Duration(n)*1500*time.Microsecond, newRecorder(), request)
	if err != nil {
		return 0, 0, err
	}
	defer f.close()
	if err := f.awaitFirst(ctx, beginWithin); err != nil {
		return 0, 0, err
	}
	if err := wait(ctx, b.short(6*time.Second, 3*time.Second)); err != nil {
		return 0, 0, err
	}
	if used, err = memoryOf(pid()); err != nil {
		return 0, 0, err
	}
	err = errors.Join(b.site.endTurns(ctx), f.await(ctx, endWithin), f.check())
	if err == nil {
		err = b.site.settle(ctx)
	}
	return used, rest, err
}

// crowd is what readers read: one or more turns, or topics of the bare server.
type crowd struct {
	address string
	request func(reader int, after int64) []byte
	server  func() int // the process
	end     func() error
}

// turnCrowd begins turns, each with a first reader, that go on for ever.
func (b *bench) turnCrowd(ctx context.Context, turns int, interval time.Duration) (*crowd, error) {
	accounts, err := b.site.users(ctx, min(turns, 100))
	if err != nil {
		return nil, err
	}
	text := script{Tokens: endless, Interval: interval}.String()
	f, err := launch(ctx, b.site.public, turns, time.Duration(turns)*5*time.Millisecond, newRecorder(),
		func(i int) []byte { return accounts[i%len(accounts)].chatRequest(text, "") })
	if err != nil {
		return nil, err
	}
	if err := f.awaitFirst(ctx, beginWithin); err != nil {
		f.close()
		return nil, err
	}
	names := make([]string, turns)
	for i, s := range f.streams {
		names[i] = s.turn
	}
	f.close() // the readers who come now are all that there are
	return &crowd{
		address: b.site.public,
		request: func(i int, after int64) []byte {
			return accounts[i%turns%len(accounts)].eventsRequest(names[i%turns], after)
		},
		server: b.site.service.pid,
		end:    func() error { return errors.Join(b.site.endTurns(ctx), b.site.rest(ctx)) },
	}, nil
}

// topicCrowd is the same on the bare server.
func (b *bench) topicCrowd(ctx context.Context, topics int, interval time.Duration) (*crowd, error) {
	url := func(i int) string { return fmt.Sprintf("http://%s/events/%d", b.site.sse.address, i%topics) }
	for i := range topics {
		if _, err := call(ctx, http.MethodPost, url(i)+"?interval="+interval.String(), nil, nil, http.StatusOK, nil); err != nil {
			return nil, err
		}
	}
	return &crowd{
		address: b.site.sse.address,
		request: func(i int, after int64) []byte {
			return fmt.Appendf(nil, "GET /events/%d HTTP/1.1\r\nHost: %s\r\nLast-Event-ID: %d\r\n\r\n", i%topics, b.site.sse.address, after)
		},
		server: b.site.sse.pid,
		end: func() error {
			for i := range topics {
				if _, err := call(ctx, http.MethodDelete, url(i), nil, nil, http.StatusOK, nil); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

func (b *bench) crowd(ctx context.Context, service bool, n int, interval time.Duration) (*crowd, string, error) {
	if service {
		c, err := b.turnCrowd(ctx, n, interval)
		return c, "turnstone", err
	}
	c, err := b.topicCrowd(ctx, n, interval)
	return c, "bare SSE", err
}

// follow lets n readers follow the crowd's logs from the beginning, until each has an event.
func (c *crowd) follow(ctx context.Context, n int, rec *recorder) (*fleet, error) {
	f, err := launch(ctx, c.address, n, time.Duration(n)*500*time.Microsecond, rec, func(i int) []byte { return c.request(i, 0) })
	if err != nil {
		return nil, err
	}
	if err := f.awaitFirst(ctx, beginWithin); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// readers is P7.
func (b *bench) readers(ctx context.Context) error {
	idle, many := b.few(5000, 200), b.few(1000, 200)
	over := b.short(6*time.Second, 3*time.Second)
	var memory, events [2]samples
	table := newTable("round", "server", "kB an idle reader", "events/s", "events a CPU second", "delay p50 ms", "p99", "max", "gaps", "others' CPUs")
	for round := range b.rounds {
		var each [2]float64
		for _, service := range alternate(round) {
			var err error
			if each[sideOf(service)], _, err = b.idleReaders(ctx, service, idle); err != nil {
				return err
			}
		}
		// Two windows of each, in turn and mirrored: what else the machine does, and whether its processors sleep between
		// two events, changes within seconds and decides over what a write costs.
		var tokens, seconds [2]float64
		for _, service := range append(alternate(round), alternate(round+1)...) {
			w, name, err := b.oneTurnsReaders(ctx, service, many, over)
			if err != nil {
				return err
			}
			used := w.used.sse
			if service {
				used = w.used.service
			}
			side := sideOf(service)
			tokens[side], seconds[side] = tokens[side]+float64(w.Tokens), seconds[side]+used.Seconds()
			table.add(round+1, name, each[side], w.rate(), float64(w.Tokens)/used.Seconds(), w.Delay.P50, w.Delay.P99, w.Delay.Max, w.gaps, w.foreign)
			b.say("  %s", table.last())
		}
		for side := range each {
			memory[side], events[side] = append(memory[side], each[side]), append(events[side], tokens[side]/seconds[side])
		}
	}
	b.report.add(figure{Goal: "P7 memory", Ours: memory[0], Baseline: memory[1], Unit: "kB", Score: memory[0].by(memory[1])})
	b.report.add(figure{Goal: "P7 events", Ours: events[0], Baseline: events[1], Unit: "/s", Score: events[0].by(events[1])})
	b.report.detail("P7", fmt.Sprintf("%d idle readers of one turn; %d readers of one turn at %d tokens/s", idle, many, tokensASecond), table)
	return nil
}

// sideOf is where the figures of the service (0) and of the baseline (1) are kept.
func sideOf(service bool) int {
	if service {
		return 0
	}
	return 1
}

// quietTurn has a first token and no second before anybody looks.
const quietTurn = time.Hour

func (b *bench) idleReaders(ctx context.Context, service bool, n int) (each float64, name string, err error) {
	interval := quietTurn
	if _, err := b.site.users(ctx, 1); err != nil {
		return 0, "", err
	}
	if service {
		err = b.site.restartService(ctx)
	} else {
		interval, err = 0, b.site.restartSSE(ctx)
	}
	if err != nil {
		return 0, "", err
	}
	c, name, err := b.crowd(ctx, service, 1, interval)
	if err != nil {
		return 0, "", err
	}
	// Some first, so that what is needed once is there.
	few, err := c.follow(ctx, 100, newRecorder())
	if err != nil {
		return 0, "", errors.Join(err, c.end())
	}
	defer few.close()
	rest, err := settledMemory(ctx, c.server())
	if err != nil {
		return 0, "", err
	}
	f, err := c.follow(ctx, n, newRecorder())
	if err != nil {
		return 0, "", errors.Join(err, c.end())
	}
	defer f.close()
	if err := wait(ctx, 3*time.Second); err != nil {
		return 0, "", err
	}
	used, err := memoryOf(c.server())
	if err != nil {
		return 0, "", err
	}
	f.close()
	few.close()
	return float64(used-rest) / float64(n) / 1000, name, c.end()
}

func (b *bench) oneTurnsReaders(ctx context.Context, service bool, n int, over time.Duration) (w window, name string, err error) {
	c, name, err := b.crowd(ctx, service, 1, tokenInterval)
	if err != nil {
		return w, "", err
	}
	rec := newRecorder()
	f, err := c.follow(ctx, n, rec)
	if err != nil {
		return w, "", errors.Join(err, c.end())
	}
	defer f.close()
	if err := wait(ctx, warm); err != nil {
		return w, "", err
	}
	window := func() (err error) {
		w, err = b.measure(ctx, rec, over)
		return err
	}
	if service {
		err = b.profiled(ctx, over, window)
	} else {
		err = window()
	}
	w.gaps = f.gaps()
	f.close()
	return w, name, errors.Join(err, c.end())
}

// resume is P9: readers lose their connections together and come again together.
func (b *bench) resume(ctx context.Context) error {
	n, turns := b.few(5000, 200), b.few(100, 20)
	var times [2]samples
	var gaps, queries samples
	table := newTable("round", "server", "until half resumed ms", "99 %", "all", "gaps", "failed", "transactions a hundred resumes")
	for round := range b.rounds {
		for _, service := range alternate(round) {
			c, name, err := b.crowd(ctx, service, turns, readerPause)
			if err != nil {
				return err
			}
			f, err := c.follow(ctx, n, newRecorder())
			if err != nil {
				return errors.Join(err, c.end())
			}
			r, err := b.stampede(ctx, c, f)
			if err = errors.Join(err, c.end()); err != nil {
				return err
			}
			side := 1
			if service {
				side = 0
				gaps, queries = append(gaps, float64(r.gaps+r.failed)), append(queries, r.queries)
			}
			times[side] = append(times[side], r.times.Max)
			table.add(round+1, name, r.times.P50, r.times.P99, r.times.Max, r.gaps, r.failed, r.queries)
			b.say("  %s", table.last())
		}
	}
	b.report.add(figure{Goal: "P9", Ours: times[0], Baseline: times[1], Unit: "ms", Score: times[0]})
	b.report.add(figure{Goal: "P9 gaps", Ours: gaps, Score: gaps})
	b.report.add(figure{Goal: "P9 queries", Ours: queries, Score: queries})
	b.report.detail("P9", fmt.Sprintf("%d readers of %d turns, two events a second each", n, turns), table)
	return nil
}

type resumed struct {
	times        spread // from the moment of all to the next event of each
	gaps, failed int
	queries      float64
}

const transactionsSQL = `select xact_commit + xact_rollback from pg_stat_database where datname = current_database()`

func (b *bench) transactions(ctx context.Context) (float64, error) {
	if err := wait(ctx, 1500*time.Millisecond); err != nil { // Postgres counts once a second at most
		return 0, err
	}
	counted, err := b.site.sqlNumbers(ctx, transactionsSQL)
	if err != nil {
		return 0, err
	}
	return counted[0], nil
}

// away is how long readers are gone; their logs get two events in it.
const (
	away        = time.Second
	readerPause = 500 * time.Millisecond
)

// stampede drops every reader of a fleet and brings all back at once, each after its own last event.
func (b *bench) stampede(ctx context.Context, c *crowd, f *fleet) (r resumed, err error) {
	// What the turns themselves need in such a time is not the readers'.
	idle, err := b.transactions(ctx)
	if err != nil {
		return r, err
	}
	idleBegun := time.Now()
	if err := wait(ctx, 2*time.Second); err != nil {
		return r, err
	}
	before, err := b.transactions(ctx)
	if err != nil {
		return r, err
	}
	background := (before - idle) / time.Since(idleBegun).Seconds()
	countBegun := time.Now()
	f.close()
	// Long enough that every log has gone on: who resumes finds at once what it missed.
	if err := wait(ctx, away); err != nil {
		return r, err
	}
	again := newRecorder()
	begun := monotonic()
	took := newHistogram()
	var mu sync.Mutex
	var failed atomic.Int64
	var running sync.WaitGroup
	readers := make([]*stream, len(f.streams))
	for i, old := range f.streams {
		readers[i] = &stream{n: i, rec: again, request: c.request(i, old.sequence), after: old.sequence, tally: old.tally, resumes: true}
		running.Go(func() {
			if err := readers[i].resume(ctx, c.address); err != nil {
				failed.Add(1)
				again.fail(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			record(took, monotonic()-begun)
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
		r.gaps += s.gaps + s.tally.broken
		if s.conn != nil {
			_ = s.conn.Close()
		}
	}
	r.times, r.failed = spreadOf(took), int(failed.Load())
	if r.failed > 0 {
		b.say("  %s", again.sample())
	}
	return r, nil
}

// resume connects, asks for what follows and reads the first event of it.
func (s *stream) resume(ctx context.Context, address string) (err error) {
	if s.conn, err = dial(ctx, address); err != nil {
		return err
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	lines, err := s.ask()
	if err != nil {
		return err
	}
	for before := s.events; s.events == before; {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("resuming: %w", err)
		}
		s.line(line)
	}
	return nil
}
