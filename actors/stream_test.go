package actors

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
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

// orphanLog is a log at whose end nothing comes.
type orphanLog struct {
	TurnLog
	head  protocol.TurnHead
	looks atomic.Int64
}

func (l *orphanLog) TurnFrames(context.Context, protocol.AccountID, protocol.TurnID, int64, int) ([]byte, int64, error) {
	l.looks.Add(1)
	return nil, 0, nil
}

func (l *orphanLog) TurnHead(context.Context, protocol.AccountID, protocol.TurnID) (protocol.TurnHead, error) {
	l.looks.Add(1)
	return l.head, nil
}

// After a crash all readers of a node wait for an owner. What they ask the store meanwhile, takeovers have to wait for.
func TestReadersOfATurnThatNobodyRunsLeaveTheStoreAloneAndAreToldWhenItLives(t *testing.T) {
	here, other := protocol.NewNodeID(), protocol.NewNodeID()
	const seconds = 10
	for name, c := range map[string]struct {
		head protocol.TurnHead
		most int64 // looks at the store
	}{
		"handed on":          {protocol.TurnHead{LastSequence: 2}, 1 + seconds},
		"of a dead node":     {protocol.TurnHead{LastSequence: 2, Owner: &other, OwnerDead: true}, 1 + seconds},
		"about to live here": {protocol.TurnHead{LastSequence: 2, Owner: &here}, 1 + seconds},
		"lives elsewhere":    {protocol.TurnHead{LastSequence: 2, Owner: &other}, 1 + seconds*int64(time.Second/tailPoll)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &orphanLog{head: c.head}
				n := &Node{id: here, turnLog: log, ctx: t.Context(), turns: map[protocol.TurnID]*liveTurn{}, awaited: map[protocol.TurnID]map[Waker]struct{}{}}
				account, turn := protocol.NewAccountID(), protocol.NewTurnID()
				read := make(chan string, 1)
				go func() {
					frames, _, err := n.Follow(account, turn, 2).Next(t.Context(), nil)
					if err != nil {
						t.Error(err)
					}
					read <- string(frames)
				}()
				<-time.After(seconds*time.Second - 1)
				if looks := log.looks.Load(); looks > c.most {
					t.Errorf("%d looks in %d s", looks, seconds)
				}
				looks := log.looks.Load()
				n.mu.Lock()
				n.lives(turn, &liveTurn{account: account, stream: runsOf("1\n2\n", "3\n4\n")})
				n.mu.Unlock()
				synctest.Wait()
				if frames := <-read; frames != "3\n4\n" || log.looks.Load() != looks {
					t.Errorf("%q was read, with %d looks more", frames, log.looks.Load()-looks)
				}
				if len(n.awaited) > 0 {
					t.Error("who has left is still waited for")
				}
			})
		})
	}
}

func TestACommandGoesOnWhenItsTurnLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{turns: map[protocol.TurnID]*liveTurn{}, awaited: map[protocol.TurnID]map[Waker]struct{}{}}
		turn, begun := protocol.NewTurnID(), time.Now()
		done := make(chan error, 1)
		go func() { done <- n.arrival(t.Context(), turn, nil, time.Hour) }()
		synctest.Wait()
		n.mu.Lock()
		n.lives(turn, &liveTurn{stream: newStream(0)})
		n.mu.Unlock()
		if err := <-done; err != nil || time.Since(begun) > 0 || len(n.awaited) > 0 {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		if err := n.arrival(t.Context(), turn, nil, time.Hour); err != nil || time.Since(begun) > 0 {
			t.Errorf("it lives: after %s: %v", time.Since(begun), err)
		}
		if err := n.arrival(t.Context(), turn, n.turns[turn].stream, time.Minute); err != nil || time.Since(begun) != time.Minute || len(n.awaited) > 0 {
			t.Errorf("the known one is dead: after %s: %v", time.Since(begun), err)
		}
	})
}
