// Package memory handles the requests for the consents of an account to sources of memory, and for the location context of a
// conversation, which needs one.
//
// It contains no SQL and no state.
package memory

import (
	"context"
	"time"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
)

// Store stores consents and location contexts; see package persistence/memory.
type Store interface {
	Consents(ctx context.Context, account protocol.AccountID) ([]protocol.MemoryConsent, error)
	SetConsent(ctx context.Context, account protocol.AccountID, consent protocol.MemoryConsent) (stored protocol.MemoryConsent, err error)
	PutLocation(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, at *protocol.LocationContext) (stored *protocol.LocationContext, err error)
	Location(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID) (*protocol.LocationContext, error)
	DeleteLocation(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID) error
}

// Handlers handle the requests for consents and location contexts.
type Handlers struct {
	Store Store
	Now   func() time.Time
}

// list answers with all sources on one page.
func (h *Handlers) list(ctx context.Context, _ *resource.Nothing) (*resource.Body[protocol.List[protocol.MemoryConsent]], error) {
	consents, err := h.Store.Consents(ctx, exchange.CallerOf(ctx).AccountID)
	if err != nil {
		return nil, err
	}
	return resource.OK(protocol.List[protocol.MemoryConsent]{Data: consents}), nil
}

type consentInput struct {
	Source protocol.MemorySource `path:"source" enum:"conversations,files,projects,location,connectors"`
	Body   struct {
		Granted bool `json:"granted"`
		Precise bool `json:"precise,omitempty" doc:"Only of location, and only if granted: coordinates are stored as they are sent. Absent: false, they are rounded to 0.01°, which is about one kilometre."`
	}
}

func (h *Handlers) put(ctx context.Context, in *consentInput) (*resource.Body[protocol.MemoryConsent], error) {
	if in.Body.Precise && (in.Source != protocol.SourceLocation || !in.Body.Granted) {
		return nil, protocol.Invalid("body.precise", "is only possible for the location, and only if it is granted")
	}
	stored, err := h.Store.SetConsent(ctx, exchange.CallerOf(ctx).AccountID, protocol.MemoryConsent{Source: in.Source, Granted: in.Body.Granted, Precise: in.Body.Precise})
	if err != nil {
		return nil, err
	}
	return resource.OK(stored), nil
}
