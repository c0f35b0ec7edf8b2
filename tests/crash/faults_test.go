package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"turnstone/persistence/pgtest"
	"turnstone/protocol/clock"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/proxytest"
	"turnstone/providers/embedded"
)

const (
	storeTimeout = clocktest.HangGuard // for a store to stop and start
	cutTimeout   = 400 * time.Millisecond
	deadAfter    = 6 * time.Second       // by then a stopped node was declared dead and its turns were taken over
	settleAfter  = 20 * time.Millisecond // by then a signal has reached a store's process
)

// fault is an injected fault, with the times at which it started and ended.
type fault struct {
	Kind  string        `json:"kind"`
	At    time.Duration `json:"at"`
	Until time.Duration `json:"until"`
}

// outage is a time span in which the limiter could not be reached.
type outage struct {
	From, To time.Duration
	Forgets  bool // the counters are lost afterwards
}

// injector injects faults in two independent lanes: one lane breaks processes and the database, the other one
// connections and the limiter. Each lane injects one fault at a time.
type injector struct {
	fleet    *fleet
	postgres *embedded.Postgres
	redis    *embedded.Redis
	cutter   *pgtest.Cutter
	model    *proxytest.Proxy
	notes    *findings
	clock    func() time.Duration

	mu      sync.Mutex
	faults  []fault  // guarded by mu
	outages []outage // guarded by mu
	crashes []span   // guarded by mu: of Postgres
}

// span is a time span by the host computer's clock, which the service's log also uses.
type span struct{ from, to time.Time }

// crashed reports whether Postgres crashed, or may have crashed, in a time span.
func (i *injector) crashed(from, to time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(i.crashes, func(s span) bool { return s.to.After(from) && s.from.Before(to) })
}

// faultKind is a kind of fault and the weight with which it is chosen. inject reports whether the fault took effect on
// a working service; an error ends the run.
type faultKind struct {
	name   string
	weight int
	inject func(*injector, context.Context, *rand.Rand) (bool, error)
}

// lane is a sequence of faults with pauses between them.
type lane struct {
	name        string
	least, most time.Duration // of a pause between two faults
	kinds       []faultKind
}

var lanes = []lane{
	{"processes", 100 * time.Millisecond, 700 * time.Millisecond, []faultKind{
		{"kill -9", 30, (*injector).kill},
		{"SIGTERM, then a start", 8, (*injector).terminate},
		{"SIGTERM while a successor runs", 8, (*injector).replace},
		{"SIGSTOP and SIGCONT", 30, (*injector).pause},
		{"SIGSTOP until taken over, SIGCONT", 2, (*injector).pauseUntilDeclaredDead},
		{"Postgres stopped at once", 16, (*injector).stopPostgres},
		{"Postgres frozen", 6, (*injector).freezePostgres},
	}},
	{"connections", 20 * time.Millisecond, 180 * time.Millisecond, []faultKind{
		{"answer to COMMIT cut", 34, cut(pgtest.Commit)},
		{"answer to a statement cut", 30, cut(pgtest.Statement)},
		{"all connections to Postgres cut", 5, (*injector).cutAll},
		{"model connections reset", 21, (*injector).resetModel},
		{"Redis stopped", 4, (*injector).stopRedis},
		{"Redis frozen", 6, (*injector).freezeRedis},
	}},
}

// only returns the kinds that -crash.only selects.
func only(kinds []faultKind) []faultKind {
	wanted := regexp.MustCompile(*crashOnly)
	return slices.DeleteFunc(slices.Clone(kinds), func(k faultKind) bool { return !wanted.MatchString(k.name) })
}

// One in pendingShare faults of a lane is of a kind that the round has not had yet.
const pendingShare = 3

// run injects faults until ctx ends; all servers run again when it returns. Each kind is injected at least once: a
// fault that took no effect is repeated. After the end of ctx, until overtime ends, run injects the kinds that are still
// missing and, while enough returns false, further faults.
func (i *injector) run(ctx, overtime context.Context, l lane, enough func() bool, random *rand.Rand) error {
	sum := 0
	for _, kind := range l.kinds {
		sum += kind.weight
	}
	missing := random.Perm(len(l.kinds))
	for {
		wait := l.least + time.Duration(random.Int64N(int64(l.most-l.least)))
		drawn, pickMissing := random.IntN(sum), random.IntN(pendingShare) == 0
		inner := rand.New(rand.NewPCG(random.Uint64(), 0)) // so that the draws of one fault do not change the next one
		if ctx.Err() != nil || clock.Sleep(ctx, wait) != nil {
			if len(missing) == 0 && enough() || overtime.Err() != nil || clock.Sleep(overtime, wait) != nil {
				return nil
			}
			pickMissing = true
		}
		next := 0
		for ; drawn >= l.kinds[next].weight; next++ {
			drawn -= l.kinds[next].weight
		}
		if pickMissing && len(missing) > 0 {
			next = missing[0]
		}
		happened, err := i.once(ctx, l.kinds[next], inner)
		if err != nil {
			return fmt.Errorf("%s: %w", l.kinds[next].name, err)
		}
		if at := slices.Index(missing, next); at >= 0 {
			missing = slices.Delete(missing, at, at+1)
			if !happened {
				missing = append(missing, next)
			}
		}
	}
}

func (i *injector) once(ctx context.Context, kind faultKind, random *rand.Rand) (happened bool, err error) {
	f := fault{Kind: kind.name, At: i.clock()}
	if happened, err = kind.inject(i, ctx, random); err != nil || !happened {
		return happened, err
	}
	f.Until = i.clock()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = append(i.faults, f)
	return true, nil
}

// target returns the process that serves clients. If the process ended without a fault, target reports a violation and
// starts a successor.
func (i *injector) target() (*process, error) {
	p := i.fleet.serving()
	if !p.ended() {
		return p, nil
	}
	i.notes.violation(endedUnexpectedly, "%s: %s", p.log, p.cmd.ProcessState)
	i.fleet.deactivate()
	return i.fleet.startIn(p.slot, time.Now())
}

func (i *injector) kill(_ context.Context, random *rand.Rand) (bool, error) {
	p, err := i.target()
	if err != nil {
		return false, err
	}
	slot := p.slot
	if random.IntN(8) == 0 { // the successor uses the other data folder and knows nothing of the killed process
		slot = 1 - slot
	}
	i.fleet.deactivate()
	at := time.Now()
	p.signal(syscall.SIGKILL)
	if err := p.awaitEnd(); err != nil {
		return false, err
	}
	_, err = i.fleet.startIn(slot, at)
	return true, err
}

func (i *injector) terminate(context.Context, *rand.Rand) (bool, error) {
	p, err := i.target()
	if err != nil {
		return false, err
	}
	i.fleet.deactivate()
	at := time.Now()
	p.signal(syscall.SIGTERM)
	if err := p.awaitEnd(); err != nil {
		return false, err
	}
	_, err = i.fleet.startIn(p.slot, at)
	return true, err
}

// replace starts the successor before it sends SIGTERM to the old process.
func (i *injector) replace(context.Context, *rand.Rand) (bool, error) {
	p, err := i.target()
	if err != nil {
		return false, err
	}
	successor, err := i.fleet.startIn(1-p.slot, time.Now())
	if err != nil {
		return false, err
	}
	successor.since.Store(time.Now().UnixNano())
	p.signal(syscall.SIGTERM)
	return true, p.awaitEnd()
}

func (i *injector) pause(_ context.Context, random *rand.Rand) (bool, error) {
	p, err := i.target()
	if err != nil {
		return false, err
	}
	p.signal(syscall.SIGSTOP)
	wait(30*time.Millisecond + time.Duration(random.Int64N(int64(500*time.Millisecond))))
	p.signal(syscall.SIGCONT)
	return true, nil
}

// pauseUntilDeclaredDead stops a process until its successor declares it dead and takes over its turns, then resumes
// it. Now both processes consider themselves the owner, and the old one has to find out by itself that it is not. The
// result is true only if all of that happened.
func (i *injector) pauseUntilDeclaredDead(context.Context, *rand.Rand) (bool, error) {
	p, err := i.target()
	if err != nil {
		return false, err
	}
	p.signal(syscall.SIGSTOP)
	successor, err := i.fleet.startIn(1-p.slot, time.Now())
	if err != nil {
		return false, err
	}
	declared := successor.declaresDead(p)
	p.signal(syscall.SIGCONT)
	if !declared {
		p.signal(syscall.SIGTERM)
		return false, p.awaitEnd()
	}
	if err := p.awaitEnd(); err != nil {
		i.notes.violation(brokenOrder, "%s was declared dead: %v", p.log, err)
		return false, err
	}
	return true, nil
}

// declaresDead reports whether the process declares another one dead within deadAfter. It ignores declarations about
// third nodes.
func (p *process) declaresDead(other *process) bool {
	late := time.After(deadAfter)
	for {
		select {
		case node := <-p.dead:
			if node == other.node.Load() {
				return true
			}
		case <-late:
			return false
		}
	}
}

func (i *injector) stopPostgres(ctx context.Context, random *rand.Rand) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	i.mu.Lock()
	i.crashes = append(i.crashes, span{time.Now(), time.Now().Add(storeTimeout)})
	i.mu.Unlock()
	if err := i.postgres.StopAtOnce(ctx); err != nil {
		return false, err
	}
	wait(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
	err := i.postgres.Start(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.crashes[len(i.crashes)-1].to = time.Now()
	return true, err
}

func (i *injector) freezePostgres(_ context.Context, random *rand.Rand) (bool, error) {
	if err := i.postgres.Pause(); err != nil {
		return false, err
	}
	wait(50*time.Millisecond + time.Duration(random.Int64N(int64(600*time.Millisecond))))
	return true, i.postgres.Resume()
}

// cut waits up to cutTimeout for a reply that it can cut; an idle service gets no replies.
func cut(kind pgtest.Cut) func(*injector, context.Context, *rand.Rand) (bool, error) {
	return func(i *injector, _ context.Context, _ *rand.Rand) (bool, error) {
		select {
		case <-i.cutter.Arm(kind):
			return true, nil
		case <-time.After(cutTimeout):
			i.cutter.Disarm(kind)
			return false, nil
		}
	}
}

func (i *injector) cutAll(context.Context, *rand.Rand) (bool, error) {
	return i.cutter.Cut() > 0, nil
}

func (i *injector) resetModel(context.Context, *rand.Rand) (bool, error) {
	return i.model.Cut() > 0, nil
}

func (i *injector) stopRedis(ctx context.Context, random *rand.Rand) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := i.redis.Kill(); err != nil {
		return false, err
	}
	i.recordOutage(random, true)
	return true, i.redis.Start(ctx)
}

func (i *injector) freezeRedis(_ context.Context, random *rand.Rand) (bool, error) {
	if err := i.redis.Pause(); err != nil {
		return false, err
	}
	i.recordOutage(random, false)
	return true, i.redis.Resume()
}

// recordOutage waits while the limiter is unreachable, and records the outage.
func (i *injector) recordOutage(random *rand.Rand, forgets bool) {
	wait(settleAfter)
	from := i.clock()
	wait(50*time.Millisecond + time.Duration(random.Int64N(int64(250*time.Millisecond))))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.outages = append(i.outages, outage{from, i.clock(), forgets})
}

// wait waits while a fault lasts.
func wait(d time.Duration) { <-time.After(d) }

// injected returns the faults since the last call of take.
func (i *injector) injected() []fault {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.faults)
}

// take returns the faults and outages since the last call.
func (i *injector) take() ([]fault, []outage) {
	i.mu.Lock()
	defer i.mu.Unlock()
	faults, outages := i.faults, i.outages
	i.faults, i.outages = nil, nil
	return faults, outages
}
