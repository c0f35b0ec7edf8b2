package shell

import (
	"time"
)

// After sends a message to the actor itself after a delay, unless the actor ends first. Only its Behavior may call it.
func (s *Shell) After(delay time.Duration, message any) {
	post := s.post
	s.timers = append(s.timers, time.AfterFunc(delay, func() { post(message) }))
}
