package memory

import (
	"context"
	"slices"

	"turnstone/http/route"
	"turnstone/protocol"
)

// Routes returns the routes of consents and location contexts.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags:   []route.Tag{{Name: "memory-sources", Description: "What the user allows models to use beyond a conversation."}},
		Params: []route.Param{{Name: "source", Parse: parseSource, Owns: ofEveryAccount}},
		Routes: append(h.locationRoutes(), h.consentRoutes()...),
	}
}

// parseSource returns an error for a text that is not a source of memory.
func parseSource(text string) error {
	if !slices.Contains(protocol.MemorySources, protocol.MemorySource(text)) {
		return protocol.Errorf(protocol.CodeNotFound, "There is no such source of memory.")
	}
	return nil
}

// ofEveryAccount is for what every account has.
func ofEveryAccount(context.Context, protocol.AccountID, string) error { return nil }

func (h *Handlers) consentRoutes() []route.Route {
	return []route.Route{
		route.Call("GET", "/memory-sources", "listMemorySources", "List the sources of memory", route.Reads, h.list).
			DescribedAs("Lists every source with the consent of the account. Without a consent, nothing is read from a source for another conversation; none is granted by default. " +
				"conversations: models search the titles and messages of other conversations (search_conversations), but never from a temporary conversation. " +
				"projects: they also find conversations of other projects, except of projects with the memory scope `project`. " +
				"location: a conversation can have a location context, which only the tool location reads. " +
				"files and connectors: no tool needs these consents yet; models read the files of their conversation, of its project and, outside of projects, of the library."),
		route.Call("PUT", "/memory-sources/{source}/consent", "putMemoryConsent", "Grant or revoke a consent", route.Writes, h.put).
			DescribedAs("Stores the consent to a source. A revocation applies from the next request to a model and the next call of a tool on. " +
				"With the consent to the location, the location contexts of all conversations end; without `precise`, stored ones are rounded. " +
				"To repeat a request changes nothing.").
			WithExample(route.Object{"granted": true}),
	}
}

func (h *Handlers) locationRoutes() []route.Route {
	const (
		path    = "/conversations/{conversation_id}/location-context"
		consent = " Without the consent to the source location, the request fails with 409 `consent_required`."
	)
	return []route.Route{
		route.Call("GET", path, "getLocationContext", "Get the location of a conversation", route.Reads, h.getLocation).
			DescribedAs("Returns where the user is, as the tools of this conversation see it; 404 if no location is set, or only one that has expired." + consent).
			WithCodes(protocol.CodeConsentRequired),
		route.Call("PUT", path, "putLocationContext", "Set the location of a conversation", route.Writes, h.putLocation).
			DescribedAs("Stores where the user is, until `expires_at`, a revocation of the consent, or the end of the conversation. " +
				"Only tools in this conversation use it, and no message contains it. " +
				"Unless the consent is `precise`, the coordinates are rounded to 0.01°, and `accuracy_m` grows accordingly; then a `place` with a " +
				"digit, as addresses have, is not stored." + consent).
			WithExample(route.Object{"latitude": 53.3671, "longitude": 7.2063, "accuracy_m": 40, "place": "Emden", "expires_at": "2026-03-01T20:00:00Z"}).
			WithCodes(protocol.CodeConsentRequired),
		route.Call("DELETE", path, "deleteLocationContext", "Remove the location of a conversation", route.Writes, h.deleteLocation).
			DescribedAs("Forgets where the user is, if that is stored. It needs no consent."),
	}
}
