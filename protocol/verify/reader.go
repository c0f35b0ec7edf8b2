package verify

import (
	"hash/maphash"

	"turnstone/protocol"
)

// Position is the position of one reader in a log. The zero value precedes the first event.
type Position struct {
	Last  int64 // sequence of the newest event
	Ended bool  // the last event of the log was read
}

// Next moves to an event; ends reports whether it is the last one of its log. The position moves even if there is a
// violation, so that one missing event is one violation. Next returns "" if there is none.
func (p *Position) Next(sequence int64, ends bool) (violated Kind) {
	switch {
	case p.Ended:
		violated = Ends
	case sequence <= p.Last:
		violated = Repeated
	case sequence != p.Last+1:
		violated = Gaps
	}
	p.Last, p.Ended = sequence, p.Ended || ends
	return violated
}

// Reader follows the log of a turn as the reader of its streams. It decodes only the few events that say something about
// commands and the end, so it is cheap enough for thousands of readers. A Turn checks the other events too.
type Reader struct {
	Position
	Digest         Digest
	Inputs         map[string]*Input // by client_steering_id
	End            *protocol.TurnFinished
	Cancels        []int64 // sequences of turn.cancel_requested
	ConversationID protocol.ConversationID
	Findings       Findings

	byID map[protocol.SteeringID]*Input
}

// Input is what a log says about one steering input.
type Input struct {
	Accepted, Applied, Returned int
	Sequence                    int64 // at which it was accepted
	Text                        string
	FollowUpID                  *protocol.FollowUpID // that it became when it was returned
}

// Take reads the next event.
func (r *Reader) Take(sequence int64, kind, data []byte) {
	if violated := r.Next(sequence, string(kind) == "turn.finished"); violated != "" {
		r.Findings.add(violated, "event %d (%s) follows what was read", sequence, kind)
	}
	r.Digest.add(sequence, kind, data)
	switch string(kind) {
	case "turn.started", "steering.accepted", "steering.applied", "steering.returned", "turn.cancel_requested", "turn.finished":
	default:
		return
	}
	_, payload, err := protocol.DecodeEvent(data)
	if err != nil {
		r.Findings.add(Malformed, "event %d: %v", sequence, err)
		return
	}
	r.decoded(sequence, payload)
}

// decoded reads the payload of an event that was decoded already.
func (r *Reader) decoded(sequence int64, payload protocol.Payload) {
	switch p := payload.(type) {
	case *protocol.TurnStarted:
		r.ConversationID = p.ConversationID
	case *protocol.SteeringAccepted:
		r.accept(sequence, p)
	case *protocol.SteeringApplied:
		if input := r.input(sequence, p.SteeringID); input != nil {
			input.Applied++
		}
	case *protocol.SteeringReturned:
		if input := r.input(sequence, p.SteeringID); input != nil {
			input.Returned, input.FollowUpID = input.Returned+1, p.FollowUpID
		}
	case *protocol.TurnCancelRequested:
		r.Cancels = append(r.Cancels, sequence)
	case *protocol.TurnFinished:
		r.End = p
		if p.LastSequence != sequence {
			r.Findings.add(Ends, "event %d ends the log and says that event %d does", sequence, p.LastSequence)
		}
	}
}

func (r *Reader) accept(sequence int64, p *protocol.SteeringAccepted) {
	if r.Inputs == nil {
		r.Inputs, r.byID = map[string]*Input{}, map[protocol.SteeringID]*Input{}
	}
	input := r.Inputs[p.ClientSteeringID]
	if input == nil {
		input = &Input{}
		r.Inputs[p.ClientSteeringID] = input
	}
	input.Accepted++
	input.Sequence, input.Text, r.byID[p.SteeringID] = sequence, p.Text, input
}

func (r *Reader) input(sequence int64, id protocol.SteeringID) *Input {
	input := r.byID[id]
	if input == nil {
		r.Findings.add(Order, "event %d is about input %s, which was not accepted before", sequence, id)
	}
	return input
}

// Digest is a hash of all events so far, in their order. Digests are comparable within a process only.
type Digest uint64

var digestSeed = maphash.MakeSeed()

const digestPrime = 0x9E3779B97F4A7C15

func (d *Digest) add(sequence int64, kind, data []byte) {
	v := (uint64(*d)^maphash.Bytes(digestSeed, kind))*digestPrime + uint64(sequence)
	*d = Digest((v ^ maphash.Bytes(digestSeed, data)) * digestPrime)
}
