package actors

// step is what one decision of an actor leads to. Its parts happen in one order only, whatever the actor:
//
//	durable → visible → effects → acknowledged
//
// Nothing is shown that is not stored, nothing is done in the world before what decided it is stored, and nobody is
// told that something was accepted before all of that. When store fails, nothing of the step is shown or done, and the
// callers hear why.
type step struct {
	store   func(done func(error)) // hands the events to the store; done is called once, from any goroutine; nil: nothing to store
	show    func()                 // makes them visible to readers
	perform func()                 // starts the effects
	answer  func(error)            // tells the callers
}

// stored comes back to the actor's mailbox when a step's store is done.
type stored struct {
	step step
	err  error
}

// commit begins a step. post sends a message to the actor itself. The actor decides nothing more until the step is back.
func commit(s step, post func(any)) (inFlight bool) {
	if s.store == nil {
		settle(stored{step: s})
		return false
	}
	s.store(func(err error) { post(stored{step: s, err: err}) })
	return true
}

// settle ends a step, in the actor's own goroutine.
func settle(s stored) {
	if s.err == nil {
		if s.step.show != nil {
			s.step.show()
		}
		if s.step.perform != nil {
			s.step.perform()
		}
	}
	s.step.answer(s.err)
}
