package conversations

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/http/route"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

// Bounds of what a client may write to a conversation, in characters.
const (
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

// mayCreate documents the 201 of the one route whose path may name a conversation that the account does not have yet,
// and exempts the route from the check of ownership.
func mayCreate(api huma.API, op *huma.Operation) {
	op.Metadata["unowned"] = true
	op.Responses = map[string]*huma.Response{}
	route.JSONResponse[protocol.Conversation](api, op, stdhttp.StatusCreated, "The conversation did not exist and was created.")
	op.Responses["201"].Headers = route.Headers("Location", "ETag")
}

type listConversationsInput struct {
	resource.ConversationListInput
	ProjectID protocol.ProjectID `query:"project_id"`
}

func (h *Handlers) listConversations(ctx context.Context, in *listConversationsInput) (*resource.Body[protocol.List[protocol.Conversation]], error) {
	var project *protocol.ProjectID
	if !in.ProjectID.IsZero() {
		project = &in.ProjectID
	}
	return resource.ListConversations(ctx, h.Store, h.Keys, &in.ConversationListInput, project)
}

type createConversationInput struct {
	Body struct {
		Title     string              `json:"title,omitempty" doc:"1 to 200 characters after trimming. Without a title, the service generates one after the first turn."`
		ProjectID *protocol.ProjectID `json:"project_id,omitempty" nullable:"true" doc:"An active project. A temporary conversation cannot be in a project."`
		Profile   *protocol.Profile   `json:"profile,omitempty" nullable:"true" enum:"auto,balanced,deep_reasoning,coding"`
		Temporary bool                `json:"temporary,omitempty" doc:"A temporary conversation is never listed, gets no generated title, and is erased 24 hours after its last activity."`
	}
}

func (h *Handlers) createConversation(ctx context.Context, in *createConversationInput) (*resource.Created[protocol.Conversation], error) {
	if err := protocol.CheckTemporary(in.Body.Temporary, in.Body.ProjectID, nil); err != nil {
		return nil, err
	}
	title, err := resource.OptionalTitle("body.title", in.Body.Title)
	if err != nil {
		return nil, err
	}
	caller := exchange.CallerOf(ctx)
	conversation, err := h.Store.CreateConversation(ctx, caller.AccountID, &conversations.NewConversation{
		ConversationID: protocol.NewConversationID(), Title: title, Profile: in.Body.Profile, Temporary: in.Body.Temporary,
		ProjectID: in.Body.ProjectID, SessionID: &caller.SessionID,
	})
	if err != nil {
		return nil, err
	}
	return resource.NewCreated("", conversation), nil
}

func (h *Handlers) getConversation(ctx context.Context, in *resource.InConversation) (*resource.Versioned[protocol.ConversationPage], error) {
	return resource.WithETag(h.Store.ConversationPage(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID))
}

type putConversationInput struct {
	resource.InConversation
	resource.IfMatch
	Body struct {
		Title     string            `json:"title,omitempty" doc:"1 to 200 characters after trimming. Empty: removes a title that the user has set; a generated title stays."`
		Profile   *protocol.Profile `json:"profile,omitempty" nullable:"true" enum:"auto,balanced,deep_reasoning,coding"`
		Metadata  map[string]string `json:"metadata,omitempty" maxProperties:"16" doc:"Keys of 1 to 64 characters with values of up to 512 characters."`
		Temporary *bool             `json:"temporary,omitempty" doc:"Absent: false for a new conversation, else unchanged. A temporary conversation is never listed, gets no generated title, and is erased 24 hours after its last activity. It can be changed, with the version, while the conversation has no messages, no title and no project; afterwards, another value than the stored one fails with 409."`
		Version   *int64            `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Required to change an existing conversation."`
	}
}

// putConversationOutput is a response with status 200, or 201 with Location.
type putConversationOutput struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Body     protocol.Conversation
}

func (h *Handlers) putConversation(ctx context.Context, in *putConversationInput) (*putConversationOutput, error) {
	version, err := in.RequiredVersion(in.Body.Version)
	if err != nil {
		return nil, err
	}
	title, err := resource.OptionalTitle("body.title", in.Body.Title)
	if err != nil {
		return nil, err
	}
	if err := checkMetadata(in.Body.Metadata); err != nil {
		return nil, err
	}
	write := &conversations.ConversationWrite{Title: title, Profile: in.Body.Profile, Metadata: in.Body.Metadata, Temporary: in.Body.Temporary}
	conversation, isNew, err := h.Store.PutConversation(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, write, version)
	if err != nil {
		return nil, err
	}
	out := &putConversationOutput{Status: stdhttp.StatusOK, ETag: response.ETagOf(conversation.Version), Body: *conversation}
	if isNew {
		out.Status, out.Location = stdhttp.StatusCreated, protocol.ConversationPath(in.ConversationID)
	}
	return out, nil
}

func checkMetadata(metadata map[string]string) error {
	for key, value := range metadata {
		if n := utf8.RuneCountInString(key); n < 1 || n > maxMetadataKey {
			return protocol.Invalid("body.metadata", fmt.Sprintf("must have keys of 1 to %d characters", maxMetadataKey))
		}
		if utf8.RuneCountInString(value) > maxMetadataValue {
			return protocol.Invalid("body.metadata", fmt.Sprintf("must have values of at most %d characters", maxMetadataValue))
		}
	}
	return nil
}

type setTitleInput struct {
	resource.InConversation
	resource.IfMatch
	Body struct {
		Title   string `json:"title" doc:"1 to 200 characters after trimming."`
		Version *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Without either, the last write wins."`
	}
}

func (h *Handlers) setTitle(ctx context.Context, in *setTitleInput) (*resource.Versioned[protocol.Conversation], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	title, err := resource.RequiredTitle("body.title", in.Body.Title)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Store.SetTitle(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, title, version))
}

type markReadInput struct {
	resource.InConversation
	Body struct {
		MessageID protocol.MessageID `json:"message_id" doc:"The newest message that was read. The mark never moves back."`
	}
}

func (h *Handlers) markRead(ctx context.Context, in *markReadInput) (*resource.Versioned[protocol.Conversation], error) {
	return resource.WithETag(h.Store.MarkRead(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.Body.MessageID))
}
