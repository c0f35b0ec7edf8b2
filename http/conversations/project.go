package conversations

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

type moveConversationInput struct {
	resource.InConversation
	resource.IfMatch
	Body struct {
		ProjectID *protocol.ProjectID `json:"project_id" nullable:"true" required:"true" doc:"The project; null: no project."`
		Version   *int64              `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) move(ctx context.Context, in *moveConversationInput) (*resource.Versioned[protocol.Conversation], error) {
	version, err := in.RequiredVersion(in.Body.Version)
	if err != nil {
		return nil, err
	}
	caller := exchange.CallerOf(ctx)
	return resource.WithETag(h.Placements.MoveConversation(ctx, caller.AccountID, &conversations.Move{
		ConversationID: in.ConversationID, ProjectID: in.Body.ProjectID, Version: version, SessionID: &caller.SessionID,
	}))
}

type listMoveTargetsInput struct {
	resource.InConversation
	resource.PageInput
}

func (h *Handlers) listMoveTargets(ctx context.Context, in *listMoveTargetsInput) (*resource.Body[protocol.List[protocol.Project]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "move targets of "+in.ConversationID.String(), func(after *protocol.ProjectID) ([]protocol.Project, *protocol.ProjectID, error) {
		return h.Placements.ListMoveTargets(ctx, caller.AccountID, in.ConversationID, after, in.Limit)
	})
}
