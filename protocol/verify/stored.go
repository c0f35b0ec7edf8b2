package verify

import (
	"bytes"

	"turnstone/protocol"
)

// Chunk is a stored row of a log.
type Chunk struct {
	First, Last int64
	Epoch       int32 // of the owner that stored it
	Frames      []byte
}

// Events returns the events in frames, which the store has one in a line. The sequence and the type of a line without them
// are 0 and "".
func Events(frames []byte) (events []Event) {
	for line := range protocol.FrameLines(frames) {
		sequence, kind, _ := protocol.FrameHead(line)
		events = append(events, Event{sequence, protocol.EventType(kind), string(line)})
	}
	return events
}

// ReadChunks returns the events of the stored rows of a log, in their order. It checks that the rows are contiguous, that
// each has the events that it names, and that no owner stored a row after its successor.
func ReadChunks(log string, chunks []Chunk) (events []Event, found Findings) {
	next, epoch := int64(1), int32(1)
	for _, c := range chunks {
		if c.First != next {
			found.add(Gaps, "%s: the row of event %d follows event %d", log, c.First, next-1)
		}
		if c.Epoch < epoch {
			found.add(Order, "%s: event %d has epoch %d after %d", log, c.First, c.Epoch, epoch)
		}
		of := Events(c.Frames)
		if len(of) == 0 || of[0].Sequence != c.First || of[len(of)-1].Sequence != c.Last || int64(len(of)) != c.Last-c.First+1 {
			found.add(Gaps, "%s: the row of events %d to %d has %d events", log, c.First, c.Last, len(of))
		}
		events, next, epoch = append(events, of...), c.Last+1, c.Epoch
	}
	return events, found
}

// CheckCopy checks that a second copy of the rows of a log has the same bytes, and that last is its last sequence.
func CheckCopy(log string, chunks []Chunk, last int64, frames []byte) (found Findings) {
	var whole []byte
	for _, c := range chunks {
		whole = append(whole, c.Frames...)
	}
	if n := len(chunks); n == 0 || chunks[n-1].Last != last || !bytes.Equal(whole, frames) {
		found.add(Changed, "%s: the copy of the log has %d bytes up to event %d, its %d rows have %d bytes", log, len(frames), last, n, len(whole))
	}
	return found
}
