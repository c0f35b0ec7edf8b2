package turn

import (
	"runtime"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// The pacing of turns. ADR 9 gives the reasons for the values.
const (
	// paceGrid is the interval between the points in time at which the turns of a busy node decide on text, so that
	// turns decide together and their appends share a statement.
	paceGrid = 10 * time.Millisecond
	// paceFrom is the number of decisions per second and processor from which on turns wait for the grid. Below it,
	// text is shown at once.
	paceFrom = 500
	// paceSpread is the number of decisions per second and processor from which on a turn decides less often than its
	// model sends tokens, so that one chunk contains several tokens.
	paceSpread = 3000
	// paceStep is the increase of the interval between two decisions of a turn, for each decision per second and
	// processor above paceSpread.
	paceStep = 12 * time.Microsecond
	// paceSpreadMost is the maximum of that interval. With a model of 30 tokens per second, two tokens then share a
	// decision.
	paceSpreadMost = 40 * time.Millisecond
	// paceMost limits the time that text waits for more text. Pacing delays a token by at most paceMost plus paceGrid.
	paceMost = 50 * time.Millisecond

	paceWindow = 50 * time.Millisecond // the interval over which decisions are counted
	paceSlots  = int64(paceMost/paceGrid) + 2
)

// pacer makes the turns of a busy node decide on text together, and seldom enough that the node keeps up. The output of a
// turn consults it only if the next decision contains nothing but more text of a part that readers already see.
// Everything else is decided at once, together with the text that waits.
//
// Nothing waits longer than paceMost plus paceGrid. On a quiet node nothing waits, and no timer runs.
type pacer struct {
	send func(to *actor.PID, message any)
	cpus float64

	mu      sync.Mutex
	origin  time.Time
	slots   [paceSlots][]pacedTurn // guarded by mu: a ring, indexed by grid point modulo paceSlots
	next    int64                  // guarded by mu: the first grid point that was not served
	waiting int                    // guarded by mu: number of entries in slots
	timer   *time.Timer            // guarded by mu: armed while turns wait
	since   time.Time              // guarded by mu: start of the window
	count   int                    // guarded by mu: decisions in the window
	rate    float64                // guarded by mu: decisions per second and processor
}

// pacedTurn is an entry for a waiting turn. pid is nil after moveUp has moved the turn to an earlier grid point.
type pacedTurn struct {
	pid     *actor.PID
	request int
}

// pacerSlot is the slot of a waiting turn. When more text arrives at or after early, the turn's output calls moveUp.
type pacerSlot struct {
	point int64
	index int
	early time.Time // zero: the turn already has the earliest slot
}

// paced is the message to an actor whose slot has come. request is the number that the actor's output passed to wait.
type paced struct{ request int }

func newPacer(send func(*actor.PID, any)) *pacer {
	now := time.Now()
	return &pacer{send: send, cpus: float64(runtime.GOMAXPROCS(0)), origin: now, since: now}
}

// wait reports whether a turn has to wait; if so, its actor gets paced{request} later. last is the time of the turn's
// last decision. A turn that decided a while ago waits for the next grid point. A turn that has just decided waits for
// more text; moveUp shortens this wait when more text arrives, so that the newest text waits least.
func (p *pacer) wait(pid *actor.PID, request int, last time.Time) (s pacerSlot, waits bool) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.measure(now)
	if p.rate < paceFrom {
		return pacerSlot{}, false
	}
	due := now
	spread := min(paceSpreadMost, time.Duration((p.rate-paceSpread)*float64(paceStep)))
	if s.early = last.Add(spread); s.early.After(now) {
		due = now.Add(min(s.early.Sub(now)+spread, paceMost))
	} else {
		s.early = time.Time{}
	}
	if p.waiting == 0 {
		p.next = int64(now.Sub(p.origin)/paceGrid) + 1
		p.arm(now)
	}
	s.point = min(max(int64((due.Sub(p.origin)+paceGrid-1)/paceGrid), p.next), p.next+paceSlots-1)
	s.index = p.addEntry(s.point, pacedTurn{pid, request})
	return s, true
}

// addEntry adds a turn to a grid point and returns its index there. The caller holds mu.
func (p *pacer) addEntry(point int64, turn pacedTurn) (index int) {
	slot := &p.slots[point%paceSlots]
	*slot = append(*slot, turn)
	p.waiting++
	return len(*slot) - 1
}

// moveUp moves a waiting turn to the next grid point.
func (p *pacer) moveUp(pid *actor.PID, request int, s pacerSlot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := p.slots[s.point%paceSlots]
	if s.point <= p.next || s.index >= len(slot) || slot[s.index] != (pacedTurn{pid, request}) {
		return // the turn already waits for that point, or was woken
	}
	slot[s.index].pid = nil
	p.addEntry(p.next, pacedTurn{pid, request})
}

// measure counts a decision, and updates the rate at the end of a window. The caller holds mu.
func (p *pacer) measure(now time.Time) {
	p.count++
	took := now.Sub(p.since)
	if took < paceWindow {
		return
	}
	rate := float64(p.count) / took.Seconds() / p.cpus
	if took < 2*paceWindow { // otherwise the node was quiet in the meantime
		rate = (p.rate + rate) / 2
	}
	p.rate, p.count, p.since = rate, 0, now
}

// arm sets the timer to the next grid point. The caller holds mu.
func (p *pacer) arm(now time.Time) {
	left := p.origin.Add(time.Duration(p.next) * paceGrid).Sub(now)
	if p.timer == nil {
		p.timer = time.AfterFunc(left, p.serve)
		return
	}
	p.timer.Reset(left)
}

// serve wakes the turns whose grid point has passed.
func (p *pacer) serve() {
	p.mu.Lock()
	now := time.Now()
	var due []pacedTurn
	for reached := int64(now.Sub(p.origin) / paceGrid); p.next <= reached && p.waiting > 0; p.next++ {
		slot := &p.slots[p.next%paceSlots]
		p.waiting -= len(*slot)
		due = append(due, *slot...)
		clear(*slot)
		*slot = (*slot)[:0]
	}
	if p.waiting > 0 {
		p.arm(now)
	}
	p.mu.Unlock()
	for _, turn := range due {
		if turn.pid == nil {
			continue
		}
		p.send(turn.pid, paced{turn.request})
	}
}
