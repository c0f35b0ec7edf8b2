package actors

import (
	"testing"
	"time"

	"go.uber.org/zap"
)

// woken counts what a reader is told.
type woken int

func (w *woken) Wake() { *w++ }

func runsOf(frames ...string) (s *stream) {
	s = newStream(0)
	for i, f := range frames {
		s.publish(int64(2*i+1), int64(2*i+2), []byte(f), false)
	}
	return s
}

func TestATakeGivesWhatFollowsTheCursorAndSharesWhatIsMadeOfIt(t *testing.T) {
	s := runsOf("1\n2\n", "3\n4\n", "5\n6\n")
	made := 0
	render := func(frames []byte) []byte {
		made++
		return append([]byte("made of "), frames...)
	}
	for cursor, want := range []string{"1\n2\n3\n4\n5\n6\n", "2\n3\n4\n5\n6\n", "3\n4\n5\n6\n", "4\n5\n6\n", "5\n6\n", "6\n"} {
		r := &Reader{cursor: int64(cursor)}
		runs, taken := s.take(r, new(woken), nil)
		if got := string(joined(runs)); got != want || taken != TakenSome || r.cursor != 6 {
			t.Errorf("after %d: %q, %v, then after %d", cursor, got, taken, r.cursor)
		}
		for _, run := range runs {
			if text := string(run.Rendered(render)); run.Whole() && text != "made of "+string(run.Frames()) {
				t.Errorf("%q", text)
			}
		}
	}
	if made != 3 {
		t.Errorf("rendered %d times", made)
	}
}

func TestWhoWaitsIsToldOnceAndWhoLeftIsNot(t *testing.T) {
	s := runsOf("1\n2\n")
	readers := make([]*Reader, 3)
	told := make([]woken, 3)
	for i := range readers {
		readers[i] = &Reader{cursor: 2, stream: s}
		for range 2 { // asked twice, listed once
			if runs, taken := s.take(readers[i], &told[i], nil); len(runs) > 0 || taken != TakenLive {
				t.Fatalf("%v %v", runs, taken)
			}
		}
	}
	readers[1].Leave()
	readers[1].Leave()
	s.publish(3, 4, []byte("3\n4\n"), false)
	s.publish(5, 5, []byte("5\n"), true)
	if told[0] != 1 || told[1] != 0 || told[2] != 1 {
		t.Errorf("told %v times", told)
	}
	if runs, taken := s.take(readers[0], &told[0], nil); len(runs) != 2 || taken != TakenAll || !readers[0].ended {
		t.Errorf("%v %v", runs, taken)
	}
	if runs, taken := s.take(&Reader{cursor: 5}, &told[0], nil); len(runs) != 0 || taken != TakenAll {
		t.Errorf("behind the end: %v %v", runs, taken)
	}
}

// TestMemoryIsBelievedOnlyWhileItIsSure: a resumed stream is looked up unless the turn surely lives here, for its account.
func TestMemoryIsBelievedOnlyWhileItIsSure(t *testing.T) {
	n := NewNode(Config{Model: saying(), Logger: zap.NewNop()}) // not started: nobody else renews
	defer n.Stop()
	account, turn := machineSpec().AccountID, machineSpec().TurnID
	live := &liveTurn{account: account, stream: runsOf("1\n2\n"), over: true}
	n.mu.Lock()
	n.turns[turn] = live
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.turns, turn)
		n.mu.Unlock()
	}()
	now := time.Now()
	n.renewed.Store(&now)
	for _, c := range []struct {
		what   string
		reader *Reader
		want   bool
	}{
		{"the owner", n.Follow(account, turn, 0), true},
		{"the owner, level with it", n.Follow(account, turn, 2), true},
		{"the owner, ahead of it", n.Follow(account, turn, 3), false},
		{"a stranger", n.Follow(machineSpec().AccountID, turn, 0), false},
		{"a turn that is not here", n.Follow(account, machineSpec().TurnID, 0), false},
	} {
		if got := c.reader.Reaches(); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	live.stream.finishing()
	if n.Follow(account, turn, 0).Reaches() {
		t.Error("while the end is being stored")
	}
	live.stream = runsOf("1\n2\n")
	long := now.Add(-leaseSure)
	n.renewed.Store(&long)
	if n.leased() {
		t.Error("long after a renewal")
	}
}
