package turn

import (
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Begin returns the first transition of a turn and sets spec.Routing; see turnlog.Runner. It is deterministic: the
// events have the time spec.CreatedAt.
func (h *Host) Begin(spec *turnlog.Spec) (turnlog.Begin, error) {
	spec.Routing = h.calls.routes.Resolve(spec.Requested, spec.PreviousProfile, spec.Input)
	spec.ApprovalLifetime = h.lifetime
	b := h.newMachine(spec).NewBatch()
	b.Begin()
	frames, err := protocol.AppendEvents(nil, spec.TurnID, 1, spec.CreatedAt, b.Events)
	state, accepts := b.State()
	return turnlog.Begin{Frames: frames, Last: b.Sequence(), State: state, Accepts: accepts, Payloads: b.Events}, err
}

// runner returns this node, for the store.
func (h *Host) runner() turnlog.Runner {
	return turnlog.Runner{NodeID: h.node.ID, MaxLiveTurns: h.maxLiveTurns, Begin: h.Begin}
}

func (h *Host) newMachine(spec *turnlog.Spec) *machine.Machine {
	return machine.New(spec, h.turnTools, h.calls.model.Continues())
}
