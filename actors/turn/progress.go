package turn

import (
	"sync"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/foreign"
)

const (
	progressInterval = 250 * time.Millisecond // between two reports of a tool call
	maxProgressLabel = 200                    // bytes
)

// progressGate passes reports of the progress of a tool call on: at most one in each interval, and always the newest. Its
// methods may be called from any goroutine.
type progressGate struct {
	send func(label string, progress *protocol.Progress)

	mu       sync.Mutex
	sent     time.Time   // guarded by mu
	timer    *time.Timer // guarded by mu: set while a report waits
	label    string      // guarded by mu: of the report that waits
	progress *protocol.Progress
	closed   bool // guarded by mu
}

// report passes a report on, at once or at the end of the interval.
func (g *progressGate) report(label string, progress *protocol.Progress) {
	label = foreign.Clean(foreign.Storable(foreign.Cut(label, maxProgressLabel)))
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := time.Until(g.sent.Add(progressInterval))
	switch {
	case g.closed:
	case g.timer != nil:
		g.label, g.progress = label, progress
	case wait > 0:
		g.label, g.progress = label, progress
		g.timer = time.AfterFunc(wait, g.flush)
	default:
		g.sent = time.Now()
		g.send(label, progress)
	}
}

func (g *progressGate) flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer = nil; g.closed {
		return
	}
	g.sent = time.Now()
	g.send(g.label, g.progress)
}

// close drops a report that waits: the call has ended.
func (g *progressGate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
}
