package actors

import (
	"runtime"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"turnstone/protocol"
)

// How turns are paced; ADR 9 tells by which measurements.
const (
	// paceGrid is the grid on which text is taken from the models while a node is busy, so that turns decide together and
	// their appends share a statement.
	paceGrid = 10 * time.Millisecond
	// paceFrom is the number of decisions a second and processor from which the grid holds: below, text is shown at once.
	paceFrom = 500
	// paceSpread is the number of decisions a second and processor from which a turn decides less often than its model
	// speaks: one chunk takes several tokens then.
	paceSpread = 3000
	// paceStep is how much less often, for each decision above paceSpread.
	paceStep = 12 * time.Microsecond
	// paceSpreadMost is the longest time that a turn lets pass before it decides on the text that comes next: two tokens of
	// a model that speaks at 30 a second.
	paceSpreadMost = 40 * time.Millisecond
	// paceMost bounds how long text waits for more of it, and with the grid what pacing adds to the delay of a token.
	paceMost = 50 * time.Millisecond

	paceWindow = 50 * time.Millisecond // over which decisions are counted
	paceSlots  = int64(paceMost/paceGrid) + 2
)

// pacer lets the turns of a busy node decide about text together, and seldom enough that the node keeps up. It is asked
// before a decision about nothing but more text of a part that readers see already; what else happens in a turn is
// decided at once, and takes along the text that waits.
//
// Nothing waits longer than paceMost and the grid. On a quiet node nothing waits at all, and no timer runs.
type pacer struct {
	send func(to *actor.PID, message any)
	cpus float64

	mu      sync.Mutex
	origin  time.Time
	slots   [paceSlots][]pacedTurn // guarded by mu: by grid point
	next    int64                  // guarded by mu: the first grid point that was not served
	waiting int                    // guarded by mu
	timer   *time.Timer            // guarded by mu: set while somebody waits
	since   time.Time              // guarded by mu: when the window began
	count   int                    // guarded by mu: of the window
	rate    float64                // guarded by mu: decisions a second and processor
}

// pacedTurn is a turn that waits; one without a pid has been given an earlier point.
type pacedTurn struct {
	pid   *actor.PID
	place int
}

// seat is where a turn waits. Text that comes from early on is reason enough to hasten.
type seat struct {
	point int64
	index int
	early time.Time // zero: it is as early as can be
}

// paced comes back to an actor that waited for its place.
type paced struct{ place int }

func newPacer(send func(*actor.PID, any)) *pacer {
	now := time.Now()
	return &pacer{send: send, cpus: float64(runtime.GOMAXPROCS(0)), origin: now, since: now}
}

// wait says whether a turn that decided last at some time has to wait; it gets paced{place} then. A turn that has decided
// a while ago goes with the others at the next point of the grid. One that has just decided waits for more text, so that
// the text that came last waits least: see hasten.
func (p *pacer) wait(pid *actor.PID, place int, last time.Time) (s seat, waits bool) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.measure(now)
	if p.rate < paceFrom {
		return seat{}, false
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
	s.index = p.seat(s.point, pacedTurn{pid, place})
	return s, true
}

// seat is called under mu.
func (p *pacer) seat(point int64, turn pacedTurn) (index int) {
	slot := &p.slots[point%paceSlots]
	*slot = append(*slot, turn)
	p.waiting++
	return len(*slot) - 1
}

// hasten lets a turn that waits go at the next point of the grid.
func (p *pacer) hasten(pid *actor.PID, place int, s seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := p.slots[s.point%paceSlots]
	if s.point <= p.next || s.index >= len(slot) || slot[s.index] != (pacedTurn{pid, place}) {
		return // it goes then anyhow, or has gone
	}
	slot[s.index].pid = nil
	p.seat(p.next, pacedTurn{pid, place})
}

// measure counts a decision.
func (p *pacer) measure(now time.Time) {
	p.count++
	took := now.Sub(p.since)
	if took < paceWindow {
		return
	}
	rate := float64(p.count) / took.Seconds() / p.cpus
	if took < 2*paceWindow { // else it was quiet meanwhile
		rate = (p.rate + rate) / 2
	}
	p.rate, p.count, p.since = rate, 0, now
}

func (p *pacer) arm(now time.Time) {
	left := p.origin.Add(time.Duration(p.next) * paceGrid).Sub(now)
	if p.timer == nil {
		p.timer = time.AfterFunc(left, p.serve)
		return
	}
	p.timer.Reset(left)
}

// serve wakes the turns whose place has come.
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
		p.send(turn.pid, paced{turn.place})
	}
}

// showing says whether readers see a part to which more text can come.
func (m *turnMachine) showing() bool { return m.state == protocol.TurnRunning && !m.open.IsZero() }

// openKind is what the model says while the open part is written.
func (m *turnMachine) openKind() ChunkKind {
	if m.openType == protocol.PartReasoning {
		return ChunkReasoning
	}
	return ChunkText
}

// onlyText says whether a decision is nothing but more text of one part.
func onlyText(d *decision) bool {
	if len(d.events) != 1 || len(d.records) > 0 || len(d.effects) > 0 || d.ending != nil {
		return false
	}
	switch d.events[0].(type) {
	case *protocol.AnswerDelta, *protocol.CodeDelta, *protocol.ReasoningDelta:
		return true
	}
	return false
}
