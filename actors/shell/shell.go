package shell

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
)

// linger is how long an actor responds to commands after its last decision, so that no command is lost.
const linger = 2 * time.Second

// Shell runs one actor: it receives messages, lets the behavior decide on them, and executes the decisions in the order
// of commit. While a step is being stored, nothing is decided. Messages that arrive in the meantime become the next
// step, so steps grow with the load, and on a quiet node each message is stored at once.
//
// Order: messages are decided in the order in which they arrive, each once; several may share a step. Loss: a message is passed to
// Decide, or to Refuse if it waited when the actor was abandoned. One that arrives when the actor is gone is lost without notice, so
// a caller limits the time that it waits for a reply, and then looks in the store. Resume: none; the next owner restores the
// work from the store, without its messages. Slow actor: the mailbox has no limit of its own, and sending never waits; callers
// limit what they send before they get a reply. Close: Step.Last ends the work; Release does when the messages before it are stored,
// Abandon and a failed store do at once. The actor then responds for linger, without new decisions. Concurrency: Receive gets
// one message at a time; any goroutine may send messages, and may call Stopped.
//
// The shell knows nothing of what its actor does. It never blocks. A panic stops this actor, not the node.
type Shell struct {
	// Set by New.
	behavior Behavior
	send     func(to *actor.PID, message any)
	log      *zap.Logger
	owner    Owner
	stopped  chan struct{}

	// Owned by Receive.
	self    *actor.PID
	post    func(any) // sends a message to the actor itself
	waiting []any     // messages that were not decided yet
	spare   []any     // empty slice with spare capacity, for the next messages
	storing bool
	status  Status
	timers  []*time.Timer
}

// Behavior is what a shell runs: a turn, an upload, or any other work. All methods are called from Receive, and none
// may block.
type Behavior interface {
	// Decide decides on one message. For a message with a caller it returns the function that replies to the caller.
	Decide(message any, status Status) (reply func(error))
	// Step returns the step that executes what was decided since the last one.
	Step(replies []func(error)) Step
	// Refuse replies to a message that will not be decided here, if it has a caller.
	Refuse(message any)
	// End stops everything that the actor has started: it decides nothing more.
	End(status Status)
}

// Owner is notified when an actor breaks or ends. Its methods are called from Receive and must not block.
type Owner interface {
	// Broken is called when the behavior has panicked. Ended follows.
	Broken()
	// Ended is called when the actor decides nothing more. A finished one still responds to commands for a while.
	Ended(status Status)
	// Gone is called when the actor does not respond any more.
	Gone()
}

// Status is the status of an actor: whether it still makes decisions, and why not.
type Status uint8

// The statuses.
const (
	Active   Status = iota
	Finished        // its last step is durable: it still responds to commands, without new events
	Lost            // fenced, released or broken: another owner continues
)

// Messages that every actor understands, in addition to stored.
type (
	// StartTimer sends a message to the actor itself after a delay.
	StartTimer struct {
		Delay   time.Duration
		Message any
	}
	// Release asks the actor to stop at a persisted boundary, so that another owner continues.
	Release struct{}
	// Abandon asks the actor to stop at once, without another step.
	Abandon      struct{}
	lingerPassed struct{}
)

// New returns a shell for an actor. send sends a message to an actor.
func New(b Behavior, send func(*actor.PID, any), log *zap.Logger, o Owner) *Shell {
	return &Shell{behavior: b, send: send, log: log, owner: o, stopped: make(chan struct{})}
}

// Stopped returns a channel that is closed when the actor is gone.
func (s *Shell) Stopped() <-chan struct{} { return s.stopped }

// Self returns the actor's address. Only its Behavior may call it.
func (s *Shell) Self() *actor.PID { return s.self }

// Post returns a function that sends messages to the actor from any goroutine. Only its Behavior may call it.
func (s *Shell) Post() func(message any) { return s.post }

// Receive processes one message.
func (s *Shell) Receive(c actor.Context) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("actor panicked", zap.String("kind", fmt.Sprintf("%T", p)), zap.ByteString("stack", debug.Stack()))
			s.owner.Broken()
			s.abandon()
		}
	}()
	switch message := c.Message().(type) {
	case *actor.Started:
		s.self = c.Self()
		s.post = s.poster()
	case *actor.Stopping:
		s.self = nil // end must not start a timer any more
		s.abandon()
	case *actor.Stopped:
		close(s.stopped)
		return
	case stored:
		s.stepStored(message)
	case StartTimer:
		s.After(message.Delay, message.Message)
	case Abandon:
		s.abandon()
	case lingerPassed:
		s.owner.Gone()
		c.Stop(c.Self())
		return
	default:
		s.waiting = append(s.waiting, message)
	}
	for !s.storing && len(s.waiting) > 0 {
		s.advance()
	}
}

// advance lets the behavior decide on all waiting messages, and commits the result as one step.
func (s *Shell) advance() {
	waiting := s.waiting
	s.waiting, s.spare = s.spare[:0], nil
	var replies []func(error)
	for i, message := range waiting {
		if _, release := message.(Release); release && s.status == Active {
			if i == 0 { // nothing was decided since the last step: at a persisted boundary
				s.waiting = waiting[1:]
				s.abandon()
				return
			}
			s.waiting = append(s.waiting, waiting[i:]...) // after the commit of what was decided so far
			break
		}
		if reply := s.behavior.Decide(message, s.status); reply != nil {
			replies = append(replies, reply)
		}
	}
	clear(waiting)
	s.spare = waiting[:0]
	next := s.behavior.Step(replies)
	if s.status != Active {
		next = Step{Replies: replies}
	}
	s.commit(next)
}

// poster returns a function that sends messages to the actor from any goroutine. The store may be done after the actor
// has stopped; its message is then a dead letter.
func (s *Shell) poster() func(message any) {
	send, self := s.send, s.self
	return func(message any) { send(self, message) }
}
