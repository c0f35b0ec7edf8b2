package exchange

import (
	"context"
	"fmt"

	"turnstone/protocol"
)

const (
	defaultRequests = 32 // default of the limit of requests in progress
	cancelSlots     = 2  // additional slots for cancels: Stop works while other requests hang
)

// RequestSlots limits the requests of an account that are in progress on this node. Any goroutine may call its methods.
type RequestSlots struct {
	SlotCounter[protocol.AccountID]
	limit int // per account
}

// NewRequestSlots returns slots that are all free. limit 0 stands for 32.
func NewRequestSlots(limit int) *RequestSlots {
	if limit == 0 {
		limit = defaultRequests
	}
	return &RequestSlots{limit: limit}
}

// Acquire takes one of the slots of the caller's account, if there is a caller. A request that may be a cancel may take a reserved slot;
// its handler calls CheckReservedSlot.
func (s *RequestSlots) Acquire(ex *Exchange, mayCancel bool) error {
	if ex.Caller == nil {
		return nil
	}
	account := ex.Caller.AccountID
	taken := s.Take(account, s.limit)
	if !taken && mayCancel {
		taken = s.Take(account, s.limit+cancelSlots)
		ex.reserved = taken
	}
	if !taken {
		return s.tooMany()
	}
	ex.slot = s
	return nil
}

func (s *RequestSlots) tooMany() error {
	return &protocol.Error{Code: protocol.CodeTooManyRequests, Detail: fmt.Sprintf("At most %d requests may be in progress at once.", s.limit)}
}

// ReleaseSlot releases the slot that Acquire has taken for the request, if it still has it.
func (ex *Exchange) ReleaseSlot() {
	if ex.slot != nil {
		ex.slot.Release(ex.Caller.AccountID)
		ex.slot = nil
	}
}

// CheckReservedSlot refuses the request of ctx if it has one of the slots that are reserved for cancels, and is not a cancel.
func CheckReservedSlot(ctx context.Context, cancels bool) error {
	if ex := Of(ctx); ex.slot != nil && ex.reserved && !cancels {
		return ex.slot.tooMany()
	}
	return nil
}
