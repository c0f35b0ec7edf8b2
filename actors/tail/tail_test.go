package tail

import "testing"

// wakeCounter counts the calls of Wake.
type wakeCounter int

func (w *wakeCounter) Wake() { *w++ }

// runsOf returns a stream with one chunk of two events for each argument.
func runsOf(frames ...string) (s *Stream) {
	s = New(0)
	for i, f := range frames {
		s.Publish(int64(2*i+1), int64(2*i+2), []byte(f), false)
	}
	return s
}

func TestTakeReturnsEventsAfterTheCursorAndRendersAChunkOnce(t *testing.T) {
	s := runsOf("1\n2\n", "3\n4\n", "5\n6\n")
	made := 0
	render := func(frames []byte) []byte {
		made++
		return append([]byte("made of "), frames...)
	}
	for cursor, want := range []string{"1\n2\n3\n4\n5\n6\n", "2\n3\n4\n5\n6\n", "3\n4\n5\n6\n", "4\n5\n6\n", "5\n6\n", "6\n"} {
		r := &Cursor{After: int64(cursor)}
		runs, taken := s.Take(r, new(wakeCounter), nil)
		if got := string(Joined(runs)); got != want || taken != TakenSome || r.After != 6 {
			t.Errorf("after %d: %q, %v, then after %d", cursor, got, taken, r.After)
		}
		for _, run := range runs {
			if text := string(run.Rendered(render)); run.Whole() && text != "made of "+string(run.Frames()) {
				t.Errorf("the rendered chunk is %q", text)
			}
		}
	}
	if made != 3 {
		t.Errorf("chunks were rendered %d times, want 3", made)
	}
}

func TestAWaitingReaderIsWokenOnceUnlessItLeft(t *testing.T) {
	s := runsOf("1\n2\n")
	readers := make([]*Cursor, 3)
	wakes := make([]wakeCounter, 3)
	for i := range readers {
		readers[i] = &Cursor{After: 2}
		for range 2 { // a second take does not list the reader twice
			if runs, taken := s.Take(readers[i], &wakes[i], nil); len(runs) > 0 || taken != TakenCaughtUp {
				t.Fatalf("take at the end of the stream returned %v, %v", runs, taken)
			}
		}
	}
	s.Leave(readers[1])
	s.Leave(readers[1])
	s.Publish(3, 4, []byte("3\n4\n"), false)
	s.Publish(5, 5, []byte("5\n"), true)
	if wakes[0] != 1 || wakes[1] != 0 || wakes[2] != 1 {
		t.Errorf("the readers were woken %v times, want [1 0 1]", wakes)
	}
	if runs, taken := s.Take(readers[0], &wakes[0], nil); len(runs) != 2 || taken != TakenEnd || !readers[0].Ended {
		t.Errorf("take after the end was published returned %v, %v", runs, taken)
	}
	if runs, taken := s.Take(&Cursor{After: 5}, &wakes[0], nil); len(runs) != 0 || taken != TakenEnd {
		t.Errorf("take with a cursor at the end returned %v, %v", runs, taken)
	}
}
