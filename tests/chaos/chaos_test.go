package chaos

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/clock"
)

var (
	chaosFor   = flag.Duration("chaos.for", 0, "repeat the faults for this time; 0: a deploy, a kill, a pause and one other fault")
	chaosNew   = flag.String("chaos.program", "", "path of the program that the nodes run, whose times are judged; empty: built with the time limits of the tests")
	chaosOld   = flag.String("chaos.old", "", "path of the program of an earlier commit, with which the nodes start and to which every second deploy returns; empty: the same program")
	chaosOnly  = flag.String("chaos.only", "", "inject only the faults whose names match, besides deploys")
	chaosTurns = flag.Int("chaos.turns", 16, "live turns at the same time")
	chaosSeed  = flag.Uint64("chaos.seed", 0, "seed of every fault and of every choice of a client; 0: random")
)

// run is one run of TestCluster.
type run struct {
	*site
	*load
	random  *rand.Rand
	figures map[string]*figure
}

// figure collects the pauses of the turns in one kind of fault.
type figure struct {
	faults int
	pauses []time.Duration
}

func TestCluster(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	program := sitetest.Standard
	if *chaosNew != "" {
		program = sitetest.Prebuilt(*chaosNew)
	}
	programs := []*sitetest.Build{program, program} // before and after a deploy
	if *chaosOld != "" {
		programs[0] = sitetest.Prebuilt(*chaosOld)
	}
	s := newSite(t, programs[0])
	r := &run{site: s, load: startLoad(t, s, *chaosTurns, seed), random: rand.New(rand.NewPCG(seed, 0)), figures: map[string]*figure{}}
	r.warmUp()
	if *chaosOld != "" {
		s.site.Build = program
		s.site.Migrate(t) // while the nodes run
	}
	began := time.Now()
	for round := 0; round == 0 || time.Since(began) < *chaosFor; round++ {
		// The deploy of the first node comes before the other faults, so that they hit a cluster of two versions.
		for i, n := range s.nodes {
			n.program = programs[(round+1)%2]
			r.drain("rolling deploy", i)
			if i == 0 {
				r.inject()
			}
		}
		if failed := r.failures(); len(failed) > 0 {
			break
		}
	}
	r.load.finish()
	for _, failed := range r.failures() {
		t.Error(failed)
	}
	r.checkDoubled()
	r.awaitRest()
	for _, w := range r.writers {
		w.checkFeed(t)
	}
	r.checkTurns()
	r.checkStored()
	r.report(time.Since(began))
	if *chaosNew != "" {
		r.checkTimes()
	}
}

// faults are what happens to the nodes, except for deploys. A short run has the first two and one of the others.
var faults = []struct {
	name string
	do   func(*run)
}{
	{"kill", func(r *run) { r.kill(r.busiest()) }},
	{"pause", func(r *run) { r.stop(r.busiest()) }},
	{"drain", func(r *run) { r.drain("drain", r.busiest()) }},
	{"kill during a drain", func(r *run) { r.killDuringDrain(r.busiest()) }},
	{"kill two", (*run).killTwo},
	{"stutter", func(r *run) { r.stutter(r.busiest()) }},
	{"without Postgres", func(r *run) { r.withoutPostgres(r.busiest()) }},
	{"without Redis", func(r *run) { r.withoutRedis(r.busiest()) }},
	{"without peers", func(r *run) { r.withoutPeers(r.busiest()) }},
	{"partition", (*run).partition},
	{"certificates", (*run).rotateCertificates},
	{"restart of Postgres", (*run).restartPostgres},
	{"failover", (*run).failover},
	{"flush of Redis", (*run).flushRedis},
	{"restart of Redis", (*run).restartRedis},
	{"read-only Redis", (*run).demoteRedis},
}

// inject injects the faults of a round, one after the other.
func (r *run) inject() {
	const always = 2
	order := r.random.Perm(len(faults))
	switch {
	case *chaosOnly != "":
		only := regexp.MustCompile(*chaosOnly)
		order = slices.DeleteFunc(order, func(i int) bool { return !only.MatchString(faults[i].name) })
	case *chaosFor == 0:
		order = []int{0, 1, always + r.random.IntN(len(faults)-always)}
	}
	for _, i := range order {
		faults[i].do(r)
	}
}

// warmUp waits until all turns are live, spread over the nodes.
func (r *run) warmUp() {
	sitetest.Eventually(r.t, "every node runs turns", func() bool {
		owners := map[uuid.UUID]int{}
		for _, turn := range r.liveTurns() {
			if turn.Owner != nil {
				owners[*turn.Owner]++
			}
		}
		return len(owners) == nodeCount
	})
}

// busiest returns the node that runs the most turns.
func (r *run) busiest() (most int) {
	turns := map[uuid.UUID]int{}
	for _, turn := range r.liveTurns() {
		if turn.Owner != nil {
			turns[*turn.Owner]++
		}
	}
	for i, n := range r.nodes {
		_, id := n.current()
		if _, best := r.nodes[most].current(); turns[id] > turns[best] {
			most = i
		}
	}
	return most
}

// during performs a fault and waits until every live turn of the nodes has continued. It records the longest pause of each of
// these turns, as its readers saw it.
func (r *run) during(kind string, fault func(), nodes ...uuid.UUID) {
	r.t.Helper()
	victims := map[string]bool{}
	for _, turn := range r.liveTurns() {
		if turn.Owner != nil && slices.Contains(nodes, *turn.Owner) {
			victims[protocol.TurnID(turn.Turn).String()] = true
		}
	}
	before := map[*record]int64{}
	r.mu.Lock()
	for name := range victims {
		if known := r.load.live[name]; known != nil {
			before[known], known.gap = 0, 0
		}
	}
	r.mu.Unlock()
	r.t.Logf("%s: %s", time.Now().Format(time.StampMilli), kind)
	fault()
	r.mu.Lock()
	for known := range before {
		before[known] = known.last
	}
	r.mu.Unlock()
	r.proceed(kind, before)
	f := r.figures[kind]
	if f == nil {
		f = &figure{}
		r.figures[kind] = f
	}
	f.faults++
	r.mu.Lock()
	defer r.mu.Unlock()
	for known := range before {
		if known.approval == nil { // a turn that waits for its user has no events to show
			f.pauses = append(f.pauses, known.gap)
		}
	}
}

// proceed waits until each turn has some more events than before, or has ended. It does not wait once a client has found a violation,
// after which its turn has no reader.
func (r *run) proceed(kind string, before map[*record]int64) {
	r.t.Helper()
	const more = 3
	err := r.await(sitetest.Within(r.t, sitetest.HangGuard), func() bool {
		if len(r.load.failed) > 0 {
			return true
		}
		for known, last := range before {
			if known.last < last+more && known.end == nil {
				return false
			}
		}
		return true
	})
	if err != nil {
		r.t.Fatalf("%s: not all of %d turns have continued: %v", kind, len(before), err)
	}
}

// quiet waits until every live turn has continued, while no fault is planned: from now on, every refusal is a finding.
func (r *run) quiet() {
	r.t.Helper()
	before := map[*record]int64{}
	r.mu.Lock()
	for _, known := range r.load.live {
		before[known] = known.last
	}
	r.mu.Unlock()
	r.proceed("after the fault", before)
}

// kill kills a node. Its successor on the same data folder starts only when the other nodes have taken over its turns.
func (r *run) kill(i int) {
	r.t.Helper()
	over := r.nodes[i].plan()
	p, id := r.nodes[i].current()
	r.during("kill -9", p.Kill, id)
	r.join(i)
	over()
	r.quiet()
}

// killTwo kills two nodes at once. The third one takes over the turns of both.
func (r *run) killTwo() {
	r.t.Helper()
	left := r.random.IntN(nodeCount)
	var overs []func()
	var processes []*sitetest.Process
	var ids []uuid.UUID
	var killed []int
	for i, n := range r.nodes {
		if i == left {
			continue
		}
		overs = append(overs, n.plan())
		p, id := n.current()
		killed, processes, ids = append(killed, i), append(processes, p), append(ids, id)
	}
	r.during("two killed", func() {
		for _, p := range processes {
			p.Kill()
		}
	}, ids...)
	for k, i := range killed {
		r.join(i)
		overs[k]()
	}
	r.quiet()
}

// join starts a node, and checks that it takes no turn from the others.
func (r *run) join(i int) {
	r.t.Helper()
	const rounds = 3 // of the new node, in which it moves no turn
	before := map[uuid.UUID]owned{}
	for _, turn := range r.liveTurns() {
		before[turn.Turn] = turn
	}
	r.start(i)
	_, id := r.nodes[i].current()
	sitetest.Eventually(r.t, "the new node has completed some rounds", func() bool {
		done := query(r.site, pgx.RowTo[int64], `select renewals from nodes where node_id = $1`, id)
		return len(done) == 1 && done[0] >= rounds
	})
	for _, turn := range r.liveTurns() {
		was, known := before[turn.Turn]
		if known && was.Owner != nil && turn.Owner != nil && (*turn.Owner != *was.Owner || turn.Epoch != was.Epoch) {
			r.t.Errorf("a node joined, and turn %s moved: %+v, then %+v", turn.Turn, was, turn)
		}
	}
}

// stop pauses a node for so long that the others take over its turns. When it continues, it must notice and end.
func (r *run) stop(i int) {
	r.t.Helper()
	const stopped = 15 * time.Second
	n := r.nodes[i]
	over := n.plan()
	p, id := n.current()
	resumed := time.After(stopped)
	r.during("SIGSTOP 15 s", func() {
		p.Signal(syscall.SIGSTOP)
		n.withdraw()
	}, id)
	<-resumed
	p.Signal(syscall.SIGCONT)
	r.replaceDead(i)
	over()
	r.quiet()
}

// replaceDead waits until a node has noticed that the others have declared it dead, and starts its successor.
func (r *run) replaceDead(i int) {
	r.t.Helper()
	p, _ := r.nodes[i].current()
	p.Exit()
	if !strings.Contains(p.Stderr(), "declared dead by others") {
		r.t.Errorf("%s did not notice that it was declared dead", r.nodes[i].name)
	}
	r.join(i)
}

// stutter stops a node for half of the time. It may lose its turns or not, but it recovers.
func (r *run) stutter(i int) {
	r.t.Helper()
	const steps, step = 40, 200 * time.Millisecond
	over := r.nodes[i].plan()
	p, id := r.nodes[i].current()
	r.during("stopped half of the time", func() {
		ticker := time.NewTicker(step)
		defer ticker.Stop()
		for n := range steps {
			p.Signal([]syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT}[n%2])
			<-ticker.C
		}
		p.Signal(syscall.SIGCONT)
	}, id)
	if p.HasEnded() {
		r.replaceDead(i)
	}
	over()
	r.quiet()
}

// withoutPostgres cuts a node off from Postgres: nothing that it sends arrives. The others take over its turns. A node that is not
// ready gets no more requests, as behind a load balancer.
func (r *run) withoutPostgres(i int) {
	r.t.Helper()
	n := r.nodes[i]
	over := n.plan()
	_, id := n.current()
	repair := n.postgres.Kill()
	r.during("no Postgres", func() {
		sitetest.Eventually(r.t, n.name+" is not ready", func() bool { status, _ := sitetest.Readiness(r.t, n.internal); return status != http.StatusOK })
		n.withdraw()
	}, id)
	repair()
	r.replaceDead(i)
	over()
	r.quiet()
}

// last lets a fault last for a while.
func (r *run) last() { _ = clock.Sleep(r.t.Context(), 5*time.Second) } // the test has ended otherwise

// withoutRedis cuts a node off from Redis: it refuses what it cannot limit, and its turns continue.
func (r *run) withoutRedis(i int) {
	r.t.Helper()
	n := r.nodes[i]
	over := n.plan()
	_, id := n.current()
	repair := n.redis.Kill()
	r.during("no Redis", r.last, id)
	repair()
	r.awaitReady(n)
	over()
	r.quiet()
}

// withoutPeers cuts the connections of the other nodes to a node. Its turns continue, and so do the readers on other nodes; commands
// that reach another node have to wait.
func (r *run) withoutPeers(i int) {
	r.t.Helper()
	var overs []func()
	for k, n := range r.nodes {
		overs = append(overs, n.commands.Plan())
		if k == i {
			overs = append(overs, n.others.Plan())
		}
	}
	_, id := r.nodes[i].current()
	repair := r.nodes[i].peers.Kill()
	r.during("not reached by its peers", r.last, id)
	repair()
	for _, over := range overs {
		over()
	}
	r.quiet()
}

// drain replaces a node as a deploy does.
func (r *run) drain(kind string, i int) {
	r.t.Helper()
	over := r.nodes[i].plan()
	p, id := r.nodes[i].current()
	r.during(kind, func() {
		p.Signal(syscall.SIGTERM)
		if code := p.Exit(); code != 0 {
			r.t.Errorf("the drained node ended with %d", code)
		}
	}, id)
	r.join(i)
	over()
	r.quiet()
}

// killDuringDrain kills a node while it drains.
func (r *run) killDuringDrain(i int) {
	r.t.Helper()
	over := r.nodes[i].plan()
	p, id := r.nodes[i].current()
	r.during("kill during a drain", func() {
		p.Signal(syscall.SIGTERM)
		p.AwaitLog("draining")
		_ = clock.Sleep(r.t.Context(), time.Duration(r.random.Int64N(int64(time.Second)))) // the kill comes at any moment
		p.Kill()
	}, id)
	r.join(i)
	over()
	r.quiet()
}
