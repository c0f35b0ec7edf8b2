package main

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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// soakCommand keeps a load alive for long while things break, and holds the service to what it promised and to the
// memory, descriptors and goroutines that it began with.
type soakCommand struct {
	For        time.Duration `default:"1h" help:"How long."`
	Turns      int           `help:"Live turns to keep. Left out: a share of the capacity."`
	Share      float64       `default:"0.6" help:"The share of the capacity."`
	Capacity   int           `help:"The capacity in live turns. Left out: it is measured first."`
	Rate       float64       `help:"Tokens a second, in place of --turns."`
	FaultEvery time.Duration `default:"30s" help:"Time between faults."`
	Seed       uint64        `help:"What draws the faults and the turns. Left out: any."`
	Idle       time.Duration `default:"60s" help:"Rest at the end, before what is left is counted."`
	Binary     string        `default:"tmp/bench/turnstone" help:"The program that is attacked."`
	Folder     string        `default:"tmp/bench" help:"Where the servers keep their data: on this machine's own disk."`
	Results    string        `default:"tmp/soak" help:"Where the figures go."`
	Out        string        `help:"The document to write as well, as docs/soak.md."`
}

// soak is a run.
type soak struct {
	*program
	command soakCommand
	site    *site
	result  *soakResult
	client  *http.Client
	before  []float64 // by countSQL, before the first turn
	lines   lines
	windows windows
	meter   *meter
	places  places
	running sync.WaitGroup

	// processes is held by who ends and starts the service or Postgres, and by who looks at their processes.
	processes sync.RWMutex
	restarts  atomic.Int64

	draining chan struct{} // closed when no more turns begin
	alive    chan struct{} // holds a place for each turn that a client follows; made when their number is known
	acks     acks

	mu       sync.Mutex
	memories []memory // guarded by mu: a fair sample of all turns
	seen     int      // guarded by mu: of how many
}

// acks are what the service acknowledged, and clients hold it to.
type acks struct {
	starts, ends, steers, cancels, queued, writes, returns, rereads atomic.Int64
}

// Run soaks and writes what came of it. A breach of a promise is an error.
func (c soakCommand) Run(ctx context.Context, p *program) (err error) {
	if c.For < time.Minute || c.FaultEvery < 10*time.Second || c.Share <= 0 || c.Idle < 0 {
		return errors.New("needs a minute at least, ten seconds between faults, and a share")
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64N(1 << 32)
	}
	free, err := alone(ctx, c.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	k := newSoak(p, c)
	p.say("seed %d; starting the servers", c.Seed)
	if k.site, err = newSite(ctx, p, c.Binary, c.Folder); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.site.close(context.WithoutCancel(ctx))) }()
	if err := k.prepare(ctx); err != nil {
		return err
	}
	if err := k.soak(ctx); err != nil {
		return err
	}
	return k.report()
}

func newSoak(p *program, c soakCommand) *soak {
	return &soak{
		program: p, command: c, meter: newMeter(), draining: make(chan struct{}),
		lines: lines{all: map[net.Conn]struct{}{}}, places: places{all: map[*account][]place{}},
		client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 20 * time.Second}},
		result: newSoakResult(c),
	}
}

// prepare measures the capacity if it has to, and brings a new process to rest.
func (k *soak) prepare(ctx context.Context) (err error) {
	if err := k.settleDown(ctx); err != nil {
		return err
	}
	turns := k.command.Turns
	if k.command.Rate > 0 {
		turns = int(k.command.Rate / tokensASecond)
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
		return errors.New("no turn can be kept alive here")
	}
	k.result.Turns, k.alive = turns, make(chan struct{}, turns)
	crowd := max(turns, leastCrowd)
	k.say("signing up the accounts of %d live turns", crowd)
	if _, err := k.site.users(ctx, accountsOf(crowd)); err != nil {
		return err
	}
	if err := k.site.restartService(ctx); err != nil {
		return err
	}
	if err := k.warmUp(ctx); err != nil {
		return err
	}
	k.before, err = k.site.sqlNumbers(ctx, countSQL)
	return err
}

// warmUp uses a new process once, so that its pools are as large as a load makes them, lets it rest as long as at the end,
// and looks at it.
func (k *soak) warmUp(ctx context.Context) error {
	text := script{Tokens: 2 * tokensASecond, Interval: tokenInterval}.String()
	// At once, so that the pools, which keep what they once needed, are as large as they get after a fault.
	f, err := launch(ctx, k.site.public, max(k.result.Turns, leastCrowd), time.Millisecond, newRecorder(), func(i int) []byte {
		return k.site.accounts[i%len(k.site.accounts)].chatRequest(text, "")
	})
	if err != nil {
		return err
	}
	if err := f.await(ctx, endWithin); err != nil {
		return err
	}
	if err := f.unlimited(); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	if failed := f.failed.Load(); failed > 0 { // on a machine that others use; it is the run that is judged
		k.say("  %d turns failed: %s", failed, f.rec.sample())
	}
	browser.CloseIdleConnections()
	k.say("resting for %s", k.command.Idle)
	if err := wait(ctx, k.command.Idle); err != nil {
		return err
	}
	k.result.Before, err = k.look(ctx)
	k.say("at rest: %+v", k.result.Before)
	return err
}

// leastCrowd is how many turns begin together at least before the service is looked at.
const leastCrowd = 400

// settleDown gives the service addresses that stay, outside of the range from which outgoing connections take theirs: a
// client that knocks while the service is away could else find itself.
func (k *soak) settleDown(ctx context.Context) error {
	if err := k.site.service.stop(); err != nil {
		return err
	}
	var addresses [2]string
	for i := range addresses {
		for addresses[i] == "" {
			address := "127.0.0.1:" + strconv.Itoa(lowestPort+rand.IntN(highestPort-lowestPort))
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
			if err == nil {
				err = listener.Close()
				addresses[i] = address
			}
			if ctx.Err() != nil {
				return errors.Join(ctx.Err(), err)
			}
		}
	}
	k.site.public, k.site.internal, k.site.steady = addresses[0], addresses[1], true
	_, err := k.site.startService(ctx)
	return err
}

const (
	lowestPort  = 15_000
	highestPort = 30_000
)

// soak is the run itself, its end and the look at what is left.
func (k *soak) soak(ctx context.Context) error {
	k.say("%s with %d live turns and a fault every %s", k.command.For, k.result.Turns, k.command.FaultEvery)
	k.meter.empty()
	if err := k.result.begin(k); err != nil {
		return err
	}
	sampling, stop := context.WithCancel(ctx)
	defer stop()
	sampled := make(chan struct{})
	go func() { defer close(sampled); k.sample(sampling) }()
	arriving, cease := context.WithCancel(ctx)
	arrived := make(chan struct{})
	go func() { defer close(arrived); k.arrive(arriving, ctx) }()
	err := k.faults(ctx, planFaults(k.command.Seed, k.command.For, k.command.FaultEvery))
	cease()
	<-arrived
	stop()
	<-sampled
	k.result.cut(k, false)
	close(k.draining)
	if err != nil {
		return err
	}
	if err := k.drain(ctx); err != nil {
		return err
	}
	return k.rest(ctx)
}

// arrive begins turns as many as keep the load alive: each when it is due, and there is a place for it. What is steered,
// or asked again after a fault, lives longer than it was drawn for; without places the load would grow beyond what the run
// is about.
func (k *soak) arrive(ctx, lives context.Context) {
	random := rand.New(rand.NewPCG(k.command.Seed, 0))
	mean := float64(meanTokens) * float64(tokenInterval) / float64(k.result.Turns)
	due := time.Now()
	for n := 0; ; n++ {
		if waitUntil(ctx, due) != nil {
			return
		}
		select {
		case k.alive <- struct{}{}:
		case <-ctx.Done():
			return
		}
		k.running.Go(func() { k.live(lives, n) })
		if now := time.Now(); due.Before(now) { // what waited for a place is not made up for
			due = now
		}
		due = due.Add(time.Duration(random.ExpFloat64() * mean))
	}
}

const (
	drainByItself = 20 * time.Second
	drainWithin   = 5 * time.Minute
)

// drain waits until every turn has ended, and looks at what became of them.
func (k *soak) drain(ctx context.Context) error {
	k.say("draining")
	if err := k.end(ctx, drainByItself); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		k.breach(lostKind, "turns that are live %s after the last one began", drainWithin)
	}
	k.result.cut(k, true)
	k.mu.Lock()
	memories := k.memories
	k.mu.Unlock()
	k.say("reading %d turns again", len(memories))
	for _, m := range memories {
		k.reread(ctx, m)
	}
	return k.count(ctx)
}

// end waits until every turn has ended; after a while the model ends its answers.
func (k *soak) end(ctx context.Context, after time.Duration) error {
	done := make(chan struct{})
	go func() { k.running.Wait(); close(done) }()
	begun := time.Now()
	return until(ctx, drainWithin, func() (bool, error) {
		if time.Since(begun) >= after {
			if err := k.site.endTurns(ctx); err != nil {
				return false, err
			}
		}
		select {
		case <-done:
		default:
			return false, nil
		}
		live, err := k.site.metric(ctx, "turnstone_turns_live")
		return err == nil && live == 0, nil
	})
}

const countSQL = `select
	(select count(*) from turns),
	(select count(*) from turns where not terminal),
	(select count(*) from turns where follow_up_id is not null),
	(select count(*) from follow_ups where source = 'user'),
	(select count(*) from follow_ups where source = 'user' and state = 'queued')`

// count holds what the clients know against what the database has.
func (k *soak) count(ctx context.Context) error {
	counts, err := k.site.sqlNumbers(ctx, countSQL)
	if err != nil {
		return err
	}
	for at, before := range k.before {
		counts[at] -= before
	}
	turns, open, followed, queued, waiting := int64(counts[0]), int64(counts[1]), int64(counts[2]), int64(counts[3]), int64(counts[4])
	k.result.Database = fmt.Sprintf("%d turns (%d of them from the queue), %d that have not ended, %d queue items, %d that still wait", turns, followed, open, queued, waiting)
	k.say("the database has %s", k.result.Database)
	if known := k.acks.starts.Load() + followed; turns < known {
		k.breachTimes(int(known-turns), lostKind, "the database has %d turns, clients know of %d", turns, known)
	} else if turns > known {
		k.breachTimes(int(turns-known), doubleKind, "the database has %d turns, clients know of %d", turns, known)
	}
	if known := k.acks.queued.Load(); queued != known {
		k.breach(lostKind, "the database has %d queue items, clients know of %d", queued, known)
	}
	if open > 0 || waiting > 0 {
		k.breachTimes(int(open+waiting), lostKind, "%d turns have not ended, %d queue items still wait", open, waiting)
	}
	return nil
}

// rest looks at what is left when nobody has wanted anything for a while.
func (k *soak) rest(ctx context.Context) error {
	k.client.CloseIdleConnections()
	browser.CloseIdleConnections()
	k.say("resting for %s", k.command.Idle)
	if err := wait(ctx, k.command.Idle); err != nil {
		return err
	}
	k.result.cut(k, true)
	var err error
	k.result.After, err = k.look(ctx)
	return err
}

// remember keeps a fair sample of turns, to read all of them again at the end.
func (k *soak) remember(m memory) {
	const most = 400
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	if len(k.memories) < most {
		k.memories = append(k.memories, m)
	} else if at := rand.IntN(k.seen); at < most {
		k.memories[at] = m
	}
}

func (k *soak) restarted() { k.restarts.Add(1) }

// timed records how long something took that was due at a time.
func (k *soak) timed(n, what, always int, due int64) {
	took := monotonic() - due
	if always >= 0 {
		k.meter.record(n, always, took)
	}
	if k.windows.calm(due) {
		k.meter.record(n, what, took)
	}
}

// broken notes a connection that failed or ended early. Faults do that; nothing else should.
func (k *soak) broken(since int64, what string, err error) {
	if fault, _ := k.windows.touches(since, monotonic()); fault {
		k.result.note(&k.result.CutsInFaults, "")
		return
	}
	k.result.note(&k.result.CutsElsewhere, fmt.Sprintf("%s: %v", what, err))
}

// again judges an answer that is a refusal and says whether to ask once more.
func (k *soak) again(asked int64, what string, status int, body string) bool {
	switch {
	case status >= http.StatusInternalServerError:
		_, refuses := k.windows.touches(asked, monotonic())
		switch {
		case status != http.StatusServiceUnavailable:
			k.breach(unexpectedKind, "%s: %d %.200s", what, status, strings.TrimSpace(body))
		case refuses:
			k.result.note(&k.result.RefusedInFaults, "")
		default:
			k.result.refused(fmt.Sprintf("%s: %d %.300s", what, status, strings.TrimSpace(body)))
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
		k.say("%s: %s", kind, text)
	}
}

func (k *soak) ended(status string) { k.result.ended(status) }

// struck notes a fault that is over.
func (k *soak) struck(planned plannedFault, took time.Duration) {
	k.say("%s: %s (%s)", planned.at, planned.kind.name, took.Round(time.Millisecond))
	k.result.struck(planned.kind.name, took)
}

// rssGrowth is how much more memory, in percent, the last quarter may have than the second.
const (
	rssGrowth    = 5.0
	latencyDrift = 1.2
	baselineSlip = 10
	// Shorter stretches say nothing about memory: the heap still grows into its size.
	leastStretch = 20 * time.Minute
)

func (k *soak) report() error {
	r := k.result
	r.finish(k)
	fmt.Fprint(k.stdout, r.markdown())
	if err := r.write(k.command.Results); err != nil {
		return err
	}
	if k.command.Out != "" {
		if err := os.WriteFile(k.command.Out, []byte(r.markdown()), 0o644); err != nil {
			return err
		}
	}
	if len(r.Failed) > 0 {
		log, err := os.ReadFile(filepath.Join(k.site.folder, "service.log"))
		if err == nil {
			err = os.WriteFile(filepath.Join(k.command.Results, r.Begun.Format(fileTime)+".service.log"), log, 0o600)
		}
		if err != nil {
			k.say("the service's log is not kept: %v", err)
		}
		return fmt.Errorf("broken promises: %s", strings.Join(r.Failed, "; "))
	}
	return nil
}

// growth is by how many percent the second is more than the first.
func growth(first, second float64) float64 {
	if first == 0 {
		return math.NaN()
	}
	return (second/first - 1) * 100
}
