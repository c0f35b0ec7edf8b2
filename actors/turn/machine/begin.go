package machine

import (
	"time"

	"turnstone/actors/routing"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Starter begins turns. It has what the first transition of a turn depends on in addition to its spec.
type Starter struct {
	Routes           routing.Routes
	Tools            map[string]Tool
	Continues        bool // see New
	ApprovalLifetime time.Duration
}

// Begin returns the first transition of a turn and sets spec.Routing; see turnlog.Runner. It is deterministic: the
// events have the time spec.CreatedAt.
func (s *Starter) Begin(spec *turnlog.Spec) (turnlog.Begin, error) {
	spec.Routing = s.Routes.Resolve(spec.Requested, spec.PreviousProfile, spec.Input)
	spec.ApprovalLifetime = s.ApprovalLifetime
	b := s.New(spec).NewBatch()
	b.Begin()
	frames, err := protocol.AppendEvents(nil, spec.TurnID, 1, spec.CreatedAt, b.Events)
	state, accepts := b.State()
	return turnlog.Begin{Frames: frames, Last: b.Sequence(), State: state, Accepts: accepts, Payloads: b.Events}, err
}

// New returns the machine of a turn before its first transition.
func (s *Starter) New(spec *turnlog.Spec) *Machine { return New(spec, s.Tools, s.Continues) }

// Begin decides the first transition, which is stored together with the turn itself.
func (m *Batch) Begin() {
	if m.sequence > 0 {
		return
	}
	s := m.spec
	m.emit(&protocol.TurnStarted{
		ConversationID: s.ConversationID, BranchID: s.BranchID, UserMessageID: s.UserMessageID,
		AssistantMessageID: s.AssistantMessageID, ParentMessageID: s.ParentMessageID, AcceptingSteering: true,
	})
	routing := s.Routing
	m.emit(&routing)
	m.move(protocol.TurnBegins, true)
}

// Proceed continues from the durable state, after Begin or after a takeover.
func (m *Batch) Proceed() {
	if m.calling || m.state != protocol.TurnRunning && m.state != protocol.TurnRequiresAction {
		return
	}
	m.startPending()
	m.advance()
}
