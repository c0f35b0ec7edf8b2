package turn

import (
	"context"
	"sync"

	"turnstone/protocol"
)

// modelCallSlots limits the model calls of each account that run on the node at the same time to the live turns that the account
// may have. Turns that wait for approvals may be more than these, and all of them may be approved at once: their decisions are
// accepted, and their model calls wait.
type modelCallSlots struct {
	limit int // 0: no limit

	mu       sync.Mutex
	accounts map[protocol.AccountID]*slotsInUse // guarded by mu
}

// slotsInUse are the slots of one account.
type slotsInUse struct {
	slots chan struct{} // a call puts a value in while it runs
	calls int           // that run or wait; guarded by modelCallSlots.mu
}

// use makes a call in a slot of an account. It waits for one until ctx ends.
func (s *modelCallSlots) use(ctx context.Context, account protocol.AccountID, call func() error) error {
	if s.limit == 0 {
		return call()
	}
	slots := s.join(account)
	defer s.leave(account)
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
		return call()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *modelCallSlots) join(account protocol.AccountID) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.accounts[account]
	if of == nil {
		of = &slotsInUse{slots: make(chan struct{}, s.limit)}
		s.accounts[account] = of
	}
	of.calls++
	return of.slots
}

func (s *modelCallSlots) leave(account protocol.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.accounts[account]
	if of.calls--; of.calls == 0 {
		delete(s.accounts, account)
	}
}
