package conversations

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
)

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
	return resource.WithETag(h.Placements.SetArchived(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.Body.Archived, version))
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
	return resource.WithETag(h.Placements.SetPinned(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.Body.Pinned, version))
}
