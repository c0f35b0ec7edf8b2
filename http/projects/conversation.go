package projects

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

type listConversationsInput struct {
	InProject
	resource.ConversationListInput
}

func (h *Handlers) listConversations(ctx context.Context, in *listConversationsInput) (*resource.Body[protocol.List[protocol.Conversation]], error) {
	if _, err := h.Store.Project(ctx, exchange.CallerOf(ctx).AccountID, in.ProjectID); err != nil {
		return nil, err
	}
	return resource.ListConversations(ctx, h.Conversations, h.Keys, &in.ConversationListInput, &in.ProjectID)
}

type createProjectConversationInput struct {
	InProject
	Body struct {
		Title   string            `json:"title,omitempty" doc:"1 to 200 characters after trimming. Without a title, the service generates one after the first turn."`
		Profile *protocol.Profile `json:"profile,omitempty" nullable:"true" enum:"auto,balanced,deep_reasoning,coding"`

		Temporary bool `json:"temporary,omitempty" doc:"Must be false: a temporary conversation is in no list, so it is in no project."`
	}
}

func (h *Handlers) createConversation(ctx context.Context, in *createProjectConversationInput) (*resource.Created[protocol.Conversation], error) {
	title, err := resource.OptionalTitle("body.title", in.Body.Title)
	if err != nil {
		return nil, err
	}
	if err := protocol.CheckTemporary(in.Body.Temporary, &in.ProjectID, nil); err != nil {
		return nil, err
	}
	caller := exchange.CallerOf(ctx)
	conversation, err := h.Conversations.CreateConversation(ctx, caller.AccountID, &conversations.NewConversation{
		ConversationID: protocol.NewConversationID(), Title: title, Profile: in.Body.Profile, ProjectID: &in.ProjectID, SessionID: &caller.SessionID,
	})
	if err != nil {
		return nil, err
	}
	return resource.NewCreated("", conversation), nil
}
