// Package memory handles the requests for the consents of an account to sources of memory, and for the location context of a
// conversation, which needs one.
//
// It contains no SQL and no state.
package memory

import (
	"context"
	"time"

	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
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

// Routes returns the routes of consents and location contexts.
func (h *Handlers) Routes() []route.Route {
	return append(h.locationRoutes(),
		route.Call("GET", "/memory-sources", "listMemorySources", "List the sources of memory", route.Reads, h.list).
			DescribedAs("Lists every source with the consent of the account. Without a consent, nothing is read from a source for another conversation; none is granted by default. "+
				"conversations: models search the titles and messages of other conversations (search_conversations), but never from a temporary conversation. "+
				"projects: they also find conversations of other projects, except of projects with the memory scope `project`. "+
				"location: a conversation can have a location context, which only the tool location reads. "+
				"files and connectors: no tool needs these consents yet; models read the files of their conversation, of its project and, outside of projects, of the library."),
		route.Call("PUT", "/memory-sources/{source}/consent", "putMemoryConsent", "Grant or revoke a consent", route.Writes, h.put).
			DescribedAs("Stores the consent to a source. A revocation applies from the next request to a model and the next call of a tool on. With the consent to the location, the location contexts of all conversations end; without `precise`, stored ones are rounded. To repeat a request changes nothing.").
			WithExample(route.Object{"granted": true}),
	)
}

// list answers with all sources on one page.
func (h *Handlers) list(ctx context.Context, _ *resource.Nothing) (*resource.Body[protocol.List[protocol.MemoryConsent]], error) {
	consents, err := h.Store.Consents(ctx, router.CallerOf(ctx).AccountID)
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
	stored, err := h.Store.SetConsent(ctx, router.CallerOf(ctx).AccountID, protocol.MemoryConsent{Source: in.Source, Granted: in.Body.Granted, Precise: in.Body.Precise})
	if err != nil {
		return nil, err
	}
	return resource.OK(stored), nil
}
