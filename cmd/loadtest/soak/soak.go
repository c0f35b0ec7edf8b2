package soak

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/load"
	"turnstone/cmd/loadtest/site"
	"turnstone/protocol/clock"
)

// Command runs a load for a long time while it injects faults. It checks that the service meets its guarantees, and
// that its memory, descriptors, goroutines and connections do not grow.
type Command struct {
	For        time.Duration `default:"1h" help:"Length of the run."`
	Turns      int           `help:"Number of live turns. Default: a share of the capacity."`
	Share      float64       `default:"0.6" help:"Share of the capacity to run."`
	Capacity   int           `help:"Capacity in live turns. Default: it is measured first."`
	Rate       float64       `help:"Tokens per second, instead of --turns."`
	FaultEvery time.Duration `default:"30s" help:"Time between faults."`
	Seed       uint64        `help:"Seed of the faults and the turns. Default: a random seed."`
	Idle       time.Duration `default:"60s" help:"Idle time before the resources at rest are measured, both before and after the load. With less than the default, they may take the rest of it to return to their level."`
	Binary     string        `default:"tmp/bench/turnstone" help:"The turnstone program to test."`
	Folder     string        `default:"tmp/bench" help:"Folder for the servers' data, on this host computer's own disk."`
	Results    string        `default:"tmp/soak" help:"Folder for the results as JSON."`
	Out        string        `help:"Document to write in addition, for example docs/soak.md."`
}

// soak is one run of the soak test.
type soak struct {
	*console.Console
	command      Command
	site         *site.Site
	result       *result
	before       []float64 // result of countSQL before the first turn
	connections  connections
	faultWindows faultWindows
	meter        *meter
	idle         idleConversations
	running      sync.WaitGroup

	// processes is locked for writing while a fault starts the service, or stops and starts Postgres, and for reading
	// while their processes are measured.
	processes sync.RWMutex
	restarts  atomic.Int64

	draining chan struct{} // closed once no more turns start
	slots    chan struct{} // one slot for each turn that a client follows; created when their number is known
	acks     acks

	mu          sync.Mutex
	turnRecords []turnRecord // guarded by mu: a uniform random sample of the finished turns
	seen        int          // guarded by mu: how many turns turnRecords was drawn from
}

// acks counts what the service acknowledged, and how often readers resumed and turns were read again.
type acks struct {
	starts, ends, steers, cancels, queued, writes, returns, rereads atomic.Int64
}

// Run runs the soak test and writes its results. A violated guarantee is an error.
func (c Command) Run(ctx context.Context, p *console.Console) (err error) {
	if c.For < time.Minute || c.FaultEvery < 10*time.Second || c.Share <= 0 || c.Idle < 0 {
		return errors.New("needs at least one minute, at least ten seconds between faults, a positive share and an idle time that is not negative")
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64N(1 << 32)
	}
	free, err := site.LockFolder(ctx, c.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	k := newSoak(p, c)
	p.Say("seed %d; starting the servers", c.Seed)
	if k.site, err = site.New(ctx, p, c.Binary, c.Folder); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.site.Close(context.WithoutCancel(ctx))) }()
	if err := k.prepare(ctx); err != nil {
		return err
	}
	if err := k.soak(ctx); err != nil {
		return err
	}
	return k.report()
}

func newSoak(p *console.Console, c Command) *soak {
	return &soak{
		Console: p, command: c, meter: newMeter(), draining: make(chan struct{}),
		connections: connections{all: map[net.Conn]struct{}{}}, idle: idleConversations{all: map[*load.Account][]idleConversation{}},
		result: newResult(c),
	}
}

// prepare measures the capacity if it is needed and not given, then starts a new process, warms it up and counts the
// rows in the database.
func (k *soak) prepare(ctx context.Context) (err error) {
	if err := k.fixAddresses(ctx); err != nil {
		return err
	}
	turns := k.command.Turns
	if k.command.Rate > 0 {
		turns = int(k.command.Rate / load.TokensPerSecond)
	}
	if turns == 0 {
		capacity := k.command.Capacity
		if capacity == 0 {
			if capacity, err = k.capacity(ctx); err != nil {
				return err
			}
		}
		k.result.Capacity = capacity
		turns = int(float64(capacity) * k.command.Share)
	}
	if turns < 1 {
		return errors.New("the number of live turns is zero")
	}
	k.result.Turns, k.slots = turns, make(chan struct{}, turns)
	k.Say("signing up the accounts for %d live turns", turns)
	if _, err := k.site.EnsureAccounts(ctx, load.AccountsFor(turns)); err != nil {
		return err
	}
	if err := k.site.RestartService(ctx); err != nil {
		return err
	}
	if err := k.warmUp(ctx); err != nil {
		return err
	}
	k.before, err = k.site.QueryNumbers(ctx, countSQL)
	return err
}

// warmUp loads a new process once, so that its pools grow to the size that a load needs. It then waits as long as at
// the end of the run and measures the resources at rest.
func (k *soak) warmUp(ctx context.Context) error {
	text := load.Script{Tokens: 2 * load.TokensPerSecond, Interval: load.TokenInterval}.String()
	// All turns start at once, so that the pools, which retain what they once needed, grow as large as after a fault.
	f, err := load.Launch(ctx, k.site.Public, min(k.result.Turns, warmUpTurns), time.Millisecond, load.NewRecorder(), func(i int) []byte {
		return k.site.Accounts[i%len(k.site.Accounts)].ChatRequest(text, "")
	})
	if err != nil {
		return err
	}
	if err := errors.Join(f.Await(ctx, load.EndWithin), f.Check()); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	load.Transport.CloseIdleConnections()
	if err := k.site.AwaitIdle(ctx); err != nil {
		return err
	}
	k.Say("idle for %s", k.command.Idle)
	if err := clock.Sleep(ctx, k.command.Idle); err != nil {
		return err
	}
	k.result.Before, err = k.readAtRest(ctx)
	k.Say("at rest: %+v", k.result.Before)
	return err
}

// warmUpTurns is the highest number of turns that start together to warm the service up: as many as P4 keeps in flight
// without a refusal.
const warmUpTurns = 128

// fixAddresses restarts the service on addresses that it keeps for the whole run.
func (k *soak) fixAddresses(ctx context.Context) (err error) {
	if err := k.site.Service.Stop(); err != nil {
		return err
	}
	if k.site.Public, err = site.FixedAddress(ctx); err != nil {
		return err
	}
	if k.site.Internal, err = site.FixedAddress(ctx); err != nil {
		return err
	}
	k.site.KeepAddresses = true
	_, err = k.site.StartService(ctx)
	return err
}

// soak runs the load and the faults, waits until all turns have ended, checks them, and measures the resources at rest.
func (k *soak) soak(ctx context.Context) error {
	k.Say("%s with %d live turns and a fault every %s", k.command.For, k.result.Turns, k.command.FaultEvery)
	k.meter.empty()
	if err := k.result.begin(k); err != nil {
		return err
	}
	sampling, stop := context.WithCancel(ctx)
	defer stop()
	sampled := make(chan struct{})
	go func() { defer close(sampled); k.sample(sampling) }()
	starting, stopStarting := context.WithCancel(ctx)
	allStarted := make(chan struct{})
	go func() { defer close(allStarted); k.startTurns(starting, ctx) }()
	err := injector{k}.faults(ctx, planFaults(k.command.Seed, k.command.For, k.command.FaultEvery))
	stopStarting()
	<-allStarted
	stop()
	<-sampled
	k.result.takeSample(k, false)
	close(k.draining)
	if err != nil {
		return err
	}
	if err := k.drain(ctx); err != nil {
		return err
	}
	metrics, err := k.site.Metrics(ctx)
	if err != nil {
		return fmt.Errorf("reading the durations of requests: %w", err)
	}
	k.result.Slow = slowRoutes(metrics)
	return k.measureAtRest(ctx)
}

// startTurns starts turns at a random rate that keeps the intended number of them live. A turn starts when it is due
// and a slot is free. Turns that are steered or interrupted by a fault take longer than drawn; without slots the load
// would exceed the intended one. When ctx ends, no more turns start; the turns end with turnCtx.
func (k *soak) startTurns(ctx, turnCtx context.Context) {
	random := rand.New(rand.NewPCG(k.command.Seed, 0))
	mean := float64(meanTokens) * float64(load.TokenInterval) / float64(k.result.Turns)
	due := time.Now()
	for n := 0; ; n++ {
		if clock.Sleep(ctx, time.Until(due)) != nil {
			return
		}
		select {
		case k.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		k.running.Go(func() { k.runTurn(turnCtx, n) })
		if now := time.Now(); due.Before(now) { // the time spent waiting for a slot is not made up for
			due = now
		}
		due = due.Add(time.Duration(random.ExpFloat64() * mean))
	}
}

const (
	drainByItself = 20 * time.Second
	drainWithin   = 5 * time.Minute
)

// drain waits until every turn has ended, reads a sample of them again, and compares the database with the clients'
// counts.
func (k *soak) drain(ctx context.Context) error {
	k.Say("draining")
	if err := k.end(ctx, drainByItself); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		k.breach(lostKind, "turns are still live %s after the last one started", drainWithin)
	}
	k.result.takeSample(k, true)
	k.mu.Lock()
	records := k.turnRecords
	k.mu.Unlock()
	k.Say("reading %d turns again", len(records))
	for _, one := range records {
		k.reread(ctx, one)
	}
	return k.count(ctx)
}

// end waits until every turn has ended. Once the duration after has passed, it makes the model end its answers.
func (k *soak) end(ctx context.Context, after time.Duration) error {
	done := make(chan struct{})
	go func() { k.running.Wait(); close(done) }()
	begun := time.Now()
	return load.Until(ctx, drainWithin, func() (bool, error) {
		if time.Since(begun) >= after {
			if err := k.site.EndTurns(ctx); err != nil {
				return false, err
			}
		}
		select {
		case <-done:
		default:
			return false, nil
		}
		live, err := k.site.Metric(ctx, "turnstone_turns_live")
		return err == nil && live == 0, nil
	})
}

const countSQL = `select
	(select count(*) from turns),
	(select count(*) from turns where not terminal),
	(select count(*) from turns where follow_up_id is not null),
	(select count(*) from follow_ups where source = 'user'),
	(select count(*) from follow_ups where source = 'user' and state = 'queued')`

// count compares the rows in the database with the operations that the clients know of.
func (k *soak) count(ctx context.Context) error {
	counts, err := k.site.QueryNumbers(ctx, countSQL)
	if err != nil {
		return err
	}
	for at, before := range k.before {
		counts[at] -= before
	}
	turns, open, followed, queued, waiting := int64(counts[0]), int64(counts[1]), int64(counts[2]), int64(counts[3]), int64(counts[4])
	k.result.Database = fmt.Sprintf("%d turns (%d of them started from follow-ups), %d turns that have not ended, %d follow-ups, %d follow-ups that are still queued",
		turns, followed, open, queued, waiting)
	k.Say("the database has %s", k.result.Database)
	if known := k.acks.starts.Load() + followed; turns < known {
		k.breachTimes(int(known-turns), lostKind, "the database has %d turns, clients know of %d", turns, known)
	} else if turns > known {
		k.breachTimes(int(turns-known), duplicateKind, "the database has %d turns, clients know of %d", turns, known)
	}
	if known := k.acks.queued.Load(); queued != known {
		k.breach(lostKind, "the database has %d follow-ups, clients know of %d", queued, known)
	}
	if open > 0 || waiting > 0 {
		k.breachTimes(int(open+waiting), lostKind, "%d turns have not ended, %d follow-ups are still queued", open, waiting)
	}
	return nil
}

// restWithin is how long the resources may take to return to their level before the run.
const restWithin = time.Minute

// measureAtRest measures the service's resources after an idle time without requests. After less than restWithin, it
// waits until they have returned to their level, at most until restWithin is over.
func (k *soak) measureAtRest(ctx context.Context) (err error) {
	load.Transport.CloseIdleConnections()
	until := time.Now().Add(restWithin)
	k.Say("idle for %s", k.command.Idle)
	if err := clock.Sleep(ctx, k.command.Idle); err != nil {
		return err
	}
	k.result.takeSample(k, true)
	for {
		k.result.After, err = k.readAtRest(ctx)
		if err != nil || len(leaks(k.result.Before, k.result.After)) == 0 || time.Now().After(until) {
			return err
		}
		if err := clock.Sleep(ctx, sampleInterval/10); err != nil {
			return err
		}
	}
}

// sampleTurn maintains a uniform random sample of at most 400 finished turns, which are read again at the end.
func (k *soak) sampleTurn(one turnRecord) {
	const most = 400
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	if len(k.turnRecords) < most {
		k.turnRecords = append(k.turnRecords, one)
	} else if at := rand.IntN(k.seen); at < most {
		k.turnRecords[at] = one
	}
}

func (k *soak) restarted() { k.restarts.Add(1) }

// timed records the time since due: under the kind always, unless that is negative, and under the kind what if no fault
// was near.
func (k *soak) timed(n, what, always int, due int64) {
	took := load.Monotonic() - due
	if always >= 0 {
		k.meter.record(n, always, took)
	}
	if k.faultWindows.calm(due) {
		k.meter.record(n, what, took)
	}
}

// noteBrokenConnection judges a connection that failed or ended early, which only a fault may cause.
func (k *soak) noteBrokenConnection(since int64, what string, err error) {
	if fault, _ := k.faultWindows.overlaps(since, load.Monotonic()); fault {
		k.result.count(&k.result.CutsInFaults)
		return
	}
	k.breach(brokenKind, "%s: %v", what, err)
}

// shouldRetry judges a response that is a refusal and reports whether to send the request again.
func (k *soak) shouldRetry(sentAt int64, what string, status int, body string) bool {
	switch {
	case status >= http.StatusInternalServerError:
		_, refuses := k.faultWindows.overlaps(sentAt, load.Monotonic())
		switch {
		case status != http.StatusServiceUnavailable:
			k.breach(unexpectedKind, "%s: %d %.200s", what, status, strings.TrimSpace(body))
		case refuses:
			k.result.count(&k.result.RefusedInFaults)
		default:
			k.breach(outsideKind, "%s: %d %.300s", what, status, strings.TrimSpace(body))
		}
		return true
	case status == http.StatusConflict && strings.Contains(body, "idempotency_in_progress"):
		return true
	default:
		k.breach(unexpectedKind, "%s: %d %.200s", what, status, strings.TrimSpace(body))
		return false
	}
}

func (k *soak) breach(kind, format string, args ...any) { k.breachTimes(1, kind, format, args...) }

func (k *soak) breachTimes(times int, kind, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if k.result.breach(times, kind, text) {
		k.Say("%s: %s", kind, text)
	}
}

func (k *soak) ended(status string) { k.result.ended(status) }

// recordFault records a fault that is over.
func (k *soak) recordFault(planned plannedFault, took time.Duration) {
	k.Say("%s: %s (%s)", planned.at, planned.kind.name, took.Round(time.Millisecond))
	k.result.recordFault(planned.kind.name, took)
}

// rssGrowth limits the growth of memory from the second quarter to the last, in percent, and delayDrift the
// corresponding ratio of a p99. restTolerance limits the growth of goroutines, descriptors and connections at rest.
const (
	rssGrowth     = 5.0
	delayDrift    = 1.2
	restTolerance = 10
	// Growth and drift are measured only over at least leastStretch: before that the heap still grows to its size, and
	// a quarter has too few samples for a p99.
	leastStretch = 20 * time.Minute
)

func (k *soak) report() error {
	r := k.result
	r.finish(k)
	fmt.Fprint(k.Stdout, r.markdown())
	if err := r.write(k.command.Results); err != nil {
		return err
	}
	if k.command.Out != "" {
		if err := os.WriteFile(k.command.Out, []byte(r.markdown()), 0o644); err != nil {
			return err
		}
	}
	if len(r.Failed) > 0 {
		log, err := os.ReadFile(filepath.Join(k.site.Folder, "service.log"))
		if err == nil {
			err = os.WriteFile(filepath.Join(k.command.Results, r.Begun.Format(fileTime)+".service.log"), log, 0o600)
		}
		if err != nil {
			k.Say("the service's log was not saved: %v", err)
		}
		return fmt.Errorf("checks failed: %s", strings.Join(r.Failed, "; "))
	}
	return nil
}

// growth returns by how many percent second exceeds first. It is NaN if first is 0.
func growth(first, second float64) float64 {
	if first == 0 {
		return math.NaN()
	}
	return (second/first - 1) * 100
}
