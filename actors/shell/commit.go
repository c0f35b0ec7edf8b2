package shell

import (
	"go.uber.org/zap"

	"turnstone/protocol/failpoint"
)

// Step is the result of one decision of an actor. For every actor, its parts happen only in this order:
//
//	durable → visible → effects → acknowledged
//
// Readers see only what is stored. An effect starts only after the decision that caused it is stored. A command is
// acknowledged only after all of that. When Store fails, nothing of the step becomes visible or takes effect, and the
// callers get the error.
type Step struct {
	// Store passes the events to the store, which calls done once, from any goroutine. It is nil if there are no
	// events.
	Store   func(done func(error))
	Show    func()          // makes the events visible to readers
	Perform func()          // starts the effects
	Replies []func(error)   // reply to the callers
	Last    bool            // the actor decides nothing after this step
	Point   failpoint.Point // between the commit and the publication of the step
}

// stored is the message that the actor gets when the store of a step is done.
type stored struct {
	step Step
	err  error
}

// commit starts a step. The actor decides nothing until it gets the message stored.
func (s *Shell) commit(next Step) {
	if next.Store == nil {
		s.settle(stored{step: next})
		return
	}
	s.storing = true
	post := s.post
	next.Store(func(err error) { post(stored{step: next, err: err}) })
}

// settle finishes a step after its store is done, or without one.
func (s *Shell) settle(done stored) {
	if done.err == nil {
		if done.step.Show != nil {
			done.step.Show()
		}
		if done.step.Perform != nil && s.status == Active { // otherwise this actor no longer owns what it runs
			done.step.Perform()
		}
		if done.step.Last && s.status == Active {
			s.end(Finished)
		}
	}
	for _, reply := range done.step.Replies {
		reply(done.err)
	}
}

// stepStored settles the step that was being stored. After an error the actor gives up: another owner, or its next
// actor, continues from the log.
func (s *Shell) stepStored(done stored) {
	s.storing = false
	if done.err == nil {
		done.err = failpoint.Before(done.step.Point)
	}
	s.settle(done)
	if err := failpoint.After(done.step.Point, done.err); err != nil {
		s.log.Warn("the actor gives up", zap.Error(err))
		s.abandon()
	}
}
