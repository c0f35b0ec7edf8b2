package code

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"turnstone/protocol"
)

// queue lets perNode children run at the same time, and perAccount of one account. An account that waits for its own children
// takes no slot of the node.
type queue struct {
	node *semaphore.Weighted

	mu   sync.Mutex
	open map[protocol.AccountID]*accountQueue // guarded by mu; accounts without tasks have none
}

type accountQueue struct {
	running *semaphore.Weighted
	users   int // guarded by queue.mu: the tasks that run or wait
}

func newQueue() *queue {
	return &queue{node: semaphore.NewWeighted(perNode), open: map[protocol.AccountID]*accountQueue{}}
}

// enter waits for a slot, until ctx ends. own reports whether the account waited for its own tasks then.
func (q *queue) enter(ctx context.Context, account protocol.AccountID) (leave func(), own bool, err error) {
	mine := q.join(account)
	if err := mine.running.Acquire(ctx, 1); err != nil {
		q.forget(account, mine)
		return nil, true, err
	}
	if err := q.node.Acquire(ctx, 1); err != nil {
		mine.running.Release(1)
		q.forget(account, mine)
		return nil, false, err
	}
	return func() {
		q.node.Release(1)
		mine.running.Release(1)
		q.forget(account, mine)
	}, false, nil
}

func (q *queue) join(account protocol.AccountID) *accountQueue {
	q.mu.Lock()
	defer q.mu.Unlock()
	mine := q.open[account]
	if mine == nil {
		mine = &accountQueue{running: semaphore.NewWeighted(perAccount)}
		q.open[account] = mine
	}
	mine.users++
	return mine
}

// forget removes a task of an account, and the queue of the account with its last task.
func (q *queue) forget(account protocol.AccountID, mine *accountQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(q.open, account)
	}
}
