package protocol

// FollowUpState is the state of a follow-up.
type FollowUpState string

// The states of a follow-up.
const (
	FollowUpQueued    FollowUpState = "queued"
	FollowUpHeld      FollowUpState = "held"
	FollowUpStarted   FollowUpState = "started" // the follow-up has become a turn
	FollowUpCancelled FollowUpState = "cancelled"
)

// FollowUpStates lists every state: the open states, then the terminal ones.
var FollowUpStates = []FollowUpState{FollowUpQueued, FollowUpHeld, FollowUpStarted, FollowUpCancelled}

// Terminal reports whether the state is final.
func (s FollowUpState) Terminal() bool { return s == FollowUpStarted || s == FollowUpCancelled }

// FollowUpTrigger is a cause of a transition of a follow-up.
type FollowUpTrigger string

// The triggers of a follow-up.
const (
	FollowUpHold    FollowUpTrigger = "hold" // the user holds it, or a turn did not complete
	FollowUpRelease FollowUpTrigger = "release"
	FollowUpCancel  FollowUpTrigger = "cancel"
	FollowUpStart   FollowUpTrigger = "start" // it becomes the next turn
)

// FollowUpTransitions lists every legal transition of a follow-up.
var FollowUpTransitions = []Transition[FollowUpState, FollowUpTrigger]{
	{FollowUpQueued, FollowUpHold, FollowUpHeld},
	{FollowUpQueued, FollowUpStart, FollowUpStarted},
	{FollowUpQueued, FollowUpCancel, FollowUpCancelled},
	{FollowUpHeld, FollowUpRelease, FollowUpQueued},
	{FollowUpHeld, FollowUpCancel, FollowUpCancelled},
}

// TriggerTo returns the trigger by which a user changes a follow-up to a state; ok is false when there is none.
func (s FollowUpState) TriggerTo(to FollowUpState) (trigger FollowUpTrigger, ok bool) {
	for _, t := range FollowUpTransitions {
		if t.From == s && t.To == to && t.Trigger != FollowUpStart {
			return t.Trigger, true
		}
	}
	return "", false
}
