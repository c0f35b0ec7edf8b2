package shell

// abandon ends the actor without another step.
func (s *Shell) abandon() {
	if s.status == Active {
		s.end(Lost)
	}
	for _, message := range s.waiting {
		s.behavior.Refuse(message)
	}
	s.waiting = nil
}

// end stops the timers and lets the actor linger.
func (s *Shell) end(status Status) {
	s.status = status
	for _, timer := range s.timers {
		timer.Stop()
	}
	s.timers = nil
	s.behavior.End(status)
	s.owner.Ended(status)
	if s.self != nil { // otherwise the actor is already stopping
		s.After(linger, lingerPassed{})
	}
}
