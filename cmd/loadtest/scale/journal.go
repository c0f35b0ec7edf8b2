package scale

import (
	"math"
	"time"
)

// tokenIsDue has a turn's model send a token.
func (s *simulation) tokenIsDue(id int) {
	t := &s.turns[id]
	t.pending = append(t.pending, s.now)
	s.count(1)
	switch {
	case s.site.Closed:
		s.decide(id)
		return
	case s.site.Shared:
		s.run(s.postgres, task{emit, id, s.costs.LoadTokenCPU})
	default:
		s.run(s.nodes[t.node].cpu, task{accept, id, s.costs.TokenCPU})
	}
	s.schedule(s.interval(), tokenDue, id)
}

// tokenArrived is the feed of a turn: the turn decides on its text, waits for a grid point, or has an append in flight.
func (s *simulation) tokenArrived(id int) {
	t := &s.turns[id]
	switch {
	case t.writing || len(t.pending) == 0:
	case t.slot < 0:
		s.pace(id)
	case t.early > 0 && s.now >= t.early:
		s.moveUp(id)
	}
}

// pace is the function wait of the pacer.
func (s *simulation) pace(id int) {
	t := &s.turns[id]
	n := &s.nodes[t.node]
	s.measure(n)
	if n.rate < paceFrom {
		s.decide(id)
		return
	}
	due := s.now
	spread := time.Duration(max(0, min(float64(paceSpreadMost), (n.rate-paceSpread)*float64(paceStep))))
	if t.early = t.decided + spread; t.early > s.now {
		due = s.now + min(t.early-s.now+spread, paceMost)
	} else {
		t.early = 0
	}
	if n.waiting == 0 {
		n.next = int64(s.now/paceGrid) + 1
	}
	t.slot = min(max(int64((due+paceGrid-1)/paceGrid), n.next), n.next+paceSlots-1)
	s.addToSlot(t.node, id)
}

func (s *simulation) addToSlot(at, id int) {
	n, t := &s.nodes[at], &s.turns[id]
	slot := &n.slots[t.slot%paceSlots]
	*slot = append(*slot, id)
	n.waiting++
	if !n.armed {
		n.armed = true
		s.schedule(max(0, time.Duration(n.next)*paceGrid-s.now), gridDue, at)
	}
}

func (s *simulation) moveUp(id int) {
	t := &s.turns[id]
	if n := &s.nodes[t.node]; t.slot > n.next {
		t.slot = n.next // its entry at the other point is skipped there
		s.addToSlot(t.node, id)
	}
	t.early = 0
}

// measure counts a decision, and updates the rate of a node at the end of a window.
func (s *simulation) measure(n *node) {
	n.count++
	took := s.now - n.since
	if took < paceWindow {
		return
	}
	rate := float64(n.count) / took.Seconds() / float64(s.site.NodeCPUs)
	if took < 2*paceWindow {
		rate = (n.rate + rate) / 2
	}
	n.rate, n.count, n.since = rate, 0, s.now
}

// serveGrid lets the turns of a grid point decide.
func (s *simulation) serveGrid(at int) {
	n := &s.nodes[at]
	point := n.next
	slot := n.slots[point%paceSlots]
	n.slots[point%paceSlots] = nil
	n.waiting -= len(slot)
	n.next++
	if n.armed = n.waiting > 0; n.armed {
		s.schedule(time.Duration(n.next)*paceGrid-s.now, gridDue, at)
	}
	for _, id := range slot {
		if s.turns[id].slot == point {
			s.turns[id].slot = -1
			s.decide(id)
		}
	}
}

// decide makes an event of the text that a turn has.
func (s *simulation) decide(id int) {
	t := &s.turns[id]
	t.decided, t.writing = s.now, true
	var at int
	if last := len(s.freeAppend) - 1; last >= 0 {
		at, s.freeAppend = s.freeAppend[last], s.freeAppend[:last]
	} else {
		at, s.appends = len(s.appends), append(s.appends, entry{})
	}
	e := &s.appends[at]
	e.turn = id
	e.dues, t.pending = t.pending, e.dues[:0]
	if s.site.Closed {
		s.enqueue(at)
		return
	}
	s.run(s.nodes[t.node].cpu, task{submit, at, s.costs.EventCPU / 2})
}

// enqueue gives an append to the journal of its node. On a busy node, appends wait for each other.
func (s *simulation) enqueue(at int) {
	id := s.turns[s.appends[at].turn].node
	n := &s.nodes[id]
	n.queue = append(n.queue, at)
	switch {
	case n.rate < paceFrom || len(n.queue) >= journalBatch:
		n.due = true
	case !n.due && !n.timing:
		n.timing = true
		s.schedule(journalWait, waitDone, id)
	}
	s.write(id)
}

// write lets the idle writers of a node take what waits.
func (s *simulation) write(id int) {
	n := &s.nodes[id]
	for n.due && n.idle > 0 && len(n.queue) > 0 {
		var at int
		if last := len(s.freeBatch) - 1; last >= 0 {
			at, s.freeBatch = s.freeBatch[last], s.freeBatch[:last]
		} else {
			at, s.batches = len(s.batches), append(s.batches, batch{})
		}
		b := &s.batches[at]
		rows := min(len(n.queue), journalBatch)
		b.node, b.appends = id, append(b.appends[:0], n.queue[:rows]...)
		n.queue = append(n.queue[:0], n.queue[rows:]...)
		n.due = len(n.queue) > 0
		n.idle--
		s.result.Statements++
		s.run(s.postgres, task{statement, at, s.costs.StatementCPU + time.Duration(rows)*s.costs.RowCPU})
	}
}

// flush writes the log for all statements that wait for it, unless a flush is running: those wait for the next one.
func (s *simulation) flush() {
	if len(s.flushing) > 0 || len(s.toFlush) == 0 {
		return
	}
	s.flushing, s.toFlush = s.toFlush, s.flushing[:0]
	took := time.Duration(-math.Log(1-s.random.Float64()) * float64(s.costs.Flush))
	s.schedule(took, flushDone, 0)
}

// flushed ends the statements whose log is on disk.
func (s *simulation) flushed() {
	ended := append([]int(nil), s.flushing...)
	s.flushing = s.flushing[:0]
	for _, at := range ended {
		b := &s.batches[at]
		for _, one := range b.appends {
			s.stored(one)
		}
		s.nodes[b.node].idle++
		s.freeBatch = append(s.freeBatch, at)
		s.write(b.node)
	}
	s.flush()
}

// stored shows an event, and lets its turn decide on what has arrived in the meantime.
func (s *simulation) stored(at int) {
	s.result.Events++
	id := s.appends[at].turn
	t := &s.turns[id]
	t.writing = false
	if s.site.Closed {
		s.received(at)
		s.tokenIsDue(id)
		return
	}
	s.run(s.nodes[t.node].cpu, task{deliver, at, s.costs.EventCPU / 2})
	s.tokenArrived(id)
}

// received ends the tokens of an event.
func (s *simulation) received(at int) {
	e := &s.appends[at]
	for _, due := range e.dues {
		s.delays = append(s.delays, s.now-due)
	}
	s.count(-len(e.dues))
	e.dues = e.dues[:0]
	s.freeAppend = append(s.freeAppend, at)
}
