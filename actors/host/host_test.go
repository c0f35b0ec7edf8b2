package host

import (
	"context"
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
