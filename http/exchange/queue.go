package exchange

import (
	"context"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

// queueWait limits the wait in a queue, so that most of the time limit of a request is left for its handler.
var queueWait = timelimit.Of(2 * time.Second)

// Queues lets one task of each account run at a time on this node. The others wait in the order of their arrival. An account
// that sends many heavy requests therefore takes no more of Postgres and of the processors than one that sends them one
// after the other.
type Queues struct {
	mu   sync.Mutex
	open map[protocol.AccountID]*accountQueue // guarded by mu; accounts without work have none
}

type accountQueue struct {
	running *semaphore.Weighted
	users   int // guarded by Queues.mu: the tasks that run or wait
}

// NewQueues returns queues without tasks.
func NewQueues() *Queues { return &Queues{open: map[protocol.AccountID]*accountQueue{}} }

// Enter waits until no task of the account runs. The caller calls leave when its task has ended.
// After queueWait, or if ctx ends first, the error is protocol.CodeTooManyRequests.
func (q *Queues) Enter(ctx context.Context, account protocol.AccountID) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, queueWait)
	defer cancel()
	leave, err = q.enter(waiting, account)
	if err != nil {
		return nil, &protocol.Error{
			Code: protocol.CodeTooManyRequests, Err: err,
			Detail: "This account has too many requests of this kind in progress. Send fewer at once.",
		}
	}
	return leave, nil
}

// enter is Enter without its time limit.
func (q *Queues) enter(ctx context.Context, account protocol.AccountID) (leave func(), err error) {
	q.mu.Lock()
	queue := q.open[account]
	if queue == nil {
		queue = &accountQueue{running: semaphore.NewWeighted(1)}
		q.open[account] = queue
	}
	queue.users++
	q.mu.Unlock()
	if err := queue.running.Acquire(ctx, 1); err != nil {
		q.forget(account, queue)
		return nil, err
	}
	return func() {
		queue.running.Release(1)
		q.forget(account, queue)
	}, nil
}

// Open returns the number of accounts with tasks that run or wait.
func (q *Queues) Open() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open)
}

// forget removes one user of the queue, and the queue with its last user.
func (q *Queues) forget(account protocol.AccountID, queue *accountQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if queue.users--; queue.users == 0 {
		delete(q.open, account)
	}
}

// Produce runs a task that creates a body while it writes it. While a write waits for the reader, other tasks of the
// account run.
func (q *Queues) Produce(ctx context.Context, account protocol.AccountID, to io.Writer, task func(to io.Writer) error) error {
	leave, err := q.Enter(ctx, account)
	if err != nil {
		return err
	}
	w := &yieldingWriter{ctx: ctx, queues: q, account: account, to: to, leave: leave}
	defer func() { w.leave() }()
	return task(w)
}

// yieldingWriter leaves the queue of its account while it writes.
type yieldingWriter struct {
	ctx     context.Context
	queues  *Queues
	account protocol.AccountID
	to      io.Writer
	leave   func()
}

func (w *yieldingWriter) Write(content []byte) (int, error) {
	w.leave()
	w.leave = func() {}
	n, err := w.to.Write(content)
	if err != nil {
		return n, err
	}
	leave, err := w.queues.enter(w.ctx, w.account) // the response has begun, so it waits as long as it has to
	if err != nil {
		return n, err
	}
	w.leave = leave
	return n, nil
}
