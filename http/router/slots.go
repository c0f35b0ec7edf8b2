package router

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"sync"
	"time"

	"turnstone/http/route"
	"turnstone/protocol"
)

const (
	defaultRequests = 32 // default of Config.MaxRequests
	cancelSlots     = 2  // additional slots for cancels: Stop works while other requests hang
)

// SlotCounter counts the slots that each holder has in use: an account, or an address. They are for streams, requests or
// downloads.
type SlotCounter[K comparable] struct {
	mu   sync.Mutex
	open map[K]int // guarded by mu
	all  int       // guarded by mu: the sum of open
}

// Open returns the number of slots in use.
func (c *SlotCounter[K]) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// Take takes a slot for a holder, unless it already has limit slots in use, and reports whether it did. The caller
// releases the slot with Release.
func (c *SlotCounter[K]) Take(holder K, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[K]int{}
	}
	if c.open[holder] >= limit {
		return false
	}
	c.open[holder]++
	c.all++
	return true
}

// Release returns a slot that Take has taken.
func (c *SlotCounter[K]) Release(holder K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.open[holder]--; c.open[holder] <= 0 {
		delete(c.open, holder)
	}
}

// requestSlots limits the requests of an account that are in progress.
type requestSlots struct {
	SlotCounter[protocol.AccountID]
	limit int // per account
}

// acquire takes one of the slots of the account. release releases it; further calls of release have no effect. A
// request that may be a cancel may take a reserved slot; checkReserved then refuses the request if it is not a cancel.
func (s *requestSlots) acquire(ex *Exchange, policy route.Policy) error {
	if ex.Caller == nil {
		return nil
	}
	account := ex.Caller.AccountID
	if ex.hasSlot = s.Take(account, s.limit); !ex.hasSlot && policy.Cancels {
		ex.hasSlot = s.Take(account, s.limit+cancelSlots)
		ex.hasReservedSlot = ex.hasSlot
	}
	if !ex.hasSlot {
		return s.tooMany()
	}
	return nil
}

func (s *requestSlots) checkReserved(ex *Exchange, cancels bool) error {
	if ex.hasReservedSlot && !cancels {
		return s.tooMany()
	}
	return nil
}

func (s *requestSlots) tooMany() error {
	return &protocol.Error{Code: protocol.CodeTooManyRequests, Detail: fmt.Sprintf("At most %d requests may be in progress at once.", s.limit)}
}

func (s *requestSlots) release(ex *Exchange) {
	if ex.hasSlot {
		ex.hasSlot = false
		s.Release(ex.Caller.AccountID)
	}
}

// CheckReservedSlot refuses the request of ctx if it has a reserved slot and is not a cancel.
func CheckReservedSlot(ctx context.Context, cancels bool) error {
	ex := ExchangeOf(ctx)
	return ex.router.requests.checkReserved(ex, cancels)
}

// beginStream releases the request slot of a request that becomes a stream: streams have a limit of their own. The
// request is counted now. The returned function logs the request and measures the stream; if the stream took over the connection, the caller calls it when the
// stream has ended.
func (rt *Router) beginStream(ex *Exchange) (ended func()) {
	rt.requests.release(ex)
	rt.Metrics.request(ex.method, ex.pattern, stdhttp.StatusOK, time.Since(ex.started))
	ex.streams = true
	request := ex.finished(stdhttp.StatusOK)
	return func() { rt.logRequest(request) }
}
