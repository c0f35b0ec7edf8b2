package turn

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/actorstest"
	"turnstone/actors/host"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/shell"
	"turnstone/actors/tail"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// runsOf returns a stream with one chunk of two events for each argument.
func runsOf(frames ...string) (s *tail.Stream) {
	s = tail.New(0)
	for i, f := range frames {
		s.Publish(int64(2*i+1), int64(2*i+2), []byte(f), false)
	}
	return s
}

// TestFollowsLocallyIsTrueOnlyWhileTheLeaseIsValid checks FollowsLocally: a resumed stream needs a lookup in the store
// unless this node certainly runs the turn, and the turn belongs to the reader's account.
func TestFollowsLocallyIsTrueOnlyWhileTheLeaseIsValid(t *testing.T) {
	valid := true
	n := hostOf(t, protocol.NewNodeID(), nil, &valid)
	account, turn := actorstest.NewSpec().AccountID, actorstest.NewSpec().TurnID
	stream := runsOf("1\n2\n")
	runIdle(n, account, turn, stream)
	for _, c := range []struct {
		what   string
		reader *Reader
		want   bool
	}{
		{"the owner", n.Follow(account, turn, 0), true},
		{"the owner, at the end of the stream", n.Follow(account, turn, 2), true},
		{"the owner, after the end of the stream", n.Follow(account, turn, 3), false},
		{"another account", n.Follow(actorstest.NewSpec().AccountID, turn, 0), false},
		{"a turn of another node", n.Follow(account, actorstest.NewSpec().TurnID, 0), false},
	} {
		if got := c.reader.FollowsLocally(); got != c.want {
			t.Errorf("%s: FollowsLocally is %v, want %v", c.what, got, c.want)
		}
	}
	valid = false
	if n.Follow(account, turn, 0).FollowsLocally() {
		t.Error("FollowsLocally is true without a valid lease")
	}
	valid = true
	stream.Finishing()
	if n.Follow(account, turn, 0).FollowsLocally() {
		t.Error("FollowsLocally is true while the end is being stored")
	}
}

// Another node may continue the turns of an isolated one, so nobody waits for their next events here.
func TestAReaderOfAnIsolatedNodeIsSentToAnother(t *testing.T) {
	valid := true
	h := hostOf(t, protocol.NewNodeID(), nil, &valid)
	account, turn := actorstest.NewSpec().AccountID, actorstest.NewSpec().TurnID
	stream := runsOf("1\n2\n")
	runIdle(h, account, turn, stream)
	waiting, behind := h.Follow(account, turn, 2), h.Follow(account, turn, 0)
	type result struct {
		frames []byte
		err    error
	}
	next := func(r *Reader) (got result) {
		got.frames, _, got.err = r.Next(t.Context(), nil)
		return got
	}
	moved := make(chan result, 1)
	go func() { moved <- next(waiting) }()
	if got := next(h.Follow(account, turn, 0)); len(got.frames) == 0 || got.err != nil {
		t.Fatalf("before: %+v", got)
	}
	h.Isolate(true)
	if got := <-moved; !errors.Is(got.err, tail.ErrMoved) {
		t.Errorf("a reader that waits got %+v", got)
	}
	if got := next(behind); len(got.frames) == 0 || got.err != nil {
		t.Errorf("what is stored and in memory: %+v", got)
	}
	if got := next(behind); !errors.Is(got.err, tail.ErrMoved) {
		t.Errorf("at the end of it, the reader got %+v", got)
	}
	h.Isolate(false)
	again := h.Follow(account, turn, 2)
	go func() { moved <- next(again) }()
	stream.Publish(3, 3, []byte("3\n"), false)
	if got := <-moved; string(got.frames) != "3\n" || got.err != nil {
		t.Errorf("after the isolation: %+v", got)
	}
}

// hostOf returns a host that writes nothing.
func hostOf(t *testing.T, id protocol.NodeID, log Log, leaseIsValid *bool) *Host {
	t.Helper()
	runtime := shell.NewRuntime(zap.NewNop(), 1)
	h := New(Config{
		Node: host.Node{ID: id, Runtime: runtime, LeaseIsValid: func() bool { return *leaseIsValid }}, Log: log, Model: llmtest.Answer(), Logger: zap.NewNop(),
	})
	t.Cleanup(func() {
		h.Stop()
		runtime.Close()
	})
	return h
}

// idle is the behavior of an actor that decides nothing.
type idle struct{}

func (idle) Decide(any, shell.Status) func(error)  { return nil }
func (idle) Step(replies []func(error)) shell.Step { return shell.Step{Replies: replies} }
func (idle) Refuse(any)                            {}
func (idle) End(shell.Status)                      {}

// runIdle makes a host run a turn with a stream.
func runIdle(h *Host, account protocol.AccountID, turn protocol.TurnID, stream *tail.Stream) {
	h.Spawn(turn, &running{Account: account, Epoch: 1, Work: &live{stream: stream}}, h.Shell(idle{}, turn, 1, zap.NewNop()))
	h.waiting.wake(turn)
}

// orphanLog is a Log to which nothing is appended. It counts its calls.
type orphanLog struct {
	Log
	head  turnlog.Head
	reads atomic.Int64
}

func (l *orphanLog) TurnFrames(context.Context, protocol.AccountID, protocol.TurnID, int64, int) ([]byte, int64, error) {
	l.reads.Add(1)
	return nil, 0, nil
}

func (l *orphanLog) TurnHead(context.Context, protocol.AccountID, protocol.TurnID) (turnlog.Head, error) {
	l.reads.Add(1)
	return l.head, nil
}

// After a crash all readers of a node wait for their turns to get an owner. Their reads of the store delay the
// takeovers, so they must be few.
func TestReadersOfAnUnownedTurnPollSeldomAndAreWokenWhenItRuns(t *testing.T) {
	here, other := protocol.NewNodeID(), protocol.NewNodeID()
	const seconds = 10
	for name, c := range map[string]struct {
		head turnlog.Head
		most int64 // reads of the store
	}{
		"released":             {turnlog.Head{LastSequence: 2}, 1 + seconds},
		"of a dead node":       {turnlog.Head{LastSequence: 2, Owner: &other, OwnerDead: true}, 1 + seconds},
		"about to run here":    {turnlog.Head{LastSequence: 2, Owner: &here}, 1 + seconds},
		"runs on another node": {turnlog.Head{LastSequence: 2, Owner: &other}, 1 + seconds*int64(time.Second/tailPoll)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &orphanLog{head: c.head}
				valid := true
				n := hostOf(t, here, log, &valid)
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
				if reads := log.reads.Load(); reads > c.most {
					t.Errorf("%d reads of the store in %d s, want at most %d", reads, seconds, c.most)
				}
				reads := log.reads.Load()
				runIdle(n, account, turn, runsOf("1\n2\n", "3\n4\n"))
				synctest.Wait()
				if frames := <-read; frames != "3\n4\n" || log.reads.Load() != reads {
					t.Errorf("the reader got %q, with %d more reads of the store", frames, log.reads.Load()-reads)
				}
				if len(n.waiting.wakers) > 0 {
					t.Error("a waker is still registered after the reader was woken")
				}
			})
		})
	}
}

func TestACommandContinuesWhenItsTurnStartsToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		valid := true
		h := hostOf(t, protocol.NewNodeID(), nil, &valid)
		account, turn, begun := protocol.NewAccountID(), protocol.NewTurnID(), time.Now()
		done := make(chan error, 1)
		go func() { done <- h.awaitRunning(t.Context(), account, turn, nil, time.Hour) }()
		synctest.Wait()
		known := tail.New(0)
		runIdle(h, account, turn, known)
		if err := <-done; err != nil || time.Since(begun) > 0 || len(h.waiting.wakers) > 0 {
			t.Errorf("the turn started to run: awaitRunning returned %v after %s", err, time.Since(begun))
		}
		if err := h.awaitRunning(t.Context(), account, turn, nil, time.Hour); err != nil || time.Since(begun) > 0 {
			t.Errorf("the turn runs already: awaitRunning returned %v after %s", err, time.Since(begun))
		}
		if err := h.awaitRunning(t.Context(), account, turn, known, time.Minute); err != nil || time.Since(begun) != time.Minute || len(h.waiting.wakers) > 0 {
			t.Errorf("the turn runs only with the known stream: awaitRunning returned %v after %s, want one minute", err, time.Since(begun))
		}
	})
}
