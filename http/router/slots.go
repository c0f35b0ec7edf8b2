package router

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"time"

	"turnstone/http/exchange"
	"turnstone/http/route"
	"turnstone/protocol"
)

const (
	defaultRequests = 32 // default of Config.MaxRequests
	cancelSlots     = 2  // additional slots for cancels: Stop works while other requests hang
)

// requestSlots limits the requests of an account that are in progress.
type requestSlots struct {
	exchange.SlotCounter[protocol.AccountID]
	limit int // per account
}

// acquire takes one of the slots of the account. release releases it; further calls of release have no effect. A
// request that may be a cancel may take a reserved slot; checkReserved then refuses the request if it is not a cancel.
func (s *requestSlots) acquire(ex *requestState, policy route.Policy) error {
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

func (s *requestSlots) checkReserved(ex *requestState, cancels bool) error {
	if ex.hasReservedSlot && !cancels {
		return s.tooMany()
	}
	return nil
}

func (s *requestSlots) tooMany() error {
	return &protocol.Error{Code: protocol.CodeTooManyRequests, Detail: fmt.Sprintf("At most %d requests may be in progress at once.", s.limit)}
}

func (s *requestSlots) release(ex *requestState) {
	if ex.hasSlot {
		ex.hasSlot = false
		s.Release(ex.Caller.AccountID)
	}
}

// CheckReservedSlot refuses the request of ctx if it has a reserved slot and is not a cancel.
func CheckReservedSlot(ctx context.Context, cancels bool) error {
	ex := stateOf(ctx)
	return ex.router.requests.checkReserved(ex, cancels)
}

// BeginStream releases the request slot of a request that becomes a stream: streams have a limit of their own. The
// request is counted now. ended logs the request and measures the stream; if the stream took over the connection, the
// caller calls it when the stream has ended.
func BeginStream(ctx context.Context) (ended func()) {
	ex := stateOf(ctx)
	rt := ex.router
	rt.requests.release(ex)
	rt.Metrics.request(ex.method, ex.pattern, stdhttp.StatusOK, time.Since(ex.Started))
	ex.streams = true
	request := ex.finished(stdhttp.StatusOK)
	return func() { rt.logRequest(request) }
}
