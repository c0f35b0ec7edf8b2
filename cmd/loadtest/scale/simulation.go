package scale

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Site is what is simulated: live turns, spread evenly over nodes that share one Postgres.
type Site struct {
	Turns        int
	Nodes        int
	NodeCPUs     int // of each node
	PostgresCPUs int
	// Shared means that the node, Postgres, the model and the readers run on the NodeCPUs processors of one node, as in
	// the benchmarks.
	Shared bool
	// Closed means that each turn appends again as soon as its append is stored, as in P5, instead of at the rate of a
	// model.
	Closed bool
}

// Result is what a simulation has measured after its warm-up.
type Result struct {
	Tokens, Events, Statements int
	P50, P99, Max              time.Duration // delay of a token, from when it was due until its reader has it
	Mean                       time.Duration
	InSystem                   float64 // tokens between due and read, averaged over the time
	NodeUse, PostgresUse       float64 // shares of their processors that are busy
	Measured                   time.Duration
}

// TokensPerEvent returns how many tokens share an event on average.
func (r *Result) TokensPerEvent() float64 { return float64(r.Tokens) / float64(max(r.Events, 1)) }

// RowsPerStatement returns how many appends share a statement on average.
func (r *Result) RowsPerStatement() float64 { return float64(r.Events) / float64(max(r.Statements, 1)) }

// The kinds of steps. A step happens at a time; its argument is a turn, an append, a node or a statement.
const (
	tokenDue  = iota // a turn's model has a token
	taskDone         // a processor has ended a task
	gridDue          // a node wakes the turns of a grid point
	waitDone         // the journal of a node has waited
	flushDone        // the log was written
)

// The kinds of tasks of processors.
const (
	emit      = iota // the model sends a token: turn
	accept           // a node takes a token: turn
	submit           // a node encodes an event: append
	statement        // Postgres runs a statement
	deliver          // a node sends an event: append
	read             // the reader takes it: append
)

type step struct {
	at     time.Duration
	serial int64 // orders steps of the same time
	kind   int
	arg    int
}

type task struct {
	kind, arg int
	cost      time.Duration
}

// pool is the processors of a machine: tasks run in the order of their arrival, each to its end.
type pool struct {
	queue   []task
	running []task // by slot; the argument of taskDone names the pool and the slot
	idle    []int
	busy    time.Duration
}

type turn struct {
	node    int
	pending []time.Duration // due times of tokens that are in no event yet
	writing bool            // an append is in flight
	slot    int64           // the grid point for which it waits; -1: none
	early   time.Duration   // from then on, more text moves it up; 0: it already has its earliest slot
	decided time.Duration   // its last decision
}

type node struct {
	cpu     int // pool
	slots   [paceSlots][]int
	next    int64
	waiting int
	armed   bool
	since   time.Duration
	count   int
	rate    float64

	queue  []int // appends
	due    bool
	timing bool
	idle   int // writers
}

type entry struct {
	turn int
	dues []time.Duration
}

type batch struct {
	node    int
	appends []int
}

type simulation struct {
	site   Site
	costs  Costs
	random *rand.Rand
	now    time.Duration
	serial int64
	steps  []step // a heap

	pools      []pool
	postgres   int // pool
	turns      []turn
	nodes      []node
	appends    []entry
	freeAppend []int
	batches    []batch
	freeBatch  []int
	flushing   []int // statements whose flush is running
	toFlush    []int

	from     time.Duration // the end of the warm-up
	result   Result
	delays   []time.Duration
	inSystem int
	changed  time.Duration // when inSystem has changed
	area     float64       // of inSystem over time, in token seconds
}

// Simulate runs a site for a warm-up and a measured time. The same seed has the same result.
func Simulate(site Site, costs Costs, seed uint64, warmUp, measured time.Duration) Result {
	s := &simulation{site: site, costs: costs, random: rand.New(rand.NewPCG(seed, 1)), from: warmUp}
	s.build()
	end := warmUp + measured
	for len(s.steps) > 0 && s.steps[0].at <= end {
		next := s.pop()
		if s.now < warmUp && next.at >= warmUp {
			s.startMeasuring(warmUp)
		}
		s.now = next.at
		s.perform(next)
	}
	s.now = end
	s.count(0)
	return s.summary(measured)
}

func (s *simulation) build() {
	site := s.site
	for range site.Nodes {
		s.nodes = append(s.nodes, node{cpu: len(s.pools), idle: writers})
		s.pools = append(s.pools, newPool(site.NodeCPUs))
	}
	s.postgres = 0
	if !site.Shared {
		s.postgres = len(s.pools)
		s.pools = append(s.pools, newPool(site.PostgresCPUs))
	}
	s.turns = make([]turn, site.Turns)
	for i := range s.turns {
		s.turns[i] = turn{node: i % site.Nodes, slot: -1}
		s.schedule(time.Duration(s.random.Float64()*float64(s.interval())), tokenDue, i)
	}
}

func newPool(processors int) pool {
	p := pool{running: make([]task, processors), idle: make([]int, processors)}
	for i := range p.idle {
		p.idle[i] = i
	}
	return p
}

func (s *simulation) interval() time.Duration {
	return time.Duration(float64(time.Second) / s.costs.Rate)
}

// startMeasuring forgets what the warm-up has counted.
func (s *simulation) startMeasuring(at time.Duration) {
	s.now = at
	s.count(0)
	s.area, s.result, s.delays = 0, Result{}, nil
	for i := range s.pools {
		s.pools[i].busy = 0
	}
}

// count changes the number of tokens between due and read.
func (s *simulation) count(by int) {
	s.area += float64(s.inSystem) * (s.now - s.changed).Seconds()
	s.changed = s.now
	s.inSystem += by
}

func (s *simulation) summary(measured time.Duration) Result {
	r := s.result
	r.Measured = measured
	slices.Sort(s.delays)
	var sum time.Duration
	for _, d := range s.delays {
		sum += d
	}
	if n := len(s.delays); n > 0 {
		r.Tokens, r.P50, r.P99, r.Max, r.Mean = n, s.delays[n/2], s.delays[n*99/100], s.delays[n-1], sum/time.Duration(n)
	}
	r.InSystem = s.area / measured.Seconds()
	for i := range s.nodes {
		r.NodeUse += s.pools[s.nodes[i].cpu].busy.Seconds() / measured.Seconds() / float64(s.site.NodeCPUs*s.site.Nodes)
	}
	if !s.site.Shared {
		r.PostgresUse = s.pools[s.postgres].busy.Seconds() / measured.Seconds() / float64(s.site.PostgresCPUs)
	}
	return r
}

// schedule adds a step after a delay.
func (s *simulation) schedule(after time.Duration, kind, arg int) {
	s.serial++
	s.steps = append(s.steps, step{s.now + after, s.serial, kind, arg})
	for i := len(s.steps) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.steps[i].before(&s.steps[parent]) {
			break
		}
		s.steps[i], s.steps[parent] = s.steps[parent], s.steps[i]
		i = parent
	}
}

func (a *step) before(b *step) bool { return a.at < b.at || a.at == b.at && a.serial < b.serial }

// pop removes the next step.
func (s *simulation) pop() step {
	next, last := s.steps[0], len(s.steps)-1
	s.steps[0] = s.steps[last]
	s.steps = s.steps[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if s.steps[child].before(&s.steps[least]) {
				least = child
			}
		}
		if least == i {
			return next
		}
		s.steps[i], s.steps[least] = s.steps[least], s.steps[i]
		i = least
	}
}

// run gives a task to the processors of a pool.
func (s *simulation) run(at int, t task) {
	p := &s.pools[at]
	if len(p.idle) == 0 {
		p.queue = append(p.queue, t)
		return
	}
	slot := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	p.running[slot] = t
	s.schedule(t.cost, taskDone, at<<16|slot)
}

func (s *simulation) perform(next step) {
	switch next.kind {
	case tokenDue:
		s.tokenIsDue(next.arg)
	case taskDone:
		at, slot := next.arg>>16, next.arg&0xffff
		p := &s.pools[at]
		ended := p.running[slot]
		p.busy += ended.cost
		p.idle = append(p.idle, slot)
		if len(p.queue) > 0 {
			following := p.queue[0]
			p.queue = p.queue[1:]
			s.run(at, following)
		}
		s.taskEnded(ended)
	case gridDue:
		s.serveGrid(next.arg)
	case waitDone:
		n := &s.nodes[next.arg]
		n.timing, n.due = false, len(n.queue) > 0
		s.write(next.arg)
	case flushDone:
		s.flushed()
	}
}

func (s *simulation) taskEnded(t task) {
	switch t.kind {
	case emit:
		s.run(s.nodes[s.turns[t.arg].node].cpu, task{accept, t.arg, s.costs.TokenCPU})
	case accept:
		s.tokenArrived(t.arg)
	case submit:
		s.enqueue(t.arg)
	case statement:
		s.toFlush = append(s.toFlush, t.arg)
		s.flush()
	case deliver:
		if s.site.Shared && !s.site.Closed {
			s.run(s.postgres, task{read, t.arg, s.costs.LoadEventCPU})
			return
		}
		s.received(t.arg)
	case read:
		s.received(t.arg)
	}
}
