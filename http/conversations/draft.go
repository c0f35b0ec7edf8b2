package conversations

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
)

func (h *Handlers) getDraft(ctx context.Context, in *resource.InConversation) (*resource.Versioned[protocol.Draft], error) {
	return resource.WithETag(h.Drafts.Draft(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID))
}

type putDraftInput struct {
	resource.InConversation
	resource.IfMatch
	Body struct {
		Content     string            `json:"content" maxLength:"100000"`
		Attachments []protocol.FileID `json:"attachments,omitempty" maxItems:"50" doc:"The files to send with the message, without duplicates. A file that the draft gets must exist."`
		Version     *int64            `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Without either, the last write wins."`
	}
}

func (h *Handlers) putDraft(ctx context.Context, in *putDraftInput) (*resource.Versioned[protocol.Draft], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Drafts.PutDraft(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.Body.Content, in.Body.Attachments, version))
}
