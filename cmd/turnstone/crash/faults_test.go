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

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/persistence/pgtest"
	"turnstone/providers/embedded"
)

const (
	storePatience = 30 * time.Second // for a store to stop and start
	cutPatience   = 400 * time.Millisecond
	deadAfter     = 6 * time.Second       // by then a silent node was declared dead and its turns were taken over
	settleAfter   = 20 * time.Millisecond // after this a signal has surely reached a store's process
)

// fault is one that was injected while the service worked.
type fault struct {
	Kind  string        `json:"kind"`
	At    time.Duration `json:"at"`
	Until time.Duration `json:"until"`
}

// outage is a time in which the limiter could not be reached.
type outage struct {
	From, To time.Duration
	Forgets  bool // the counters are gone afterwards
}

// injector breaks things, in two lanes that do not know of each other: processes and the database, one at a time; lines
// and the limiter, one at a time.
type injector struct {
	fleet    *fleet
	postgres *embedded.Postgres
	redis    *embedded.Redis
	cutter   *pgtest.Cutter
	model    *relay
	notes    *notes
	clock    func() time.Duration

	mu      sync.Mutex
	faults  []fault  // guarded by mu
	outages []outage // guarded by mu
	crashes []span   // guarded by mu: of Postgres
}

// span is a time by the clock of the machine, which the service's log has too.
type span struct{ from, to time.Time }

// crashed says whether Postgres crashed, or may have, in a time.
func (i *injector) crashed(from, to time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(i.crashes, func(s span) bool { return s.to.After(from) && s.from.Before(to) })
}

// way is a fault with how often it is chosen. inject reports whether it happened to a service at work; an error ends the
// run.
type way struct {
	name   string
	weight int
	inject func(*injector, context.Context, *rand.Rand) (bool, error)
}

// lane is a sequence of faults with pauses between them.
type lane struct {
	name        string
	least, most time.Duration // of a pause
	ways        []way
}

var lanes = []lane{
	{"processes", 100 * time.Millisecond, 700 * time.Millisecond, []way{
		{"kill -9", 30, (*injector).kill},
		{"SIGTERM, then a start", 8, (*injector).terminate},
		{"SIGTERM beside a successor", 8, (*injector).replace},
		{"SIGSTOP and SIGCONT", 30, (*injector).pause},
		{"SIGSTOP until taken over, SIGCONT", 2, (*injector).bury},
		{"Postgres stopped at once", 16, (*injector).stopPostgres},
		{"Postgres frozen", 6, (*injector).freezePostgres},
	}},
	{"lines", 20 * time.Millisecond, 180 * time.Millisecond, []way{
		{"answer to COMMIT cut", 34, cut(pgtest.Commit)},
		{"answer to a statement cut", 30, cut(pgtest.Statement)},
		{"all lines to Postgres cut", 5, (*injector).cutAll},
		{"model connections reset", 21, (*injector).resetModel},
		{"Redis stopped", 4, (*injector).stopRedis},
		{"Redis frozen", 6, (*injector).freezeRedis},
	}},
}

// only are the ways that -crash.only names.
func only(ways []way) []way {
	wanted := regexp.MustCompile(*crashOnly)
	return slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return !wanted.MatchString(w.name) })
}

// owedShare is how many of a lane's faults, one in so many, are taken from those that a round has not had yet.
const owedShare = 3

// run injects faults until ctx ends; then everything is running again. Each kind is injected at least once: a fault that
// found nothing to break is repeated, and kinds that are still missing when ctx ends follow until overtime ends.
func (i *injector) run(ctx, overtime context.Context, l lane, random *rand.Rand) error {
	sum := 0
	for _, w := range l.ways {
		sum += w.weight
	}
	owed := random.Perm(len(l.ways))
	for {
		wait := l.least + time.Duration(random.Int64N(int64(l.most-l.least)))
		drawn, pay := random.IntN(sum), random.IntN(owedShare) == 0
		inner := rand.New(rand.NewPCG(random.Uint64(), 0)) // so that what one fault draws does not move the next
		if ctx.Err() != nil || sitetest.Pause(ctx, wait) != nil {
			if len(owed) == 0 || overtime.Err() != nil || sitetest.Pause(overtime, wait) != nil {
				return nil
			}
			pay = true
		}
		next := 0
		for ; drawn >= l.ways[next].weight; next++ {
			drawn -= l.ways[next].weight
		}
		if pay && len(owed) > 0 {
			next = owed[0]
		}
		happened, err := i.once(ctx, l.ways[next], inner)
		if err != nil {
			return fmt.Errorf("%s: %w", l.ways[next].name, err)
		}
		if at := slices.Index(owed, next); at >= 0 {
			owed = slices.Delete(owed, at, at+1)
			if !happened {
				owed = append(owed, next)
			}
		}
	}
}

func (i *injector) once(ctx context.Context, w way, random *rand.Rand) (happened bool, err error) {
	f := fault{Kind: w.name, At: i.clock()}
	if happened, err = w.inject(i, ctx, random); err != nil || !happened {
		return happened, err
	}
	f.Until = i.clock()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = append(i.faults, f)
	return true, nil
}

// victim is the process that serves. One that ended although nobody asked is a finding, and gets a successor.
func (i *injector) victim() (*process, error) {
	p := i.fleet.serving()
	if !p.ended() {
		return p, nil
	}
	i.notes.violation(diedAlone, "%s: %s", p.log, p.cmd.ProcessState)
	i.fleet.leave()
	return i.fleet.startIn(p.slot, time.Now())
}

func (i *injector) kill(_ context.Context, random *rand.Rand) (bool, error) {
	p, err := i.victim()
	if err != nil {
		return false, err
	}
	slot := p.slot
	if random.IntN(8) == 0 { // whoever follows knows nothing of the dead one
		slot = 1 - slot
	}
	i.fleet.leave()
	at := time.Now()
	p.signal(syscall.SIGKILL)
	if err := p.awaitEnd(); err != nil {
		return false, err
	}
	_, err = i.fleet.startIn(slot, at)
	return true, err
}

func (i *injector) terminate(context.Context, *rand.Rand) (bool, error) {
	p, err := i.victim()
	if err != nil {
		return false, err
	}
	i.fleet.leave()
	at := time.Now()
	p.signal(syscall.SIGTERM)
	if err := p.awaitEnd(); err != nil {
		return false, err
	}
	_, err = i.fleet.startIn(p.slot, at)
	return true, err
}

// replace lets the successor serve before the old process is asked to end.
func (i *injector) replace(context.Context, *rand.Rand) (bool, error) {
	p, err := i.victim()
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
	p, err := i.victim()
	if err != nil {
		return false, err
	}
	p.signal(syscall.SIGSTOP)
	rest(30*time.Millisecond + time.Duration(random.Int64N(int64(500*time.Millisecond))))
	p.signal(syscall.SIGCONT)
	return true, nil
}

// bury stops a process so long that its successor declares it dead and takes its turns; then it wakes up, two processes
// take themselves for the owner, and the old one has to find out by itself. It happened only when all of that did.
func (i *injector) bury(context.Context, *rand.Rand) (bool, error) {
	p, err := i.victim()
	if err != nil {
		return false, err
	}
	p.signal(syscall.SIGSTOP)
	successor, err := i.fleet.startIn(1-p.slot, time.Now())
	if err != nil {
		return false, err
	}
	declared, alone := successor.declaresDead(p), false
	p.signal(syscall.SIGCONT)
	select {
	case <-p.done:
		alone = true
	case <-time.After(deadAfter):
		if declared {
			i.notes.violation(brokenOrder, "%s was declared dead and does not end", p.log)
		}
		p.signal(syscall.SIGTERM)
	}
	return declared && alone, p.awaitEnd()
}

// declaresDead reports whether the process declares another one dead. It may take turns of yet another one meanwhile.
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
	defer cancel()
	i.mu.Lock()
	i.crashes = append(i.crashes, span{time.Now(), time.Now().Add(storePatience)})
	i.mu.Unlock()
	if err := i.postgres.StopAtOnce(ctx); err != nil {
		return false, err
	}
	rest(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
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
	rest(50*time.Millisecond + time.Duration(random.Int64N(int64(600*time.Millisecond))))
	return true, i.postgres.Resume()
}

// cut waits a moment for an answer to cut; when the service does not work there is none.
func cut(kind pgtest.Cut) func(*injector, context.Context, *rand.Rand) (bool, error) {
	return func(i *injector, _ context.Context, _ *rand.Rand) (bool, error) {
		select {
		case <-i.cutter.Arm(kind):
			return true, nil
		case <-time.After(cutPatience):
			i.cutter.Disarm(kind)
			return false, nil
		}
	}
}

func (i *injector) cutAll(context.Context, *rand.Rand) (bool, error) {
	return i.cutter.CutAll() > 0, nil
}

func (i *injector) resetModel(context.Context, *rand.Rand) (bool, error) {
	return i.model.cut() > 0, nil
}

func (i *injector) stopRedis(ctx context.Context, random *rand.Rand) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
	defer cancel()
	if err := i.redis.Kill(); err != nil {
		return false, err
	}
	i.away(random, true)
	return true, i.redis.Start(ctx)
}

func (i *injector) freezeRedis(_ context.Context, random *rand.Rand) (bool, error) {
	if err := i.redis.Pause(); err != nil {
		return false, err
	}
	i.away(random, false)
	return true, i.redis.Resume()
}

// away is a time without the limiter.
func (i *injector) away(random *rand.Rand, forgets bool) {
	rest(settleAfter)
	from := i.clock()
	rest(50*time.Millisecond + time.Duration(random.Int64N(int64(250*time.Millisecond))))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.outages = append(i.outages, outage{from, i.clock(), forgets})
}

// rest is how long a fault lasts.
func rest(d time.Duration) { <-time.After(d) }

// take answers what was injected since the last call.
func (i *injector) take() ([]fault, []outage) {
	i.mu.Lock()
	defer i.mu.Unlock()
	faults, outages := i.faults, i.outages
	i.faults, i.outages = nil, nil
	return faults, outages
}
