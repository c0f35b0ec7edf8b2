package host

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/zap"

	"turnstone/actors/shell"
	"turnstone/protocol"
)

type claim struct{}

func (claim) Work() (int, int32) { return 1, 1 }

// noKind is a kind of work that is never claimed.
type noKind struct{}

func (noKind) ClaimDue(context.Context, int) ([]claim, error)      { return nil, nil }
func (noKind) Owned(context.Context) ([]claim, error)              { return nil, nil }
func (noKind) ClaimLost(_ context.Context, c claim) (claim, error) { return c, nil }
func (noKind) Continue(context.Context, claim)                     {}

// recorder is the behavior of an actor that notes its messages.
type recorder struct{ messages chan any }

func (r recorder) Decide(message any, _ shell.Status) func(error) {
	r.messages <- message
	return nil
}
func (recorder) Step(replies []func(error)) shell.Step { return shell.Step{Replies: replies} }
func (recorder) Refuse(any)                            {}
func (recorder) End(shell.Status)                      {}

// An actor can be found as soon as it is listed. Its first message must then be in its mailbox.
func TestNothingOvertakesTheFirstMessageOfAnActor(t *testing.T) {
	runtime := shell.NewRuntime(zap.NewNop(), 2)
	h := New[int, claim, struct{}](Config{Node: Node{Runtime: runtime}, Name: "test"}, noKind{})
	t.Cleanup(func() {
		h.Stop()
		runtime.Close()
	})
	account := protocol.NewAccountID()
	for id := range 2000 {
		r := recorder{make(chan any, 2)}
		found := make(chan struct{})
		go func() {
			defer close(found)
			for {
				if entry := h.Find(account, id); entry != nil {
					h.Send(entry, "second")
					return
				}
			}
		}()
		if h.Spawn(id, &Actor[struct{}]{Account: account, Epoch: 1}, h.Shell(r, id, 1, zap.NewNop()), "first") == nil {
			t.Fatal("the actor was not started")
		}
		<-found
		if got := <-r.messages; got != "first" {
			t.Fatalf("actor %d got %v before its first message", id, got)
		}
	}
}

func TestAnOperationOnTheStoreIsRepeatedUntilTheHostIsStopped(t *testing.T) {
	runtime := shell.NewRuntime(zap.NewNop(), 2)
	t.Cleanup(runtime.Close)
	h := New[int, claim, struct{}](Config{Node: Node{Runtime: runtime}, Name: "test"}, noKind{})
	unavailable, conflict := protocol.Errorf(protocol.CodeUnavailable, "down"), protocol.Errorf(protocol.CodeConflict, "fenced")
	done, tried := make(chan error, 1), make(chan struct{}, 10)
	store := func(results ...error) { // the last one is that of all further tries
		h.Store(func(context.Context) error {
			result := results[0]
			if len(results) > 1 {
				results = results[1:]
			}
			select {
			case tried <- struct{}{}:
			default:
			}
			return result
		}, func(error) {}, func(err error) { done <- err })
	}
	if store(unavailable, unavailable, nil); <-done != nil {
		t.Error("an outage that ended is an error")
	}
	if store(unavailable, conflict); !errors.Is(<-done, conflict) {
		t.Error("the refusal of the store is not the result")
	}
	for len(tried) > 0 {
		<-tried
	}
	store(unavailable)
	<-tried
	h.Stop()
	if !errors.Is(<-done, ErrGone) {
		t.Error("the end of the host is not the result")
	}
	if store(nil); !errors.Is(<-done, ErrGone) {
		t.Error("a stopped host has started an operation")
	}
}
