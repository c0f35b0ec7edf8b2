package verify

import (
	"maps"
	"slices"

	"turnstone/protocol"
)

// Outcome is what a client knows about the effect of a request.
type Outcome int

// The outcomes.
const (
	Unknown      Outcome = iota // no response, or one that says that the outcome is unknown
	Acknowledged                // it took effect
	Refused                     // it had no effect, and may be repeated
	Closed                      // it had no effect and never will: a command that came too late
)

// Command is a request that steers or cancels a turn.
type Command struct {
	Input    string // client_steering_id; "": a cancel
	Outcome  Outcome
	Sequence int64 // of an acknowledged one, from its receipt; 0: not checked
}

// outcomes are the outcomes of all requests of one command.
type outcomes struct {
	had      [Closed + 1]bool
	sequence int64
}

// CheckCommands compares what clients were told about commands with the log: an acknowledged one is in the log, under the
// sequence of its receipt; one that was only refused is not. An input is accepted once, and by the end of the turn applied
// or returned, once. A turn is cancelled if and only if its log has a cancel.
func (r *Reader) CheckCommands(commands []Command) (found Findings) {
	all := map[string]*outcomes{}
	for _, c := range commands {
		if all[c.Input] == nil {
			all[c.Input] = &outcomes{}
		}
		all[c.Input].had[c.Outcome] = true
		if c.Outcome == Acknowledged && c.Sequence != 0 {
			if first := all[c.Input].sequence; first != 0 && first != c.Sequence && c.Input != "" {
				found.add(Doubled, "input %s was acknowledged as event %d and as event %d", c.Input, first, c.Sequence)
			}
			all[c.Input].sequence = c.Sequence
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key == "" {
			r.checkCancel(all[key], &found)
		} else {
			r.checkInput(key, all[key], &found)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.Inputs)) {
		r.Inputs[key].check(key, r.End != nil, &found)
	}
	if r.End != nil && (r.CancelledAt != 0) != (r.End.Status == protocol.TurnCancelled) {
		found.add(Order, "the turn ended %s, and event %d requests a cancel", r.End.Status, r.CancelledAt)
	}
	return found
}

func (r *Reader) checkInput(key string, told *outcomes, found *Findings) {
	logged := r.Inputs[key]
	switch {
	case told.had[Acknowledged] && (logged == nil || told.sequence != 0 && logged.Sequence != told.sequence):
		found.add(Lost, "input %s was acknowledged as event %d, the log says %+v", key, told.sequence, logged)
	case told.had[Acknowledged] || logged == nil:
	case told.had[Closed]:
		found.add(Order, "input %s came too late and is in the log as event %d", key, logged.Sequence)
	case told.had[Refused] && !told.had[Unknown]:
		found.add(Untruthful, "input %s was refused, never with an unknown outcome, and is in the log as event %d", key, logged.Sequence)
	}
}

func (i *Input) check(key string, ended bool, found *Findings) {
	if i.Accepted > 1 {
		found.add(Doubled, "input %s was accepted %d times", key, i.Accepted)
	}
	if i.Returned > 0 && i.FollowUpID == nil {
		found.add(Lost, "input %s was returned and became no follow-up", key)
	}
	if uses := i.Applied + i.Returned; uses > 1 || ended && uses != 1 {
		found.add(Order, "input %s was applied %d times and returned %d times", key, i.Applied, i.Returned)
	}
}

func (r *Reader) checkCancel(told *outcomes, found *Findings) {
	cancelled := r.CancelledAt != 0 && (r.End == nil || r.End.Status == protocol.TurnCancelled)
	switch {
	case told.had[Acknowledged] && !cancelled:
		found.add(Lost, "a cancel was acknowledged, but event %d requests one, and the turn ended %+v", r.CancelledAt, r.End)
	case told.had[Acknowledged] && told.sequence != 0 && told.sequence < r.CancelledAt:
		found.add(Lost, "a cancel was acknowledged as event %d, the log has it as event %d", told.sequence, r.CancelledAt)
	case told.had[Refused] && !told.had[Acknowledged] && !told.had[Unknown] && r.CancelledAt != 0:
		found.add(Untruthful, "every cancel was refused, never with an unknown outcome, and event %d requests one", r.CancelledAt)
	}
}
