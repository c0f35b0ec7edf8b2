package conversations

import (
	"context"

	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/protocol"
)

// placementRoutes are the routes that change where the lists show a conversation.
func (h *Handlers) placementRoutes() []route.Route {
	const path = "/conversations/{conversation_id}"
	return []route.Route{
		route.Call("PUT", path+"/archive", "setArchived", "Archive a conversation", route.Writes, h.setArchived).
			DescribedAs("Moves a conversation into the archive, or back. A list shows archived conversations only if `archived` includes them; nothing else changes. A change requires the current version of the conversation in If-Match or in `version`. A repetition of the stored value changes nothing.").
			WithExample(route.Object{"archived": true, "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired),
		route.Call("PUT", path+"/pin", "setPinned", "Pin a conversation", route.Writes, h.setPinned).
			DescribedAs("Pins a conversation, so that lists show it before all others, or removes the pin. A change requires the current version of the conversation in If-Match or in `version`. A repetition of the stored value changes nothing.").
			WithExample(route.Object{"pinned": true, "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired),
	}
}

type setArchivedInput struct {
	resource.InConversation
	resource.IfMatch
	Body struct {
		Archived bool   `json:"archived"`
		Version  *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) setArchived(ctx context.Context, in *setArchivedInput) (*resource.Versioned[protocol.Conversation], error) {
	version, err := in.RequiredVersion(in.Body.Version)
	if err != nil {
		return nil, err
	}
	return conversationChanged(h.Placements.SetArchived(ctx, router.CallerOf(ctx).AccountID, in.ConversationID, in.Body.Archived, version))
}

type setPinnedInput struct {
	resource.InConversation
	resource.IfMatch
	Body struct {
		Pinned  bool   `json:"pinned"`
		Version *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) setPinned(ctx context.Context, in *setPinnedInput) (*resource.Versioned[protocol.Conversation], error) {
	version, err := in.RequiredVersion(in.Body.Version)
	if err != nil {
		return nil, err
	}
	return conversationChanged(h.Placements.SetPinned(ctx, router.CallerOf(ctx).AccountID, in.ConversationID, in.Body.Pinned, version))
}
