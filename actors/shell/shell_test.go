package shell

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
)

// counter is a Behavior that adds numbers up and stores the sum. It notes everything that the shell makes it do.
type counter struct {
	store func(done func(error))

	// Owned by Receive.
	sum, decided int

	mu    sync.Mutex
	notes []string // guarded by mu
	ended chan Status
}

type (
	add   struct{ reply chan error }
	crash struct{}
)

var errRefused = errors.New("refused")

func (c *counter) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, what)
}

func (c *counter) noted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notes)
}

func (c *counter) Broken()           { c.note("broken") }
func (c *counter) Ended(Status)      {}
func (c *counter) Gone()             {}
func (c *counter) End(status Status) { c.ended <- status }

func (c *counter) Decide(message any, status Status) func(error) {
	switch message := message.(type) {
	case crash:
		panic("crash")
	case add:
		if status == Active {
			c.decided++
		}
		return func(err error) {
			c.note("acknowledged")
			message.reply <- err
		}
	}
	return nil
}

func (c *counter) Refuse(message any) {
	if message, is := message.(add); is {
		message.reply <- errRefused
	}
}

func (c *counter) Step(replies []func(error)) Step {
	if c.decided == 0 {
		return Step{Replies: replies}
	}
	c.sum, c.decided = c.sum+c.decided, 0
	return Step{
		Replies: replies, Store: c.store,
		Show:    func() { c.note("visible") },
		Perform: func() { c.note("effect") },
		Last:    c.sum >= 3,
	}
}

// startCounter starts a counter whose stores are passed to the returned channel instead of being executed.
func startCounter(t *testing.T) (c *counter, stores chan func(error), send func(message any)) {
	t.Helper()
	stores = make(chan func(error), 8)
	c = &counter{ended: make(chan Status, 1)}
	c.store = func(done func(error)) { stores <- done }
	system := NewSystem(zap.NewNop(), zap.ErrorLevel)
	s := New(c, func(to *actor.PID, message any) { system.Root.Send(to, message) }, zap.NewNop(), c)
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return s }))
	t.Cleanup(func() {
		system.Root.Stop(pid)
		<-s.Stopped()
		system.Shutdown()
	})
	return c, stores, func(message any) { system.Root.Send(pid, message) }
}

func TestAStepIsDurableThenVisibleThenTakesEffectAndIsThenAcknowledged(t *testing.T) {
	c, stores, send := startCounter(t)
	reply := make(chan error, 1)
	send(add{reply})
	done := <-stores
	if noted := c.noted(); len(noted) != 0 {
		t.Errorf("before the step was stored: %v", noted)
	}
	done(nil)
	if err := <-reply; err != nil {
		t.Errorf("the caller got %v", err)
	}
	if noted := c.noted(); !slices.Equal(noted, []string{"visible", "effect", "acknowledged"}) {
		t.Errorf("the order was %v", noted)
	}
}

func TestAStepThatIsNotStoredHasNoEffectAndEndsTheActor(t *testing.T) {
	c, stores, send := startCounter(t)
	first, second := make(chan error, 1), make(chan error, 1)
	send(add{first})
	done := <-stores
	send(add{second}) // waits for the step
	fenced := errors.New("fenced")
	done(fenced)
	if err := <-first; !errors.Is(err, fenced) {
		t.Errorf("the caller of the step got %v", err)
	}
	if err := <-second; !errors.Is(err, errRefused) {
		t.Errorf("the caller that waited got %v", err)
	}
	if status := <-c.ended; status != Lost {
		t.Errorf("the actor ended with the status %d", status)
	}
	if noted := c.noted(); !slices.Equal(noted, []string{"acknowledged"}) {
		t.Errorf("a step without a store did %v", noted)
	}
}

func TestMessagesThatArriveDuringAStoreAreOneStep(t *testing.T) {
	c, stores, send := startCounter(t)
	replies := make(chan error, 3)
	send(add{replies})
	done := <-stores
	send(add{replies})
	send(add{replies})
	done(nil)
	(<-stores)(nil)
	for range 3 {
		if err := <-replies; err != nil {
			t.Errorf("a caller got %v", err)
		}
	}
	if status := <-c.ended; status != Finished {
		t.Errorf("after its last step, the actor has the status %d", status)
	}
	select {
	case <-stores:
		t.Error("there was a third step")
	default:
	}
}

func TestAReleaseWaitsForTheCommitOfWhatWasDecidedBefore(t *testing.T) {
	c, stores, send := startCounter(t)
	first, second, third := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	send(add{first})
	done := <-stores
	send(add{second})
	send(Release{})
	send(add{third})
	done(nil)
	done = <-stores
	select {
	case status := <-c.ended:
		t.Errorf("the actor ended with the status %d before the commit", status)
	default:
	}
	done(nil)
	if err := <-second; err != nil {
		t.Errorf("the caller before the release got %v", err)
	}
	if err := <-third; !errors.Is(err, errRefused) {
		t.Errorf("the caller after the release got %v", err)
	}
	if status := <-c.ended; status != Lost {
		t.Errorf("the actor ended with the status %d", status)
	}
	<-first
}

func TestAPanicEndsOnlyThisActor(t *testing.T) {
	c, _, send := startCounter(t)
	other, stores, sendOther := startCounter(t)
	send(crash{})
	if status := <-c.ended; status != Lost {
		t.Errorf("the actor ended with the status %d", status)
	}
	if noted := c.noted(); !slices.Equal(noted, []string{"broken"}) {
		t.Errorf("the panic did %v", noted)
	}
	reply := make(chan error, 1)
	sendOther(add{reply})
	(<-stores)(nil)
	if err := <-reply; err != nil || len(other.ended) != 0 {
		t.Errorf("the other actor replied %v", err)
	}
}
