package http

import (
	"context"

	"turnstone/protocol"
)

func (s *Server) draftRoutes() []route {
	return []route{
		call("PUT", "/conversations/{conversation_id}/draft", "putDraft",
			"Keeps what was typed and not sent, for every device. The empty draft clears.", writes, s.putDraft).
			about("An empty draft clears it. With If-Match or version a change since then is refused with the stored draft; without, the last writer wins.").
			sends(object{"content": "And seven times eight?", "version": 3}).
			refuses(protocol.CodeStaleVersion),
	}
}

type putDraftInput struct {
	InConversation
	IfMatch
	Body struct {
		Content     string            `json:"content" maxLength:"100000"`
		Attachments []protocol.FileID `json:"attachments,omitempty" maxItems:"50" doc:"Files that would be sent along; looked at when they are sent."`
		Version     *int64            `json:"version,omitempty" doc:"In place of If-Match. Without either the last writer wins."`
	}
}

func (s *Server) putDraft(ctx context.Context, in *putDraftInput) (*versioned[protocol.Draft], error) {
	version, err := in.version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	draft, err := s.DB.PutDraft(ctx, callerOf(ctx).AccountID, in.ConversationID, in.Body.Content, in.Body.Attachments, version)
	if err != nil {
		return nil, err
	}
	return withETag(*draft, draft.Version), nil
}
