package machine

import (
	"time"

	"turnstone/protocol"
)

// advance decides how a turn continues after a trigger: it ends a cancelled turn, waits for approvals, or calls the model. It does
// nothing while the turn has something to wait for, and once it has ended. Every trigger that may leave nothing to wait for ends
// with a call of advance; what it calls before that only records.
func (m *Batch) advance() {
	switch {
	case m.ended || m.calling:
	case m.state == protocol.TurnCancelling:
		if !m.toolRuns() {
			m.finishCancelled()
		}
	case m.awaiting():
		if m.state == protocol.TurnRunning {
			m.move(protocol.TurnNeedsApproval, m.accepts)
		}
	default:
		if m.state == protocol.TurnRequiresAction {
			m.move(protocol.TurnApprovalResolved, m.accepts)
			m.waited, m.waitsFrom = m.Waited(m.Now), time.Time{}
		}
		if !m.toolsOpen() {
			m.startStep()
		}
	}
}
