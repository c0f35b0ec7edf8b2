package chaos

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

var (
	chaosFor   = flag.Duration("chaos.for", 0, "repeat the faults for this time; 0: once")
	chaosNew   = flag.String("chaos.program", "", "path of the program that the nodes run; empty: built with the race detector")
	chaosOld   = flag.String("chaos.old", "", "path of the program of an earlier commit, with which the nodes start and to which every second deploy returns; empty: the same program")
	chaosTurns = flag.Int("chaos.turns", 16, "live turns at the same time")
)

const (
	pauseOfNode = 15 * time.Second
	joinRounds  = 3 // rounds of a new node, in which it moves no turn
)

// run is one run of TestCluster.
type run struct {
	*site
	*load
	figures map[string]*figure
}

// figure collects the pauses of the turns in one kind of fault.
type figure struct {
	faults int
	pauses []time.Duration
}

func TestCluster(t *testing.T) {
	program := sitetest.Standard
	if *chaosNew != "" {
		program = sitetest.Prebuilt(*chaosNew)
	}
	programs := []*sitetest.Build{program, program} // before and after a deploy
	if *chaosOld != "" {
		programs[0] = sitetest.Prebuilt(*chaosOld)
	}
	s := newSite(t, programs[0])
	r := &run{site: s, load: startLoad(t, s, *chaosTurns), figures: map[string]*figure{}}
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
				victim := r.busiest()
				r.kill(victim)
				r.stopped((victim + 1) % nodeCount)
				r.drain("drain", (victim+2)%nodeCount)
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
	r.checkLogs()
	r.checkTurns()
	r.report(time.Since(began))
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

// during performs a fault and waits until every live turn of a node has continued. It returns the longest pause of each of
// these turns, as its first reader saw it.
func (r *run) during(kind string, id uuid.UUID, fault func()) {
	r.t.Helper()
	victims := map[string]bool{}
	for _, turn := range r.liveTurns() {
		if turn.Owner != nil && *turn.Owner == id {
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
	fault()
	r.mu.Lock()
	for known := range before {
		before[known] = known.last
	}
	r.mu.Unlock()
	const more = 3 // events, so that the pause is over
	err := r.await(sitetest.Within(r.t, sitetest.HangGuard), func() bool {
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
	f := r.figures[kind]
	if f == nil {
		f = &figure{}
		r.figures[kind] = f
	}
	f.faults++
	r.mu.Lock()
	defer r.mu.Unlock()
	for known := range before {
		f.pauses = append(f.pauses, known.gap)
	}
}

// planned declares a fault to the ledgers of all accounts.
func (r *run) planned() (over func()) {
	var all []func()
	for _, u := range r.users {
		all = append(all, u.via[0].Ledger.Plan())
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

// kill kills a node. Its successor on the same data folder starts only when the other nodes have taken over its turns.
func (r *run) kill(i int) {
	r.t.Helper()
	over := r.planned()
	p, id := r.withdraw(i)
	r.during("kill -9", id, p.Kill)
	r.join(i)
	over()
}

// join starts a node, and checks that it takes no turn from the others.
func (r *run) join(i int) {
	r.t.Helper()
	before := map[uuid.UUID]owned{}
	for _, turn := range r.liveTurns() {
		before[turn.Turn] = turn
	}
	r.start(i)
	_, id := r.nodes[i].current()
	sitetest.Eventually(r.t, "the new node has completed some rounds", func() bool {
		rounds := query(r.site, pgx.RowTo[int64], `select renewals from nodes where node_id = $1`, id)
		return len(rounds) == 1 && rounds[0] >= joinRounds
	})
	for _, turn := range r.liveTurns() {
		was, known := before[turn.Turn]
		if known && was.Owner != nil && (turn.Owner == nil || *turn.Owner != *was.Owner || turn.Epoch != was.Epoch) {
			r.t.Errorf("a node joined, and turn %s moved: %+v, then %+v", turn.Turn, was, turn)
		}
	}
}

// stopped pauses a node for so long that the others take over its turns. When it continues, it must notice and end.
func (r *run) stopped(i int) {
	r.t.Helper()
	over := r.planned()
	p, id := r.withdraw(i)
	resumed := time.After(pauseOfNode)
	r.during("SIGSTOP 15 s", id, func() { r.signal(p, syscall.SIGSTOP) })
	<-resumed
	r.signal(p, syscall.SIGCONT)
	p.Exit()
	if !strings.Contains(p.Stderr(), "declared dead by others") {
		r.t.Errorf("the node that was paused did not notice that it was declared dead")
	}
	r.join(i)
	over()
}

// drain replaces a node as a deploy does.
func (r *run) drain(kind string, i int) {
	r.t.Helper()
	over := r.planned()
	p, id := r.withdraw(i)
	r.during(kind, id, func() {
		r.signal(p, syscall.SIGTERM)
		if code := p.Exit(); code != 0 {
			r.t.Errorf("the drained node ended with %d", code)
		}
	})
	r.join(i)
	over()
}

// checkTurns compares the durable logs of all turns with what their clients saw and were told.
func (r *run) checkTurns() {
	if live := r.liveTurns(); len(live) > 0 {
		r.t.Errorf("%d turns have not ended: %+v", len(live), live)
	}
	stale := query(r.site, pgx.RowTo[uuid.UUID], `
		select distinct turn_id from (
			select turn_id, epoch, max(epoch) over (partition by turn_id order by first_sequence) as newest from turn_events) e
		where epoch < newest`)
	if len(stale) > 0 {
		r.t.Errorf("events of an earlier owner follow those of a later one in %v", stale)
	}
	for _, known := range r.all {
		events := known.user.via[0].CheckTurn(r.t, known.turn, known.told...).Events
		if known.counted != len(events) {
			r.t.Errorf("%s has %d events, and its reader saw %d", known.turn, len(events), known.counted)
		}
	}
}

// report prints the figures, and checks that the run has proved something.
func (r *run) report(took time.Duration) {
	var commands, adopted int
	for _, known := range r.all {
		if len(known.told) > 0 {
			commands++
		}
	}
	adopted = len(query(r.site, pgx.RowTo[uuid.UUID], `select turn_id from turns where owner_epoch > 1`))
	r.t.Logf("%s, %d nodes, %d live turns: %d turns ended, %d of them after a takeover, %d acknowledged commands",
		took.Round(time.Second), nodeCount, r.turns, len(r.all), adopted, commands)
	for _, kind := range slices.Sorted(maps.Keys(r.figures)) {
		f := r.figures[kind]
		slices.Sort(f.pauses)
		r.t.Logf("%-15s %2d faults, %3d turns: pause p50 %s, p99 %s, max %s", kind, f.faults, len(f.pauses),
			quantile(f.pauses, 0.5), quantile(f.pauses, 0.99), quantile(f.pauses, 1))
		if len(f.pauses) == 0 {
			r.t.Errorf("%s hit no turn", kind)
		}
	}
	if adopted == 0 || commands == 0 || len(r.all) < 2*r.turns {
		r.t.Error("the run is too small to prove something")
	}
}

// quantile returns a quantile of sorted durations, to the millisecond.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	at := min(int(q*float64(len(sorted))), len(sorted)-1)
	return sorted[at].Round(time.Millisecond)
}
