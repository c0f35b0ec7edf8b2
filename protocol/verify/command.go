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
	had       [Closed + 1]bool
	sequences []int64 // of the receipts, without repeats
}

// CheckCommands compares the responses of clients to commands with the log: an acknowledged one is in the log, under the
// sequence of its receipt, which every repeat of an input gets again; one that was only refused is not. An input is accepted once, and by the end of the turn applied
// or returned, once. A turn is cancelled if and only if its log has a cancel.
func (r *Reader) CheckCommands(commands []Command) (found Findings) {
	all := map[string]*outcomes{}
	for _, c := range commands {
		if all[c.Input] == nil {
			all[c.Input] = &outcomes{}
		}
		received := all[c.Input]
		if received.had[c.Outcome] = true; c.Outcome == Acknowledged && c.Sequence != 0 && !slices.Contains(received.sequences, c.Sequence) {
			received.sequences = append(received.sequences, c.Sequence)
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
	if r.End != nil && (len(r.Cancels) > 0) != (r.End.Status == protocol.TurnCancelled) {
		found.add(Order, "the turn ended %s, and the events %v request a cancel", r.End.Status, r.Cancels)
	}
	return found
}

func (r *Reader) checkInput(key string, received *outcomes, found *Findings) {
	logged := r.Inputs[key]
	if len(received.sequences) > 1 {
		found.add(Doubled, "input %s was acknowledged as the events %v", key, received.sequences)
	}
	switch {
	case received.had[Acknowledged] && (logged == nil || len(received.sequences) > 0 && !slices.Contains(received.sequences, logged.Sequence)):
		found.add(Lost, "input %s was acknowledged as the event %v, the log says %+v", key, received.sequences, logged)
	case received.had[Acknowledged] || logged == nil:
	case received.had[Closed]:
		found.add(Order, "input %s came too late and is in the log as event %d", key, logged.Sequence)
	case received.had[Refused] && !received.had[Unknown]:
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

func (r *Reader) checkCancel(received *outcomes, found *Findings) {
	if received.had[Acknowledged] && (len(r.Cancels) == 0 || r.End != nil && r.End.Status != protocol.TurnCancelled) {
		found.add(Lost, "a cancel was acknowledged; the events %v request one, and the turn ended %+v", r.Cancels, r.End)
	}
	for _, sequence := range received.sequences {
		if !slices.Contains(r.Cancels, sequence) {
			found.add(Lost, "a cancel was acknowledged as event %d; the events %v request one", sequence, r.Cancels)
		}
	}
	if received.had[Refused] && !received.had[Acknowledged] && !received.had[Unknown] && len(r.Cancels) > 0 {
		found.add(Untruthful, "every cancel was refused, never with an unknown outcome, and the events %v request one", r.Cancels)
	}
}
