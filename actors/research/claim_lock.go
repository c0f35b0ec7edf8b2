package research

import (
	"context"
	"sync"

	"turnstone/protocol"
)

// ownedTask names a task of an account.
type ownedTask struct {
	account protocol.AccountID
	task    protocol.TaskID
}

// claimLocks are the locks of tasks that this node claims because of a command. The zero value has none.
type claimLocks struct {
	mu    sync.Mutex
	locks map[ownedTask]*claimLock // guarded by mu; those in use
}

type claimLock struct {
	slot  chan struct{} // full while the lock is held
	users int           // guarded by claimLocks.mu: the holder, and those that wait
}

// lock waits for the lock of a task. The error is that of ctx.
func (l *claimLocks) lock(ctx context.Context, of ownedTask) (unlock func(), err error) {
	l.mu.Lock()
	lock := l.locks[of]
	if lock == nil {
		if l.locks == nil {
			l.locks = map[ownedTask]*claimLock{}
		}
		lock = &claimLock{slot: make(chan struct{}, 1)}
		l.locks[of] = lock
	}
	lock.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if lock.users--; lock.users == 0 {
			delete(l.locks, of)
		}
	}
	select {
	case lock.slot <- struct{}{}:
		return func() {
			<-lock.slot
			leave()
		}, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
