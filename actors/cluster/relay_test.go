package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"turnstone/actors/clustertest"
	"turnstone/actors/shell"
	"turnstone/actors/tail"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// node is a node with a hub; turns are those that run on it.
type node struct {
	*Link
	*Hub
	turns map[protocol.TurnID]*tail.Stream
	kill  func() // ends the node as a crash does: it sends nothing more
}

// newNode starts a node. Without receive, its hub receives subscriptions.
func newNode(t *testing.T, authority clustertest.Authority, receive func(Message)) *node {
	t.Helper()
	return newNodeOn(t, optionsOf(t, authority), receive)
}

// newNodeOn starts a node with some options.
func newNodeOn(t *testing.T, o *Options, receive func(Message)) *node {
	t.Helper()
	runtime := shell.NewRuntime(clustertest.Log(t), 2)
	n := &node{turns: map[protocol.TurnID]*tail.Stream{}}
	n.Link = New(runtime, *o)
	n.Hub = NewHub(n.Link, func(_ protocol.AccountID, turn protocol.TurnID) *tail.Stream { return n.turns[turn] }, clustertest.Log(t))
	if receive != nil {
		n.Handle(kindSubscribe, receive)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	n.kill = sync.OnceFunc(func() {
		n.Link.Close()
		runtime.Close()
	})
	t.Cleanup(func() {
		n.Hub.Close()
		n.kill()
	})
	return n
}

// restart kills a node and starts another one on its address.
func (n *node) restart(t *testing.T, authority clustertest.Authority) *node {
	t.Helper()
	n.kill()
	o := optionsOf(t, authority)
	o.Listen = n.Address()
	return newNodeOn(t, o, nil)
}

var account = protocol.NewAccountID()

// pair returns an owner with one turn, whose stream has one event, and a node that does not run it.
func pair(t *testing.T) (owner, other *node, turn protocol.TurnID, stream *tail.Stream) {
	t.Helper()
	authority := clustertest.NewAuthority(t)
	owner, other = newNode(t, authority, nil), newNode(t, authority, nil)
	turn, stream = protocol.NewTurnID(), tail.New(0)
	owner.turns[turn] = stream
	stream.Publish(1, 1, event(1, 10), false)
	return owner, other, turn, stream
}

// event returns an event of a number of bytes.
func event(sequence, size int) []byte {
	text := fmt.Sprintf("%d ", sequence)
	return append(append([]byte(text), bytes.Repeat([]byte("x"), max(0, size-len(text)-1))...), '\n')
}

// take waits until a reader of a stream gets something, or until the stream is abandoned.
func take(t *testing.T, s *tail.Stream, c *tail.Cursor) ([]byte, tail.Taken) {
	t.Helper()
	signal := make(tail.Signal, 1)
	for {
		runs, taken := s.Take(c, signal, nil)
		if len(runs) > 0 || taken != tail.TakenCaughtUp {
			return tail.Joined(runs), taken
		}
		select {
		case <-signal:
		case <-time.After(clocktest.HangGuard):
			t.Fatalf("nothing arrived after %d", c.After)
		}
	}
}

func TestARelayPublishesWhatTheOwnerCommits(t *testing.T) {
	owner, other, turn, stream := pair(t)
	r := other.Follow(account, turn, owner.Address(), 1, 0)
	c := &tail.Cursor{}
	var got, want []byte
	for i := 1; i <= 200; i++ { // 4 MB: many times the window
		if i > 1 {
			stream.Publish(int64(i), int64(i), event(i, 20_000), i == 200)
			want = append(want, event(i, 20_000)...)
		} else {
			want = append(want, event(1, 10)...)
		}
		for c.After < int64(i) {
			frames, taken := take(t, r.Stream(), c)
			if taken == tail.TakenNotInMemory {
				t.Fatalf("the relay ended after %d", c.After)
			}
			got = append(got, frames...)
		}
	}
	if !bytes.Equal(got, want) || !c.Ended {
		t.Errorf("%d bytes were relayed, want %d; ended: %t", len(got), len(want), c.Ended)
	}
}

func TestASourceSendsOnlyWhatItHasCreditFor(t *testing.T) {
	authority := clustertest.NewAuthority(t)
	owner := newNode(t, authority, nil)
	turn, stream := protocol.NewTurnID(), tail.New(0)
	owner.turns[turn] = stream
	var received int
	arrived, beat := make(chan int, 10_000), make(chan struct{})
	silent := newNode(t, authority, nil) // its subscriber never gives credit
	self, err := silent.Spawn("subscriber", func(message any) {
		switch m, is := message.(Message); {
		case is && bytes.Count(m.Body, []byte{'\n'}) == 1: // it has no events, and follows all that were sent
			close(beat)
		case is:
			received += len(m.Body)
			arrived <- received
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	stream.Publish(1, 1, event(1, 10), false)
	silent.Send(silent.Gateway(owner.Address()), self, kindSubscribe, encode(subscription{account, turn, 0, 1 << 30}))
	<-arrived
	const size = 30_000
	total := 0
	for i := 2; total < windowBytes; i++ { // the source is given each event before the next one is published
		stream.Publish(int64(i), int64(i), event(i, size), false)
		total = <-arrived
	}
	for i := range 20 {
		stream.Publish(int64(100+i), int64(100+i), event(100+i, size), false)
	}
	owner.Hub.tick(time.Now()) // the source has received everything before
	owner.Hub.tick(time.Now().Add(beatInterval + time.Second))
	<-beat
	if most := windowBytes + size + 1024; received > most {
		t.Errorf("%d bytes were sent without credit, want at most %d", received, most)
	}
}

// broken returns a node that answers subscriptions with the given messages.
func broken(t *testing.T, authority clustertest.Authority, kind string, bodies ...[]byte) *node {
	t.Helper()
	var n *node
	ready := make(chan struct{})
	n = newNode(t, authority, func(m Message) {
		<-ready
		self, err := n.Spawn(n.name("broken"), func(any) {})
		if err != nil {
			t.Error(err)
		}
		for _, body := range bodies {
			n.Send(m.From, self, kind, body)
		}
	})
	close(ready)
	return n
}

func framesOf(first, last int64, text string) []byte {
	return append(append(encode(span{First: first, Last: last}), '\n'), text...)
}

func TestARelayEndsWhenItsSourceIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		bodies [][]byte
		want   string
	}{
		"a lost message":                {kindFrames, [][]byte{framesOf(1, 1, "1\n"), framesOf(3, 3, "3\n")}, "1\n"},
		"a lost message before a pause": {kindFrames, [][]byte{framesOf(1, 1, "1\n"), framesOf(3, 2, "")}, "1\n"},
		"garbage":                       {kindFrames, [][]byte{framesOf(1, 1, "1\n"), []byte("{\n2\n")}, "1\n"},
		"frames of another turn": {kindFrames, [][]byte{
			framesOf(1, 1, "1\n"), append(encode(span{TurnID: protocol.NewTurnID(), First: 2, Last: 2}), "\n2\n"...),
		}, "1\n"},
		"a turn that is not there": {kindEnd, [][]byte{nil}, ""},
		"a repeat is left out, then an end": {kindFrames, [][]byte{
			framesOf(1, 2, "1\n2\n"), framesOf(1, 1, "1\n"), framesOf(2, 3, "2\n3\n"), framesOf(9, 9, "9\n"),
		}, "1\n2\n3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			authority := clustertest.NewAuthority(t)
			owner, other := broken(t, authority, c.kind, c.bodies...), newNode(t, authority, nil)
			turn := protocol.NewTurnID()
			r := other.Follow(account, turn, owner.Address(), 1, 0)
			var got []byte
			for cursor := new(tail.Cursor); ; {
				frames, taken := take(t, r.Stream(), cursor)
				got = append(got, frames...)
				if taken == tail.TakenNotInMemory {
					break
				}
			}
			if string(got) != c.want {
				t.Errorf("the readers got %q, want %q", got, c.want)
			}
			if next := other.Follow(account, turn, owner.Address(), 1, 0); next != nil {
				t.Error("a relay that has just ended starts again at once")
			}
		})
	}
}

func TestARelayEndsWithoutItsOwnerAndWithoutReaders(t *testing.T) {
	owner, other, turn, _ := pair(t)
	r := other.Follow(account, turn, owner.Address(), 1, 0)
	take(t, r.Stream(), new(tail.Cursor))
	if again := other.Follow(account, turn, owner.Address(), 1, 0); again != r {
		t.Error("a second reader has its own relay")
	}
	if other.Follow(protocol.NewAccountID(), turn, owner.Address(), 1, 0) != nil {
		t.Error("another account reads the relay")
	}
	moved := other.Follow(account, turn, owner.Address(), 2, 0)
	if moved == r || moved == nil {
		t.Fatal("the relay of an earlier epoch is used for a later one")
	}
	if _, taken := take(t, r.Stream(), &tail.Cursor{After: 1}); taken != tail.TakenNotInMemory {
		t.Errorf("a reader of the earlier relay: %v", taken)
	}
	other.Leave(moved)
	other.tick(time.Now().Add(unreadFor + time.Second))
	if _, taken := take(t, moved.Stream(), &tail.Cursor{After: 1}); taken != tail.TakenNotInMemory {
		t.Errorf("the relay without readers: %v", taken)
	}
	for !other.retryPassed(turn) {
		other.tick(time.Now().Add(time.Hour))
	}
	last := other.Follow(account, turn, owner.Address(), 3, 0)
	other.tick(time.Now().Add(silentAfter + time.Second))
	if _, taken := take(t, last.Stream(), &tail.Cursor{After: 1}); taken != tail.TakenNotInMemory {
		t.Errorf("the relay of a silent owner: %v", taken)
	}
}

func TestARelayThatWaitsForALostOwnerEndsWhenTheTurnHasMoved(t *testing.T) {
	owner, other, turn, _ := pair(t)
	const lost = "127.0.0.1:1" // refuses connections
	waiting := other.Follow(account, turn, lost, 1, 0)
	other.Moved(turn, lost)
	other.Moved(protocol.NewTurnID(), owner.Address())
	if again := other.Follow(account, turn, lost, 1, 0); again != waiting {
		t.Fatal("a relay has ended although its turn has not moved")
	}
	other.Moved(turn, owner.Address())
	if _, taken := take(t, waiting.Stream(), &tail.Cursor{}); taken != tail.TakenNotInMemory {
		t.Errorf("the relay of the lost owner: %v", taken)
	}
	next := other.Follow(account, turn, owner.Address(), 2, 0)
	if next == nil {
		t.Fatal("the next relay does not start at once")
	}
	if got, taken := take(t, next.Stream(), new(tail.Cursor)); len(got) == 0 {
		t.Errorf("the next relay: %v", taken)
	}
}

// A node that restarts has the address of its predecessor, and its peers send to that address until they have noticed.
func TestARestartedNodeGetsNoFramesThatWereForItsPredecessor(t *testing.T) {
	authority := clustertest.NewAuthority(t)
	owner, before := newNode(t, authority, nil), newNode(t, authority, nil)
	theirs, own := protocol.NewTurnID(), protocol.NewTurnID()
	owner.turns[theirs], owner.turns[own] = tail.New(0), tail.New(0)
	owner.turns[theirs].Publish(1, 1, []byte("theirs 1\n"), false)
	lost := before.Follow(account, theirs, owner.Address(), 1, 0)
	take(t, lost.Stream(), new(tail.Cursor))

	after := before.restart(t, authority)
	r := after.Follow(protocol.NewAccountID(), own, owner.Address(), 1, 0)
	owner.turns[own].Publish(1, 1, []byte("own 1\n"), false)
	c := new(tail.Cursor)
	if got, _ := take(t, r.Stream(), c); string(got) != "own 1\n" {
		t.Fatalf("the reader got %q first", got)
	}
	// As the source for the predecessor would send it, and as an earlier version does, which does not name the turn.
	owner.Send(lost.self, nil, kindFrames, framesOf(2, 2, "theirs 2\n"))
	owner.turns[own].Publish(2, 2, []byte("own 2\n"), false)
	if got, _ := take(t, r.Stream(), c); string(got) != "own 2\n" {
		t.Errorf("the reader of the restarted node got %q", got)
	}
}

// retryPassed reports whether a relay of a turn may start again.
func (n *node) retryPassed(turn protocol.TurnID) bool {
	n.Hub.mu.Lock()
	defer n.Hub.mu.Unlock()
	_, waits := n.retry[turn]
	return !waits
}

func TestAnEventThatIsTooLargeForAMessageIsReadFromTheLog(t *testing.T) {
	owner, other, turn, stream := pair(t)
	r := other.Follow(account, turn, owner.Address(), 1, 0)
	c := new(tail.Cursor)
	take(t, r.Stream(), c)
	stream.Publish(2, 2, event(2, maxFrames+1), false)
	if _, taken := take(t, r.Stream(), c); taken != tail.TakenNotInMemory || c.After != 1 {
		t.Errorf("after the large event: %v, after %d", taken, c.After)
	}
}

func TestBodiesAreReadByLaterVersions(t *testing.T) {
	var s subscription
	if err := json.Unmarshal([]byte(`{"account_id":"`+account.String()+`","after":3,"credit":5,"later":true}`), &s); err != nil || s.After != 3 || s.Credit != 5 {
		t.Errorf("%+v, %v", s, err)
	}
}
