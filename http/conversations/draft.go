package conversations

import (
	"context"

	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/protocol"
)

func (h *Handlers) draftRoutes() []route.Route {
	const path = "/conversations/{conversation_id}/draft"
	return []route.Route{
		route.Call("GET", path, "getDraft", "Get a draft", route.Reads, h.getDraft).
			DescribedAs("Returns the draft of a conversation. A conversation without one has an empty draft."),
		route.Call("PUT", path, "putDraft",
			"Save a draft", route.Writes, h.putDraft).WithMaxBody(route.MaxBody).
			DescribedAs("Stores a message that was typed but not sent, for all devices of the account. An empty draft clears it. Pass the version that the change is based on in If-Match or in `version`; if the draft has changed since that version, the request fails with 409 `stale_version` and the stored draft. Without a version, the last write wins. If the account has not all of the files that the draft gets, the response is 409 `conflict` with their states in `current`.").
			WithExample(route.Object{"content": "And seven times eight?", "version": 3}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeConflict),
	}
}

func (h *Handlers) getDraft(ctx context.Context, in *resource.InConversation) (*resource.Versioned[protocol.Draft], error) {
	return draftOf(h.Drafts.Draft(ctx, router.CallerOf(ctx).AccountID, in.ConversationID))
}

func draftOf(draft *protocol.Draft, err error) (*resource.Versioned[protocol.Draft], error) {
	if err != nil {
		return nil, err
	}
	return resource.WithETag(*draft, draft.Version), nil
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
	return draftOf(h.Drafts.PutDraft(ctx, router.CallerOf(ctx).AccountID, in.ConversationID, in.Body.Content, in.Body.Attachments, version))
}
