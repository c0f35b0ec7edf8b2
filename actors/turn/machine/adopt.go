package machine

import (
	"turnstone/actors/policy"
	"turnstone/protocol"
)

// Adopt continues a turn that was taken over, after Restore.
func (m *Batch) Adopt(cause protocol.RecoveryCause) {
	if m.ended {
		return
	}
	m.emit(&protocol.TurnRecoveringEvent{Attempt: m.adoptions + 1, Cause: cause})
	if m.state == protocol.TurnCancelling {
		m.finishCancelled()
		return
	}
	m.move(protocol.TurnAdopted, m.accepts)
	if m.losses > maxLosses {
		m.finish(protocol.TurnStopsShort, protocol.StopError, &protocol.TurnError{
			Code: protocol.TurnInterrupted, Detail: "The service was restarted too often while this answer was written.", Retryable: true,
		})
		return
	}
	if m.awaiting() {
		m.move(protocol.TurnAwaitsApproval, m.accepts)
	} else {
		m.move(protocol.TurnResumes, m.accepts)
	}
	m.usage.AddLostCall(len(m.prefix()))
	m.cutStep()
	for _, call := range m.toolCalls {
		if call.state != protocol.ToolRunning {
			continue
		}
		if !call.again { // it may have happened; asking again could do it twice
			m.completeTool(call, protocol.ToolLost, toolOutput{}, &protocol.ToolError{
				Code: protocol.ToolOutcomeMissing, Detail: "The service was interrupted while this ran. It may or may not have taken effect.",
			}, 0)
			continue
		}
		m.moveTool(call, protocol.ToolRerun)
		if call.name == policy.ReadMore {
			m.effect(m.runReadMore(call))
			continue
		}
		m.effect(call.run())
	}
	m.Proceed()
}
