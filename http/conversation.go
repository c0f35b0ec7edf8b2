package http

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/persistence"
	"turnstone/protocol"
)

// Bounds of what a client may write of a conversation.
const (
	maxTitle         = 200 // characters, after trimming
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

func (s *Server) conversationRoutes() []route {
	const one = "/conversations/{conversation_id}"
	return []route{
		call("GET", "/conversations", "listConversations", "Lists conversations: pinned ones first, then by last activity.", reads, s.listConversations).
			about("Order: pinned first, then by last activity, the newest first. Temporary and archived conversations are left out unless asked for."),
		call("POST", "/conversations", "createConversation", "Creates an empty conversation.", creates, s.createConversation).
			about("The conversation has an empty active branch. Without a title the service generates one after the first turn.").
			sends(object{"title": "Six times seven", "profile": "balanced"}).answers(stdhttp.StatusCreated),
		call("GET", one, "getConversation", "Reads all that paints a conversation's page.", reads, s.getConversation).
			about("The conversation with its draft, its queue and its live turn: one request is enough to render its page."),
		call("PUT", one, "putConversation", "Creates a conversation under an identifier of the client, or replaces what may be written of it.", writes, s.putConversation).
			about("An identifier that the account never used creates a conversation (201). Otherwise the writable fields are replaced (200), for which the version is required (If-Match or version) unless the stored values are repeated. The identifier of a deleted conversation stays 404.").
			sends(object{"title": "Six times seven", "profile": "balanced", "metadata": object{"colour": "blue"}, "version": 3}).
			refuses(protocol.CodeStaleVersion, protocol.CodeVersionRequired).
			documented(mayCreate),
		call("PUT", one+"/title", "setTitle", "Names a conversation.", writes, s.setTitle).
			about("With If-Match or version a change since then is refused; without, the last writer wins. The title of the user is never replaced by a generated one.").
			sends(object{"title": "Six times seven"}).
			refuses(protocol.CodeStaleVersion),
		call("PUT", one+"/read", "markRead", "Remembers how far the account has read, on any device.", writes, s.markRead).
			about("Decides `unread`. A mark never goes back.").
			sends(object{"message_id": "msg_01h2xcejqtf2nbrexx3vqjhp41"}),
		call("DELETE", one, "deleteConversation", "Deletes a conversation for good.", writes, s.deleteConversation).
			about("Durable once answered: the conversation disappears from every read, and a background job erases its contents. While a turn is live the first request gets 409 with a token to repeat in X-Confirm; the turn is then cancelled.").
			refuses(protocol.CodeStaleVersion, protocol.CodeConfirmation),
	}
}

// mayCreate is for the one route whose path may name a conversation that the account does not have yet.
func mayCreate(api huma.API, op *huma.Operation) {
	op.Metadata["unowned"] = true
	op.Responses = map[string]*huma.Response{}
	answer[protocol.Conversation](api, op, stdhttp.StatusCreated, "It did not exist and was created.")
}

// InConversation is embedded by inputs of routes below a conversation.
type InConversation struct {
	ConversationID protocol.ConversationID `path:"conversation_id"`
}

// created answers 201 with where the new thing is.
type created[T any] struct {
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Body     T
}

func conversationPath(id protocol.ConversationID) string { return "/conversations/" + id.String() }

func conversationCreated(c *protocol.Conversation) *created[protocol.Conversation] {
	return &created[protocol.Conversation]{Location: conversationPath(c.ConversationID), ETag: ETagOf(c.Version), Body: *c}
}

type listConversationsInput struct {
	PageInput
	Archived  string             `query:"archived" enum:"true,false,any" default:"false"`
	Pinned    string             `query:"pinned" enum:"true,false,any" default:"any"`
	ProjectID protocol.ProjectID `query:"project_id"`
}

// flag reads a filter of three values; nil is any.
func flag(value string) *bool {
	if value == "any" {
		return nil
	}
	is := value == "true"
	return &is
}

func (s *Server) listConversations(ctx context.Context, in *listConversationsInput) (*body[protocol.List[protocol.Conversation]], error) {
	filter := &persistence.ConversationFilter{Archived: flag(in.Archived), Pinned: flag(in.Pinned)}
	if !in.ProjectID.IsZero() {
		filter.ProjectID = &in.ProjectID
	}
	scope := fmt.Sprintf("conversations %s %s %s", in.Archived, in.Pinned, in.ProjectID)
	after, err := openCursor[persistence.ConversationPosition](ctx, s, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	page, next, err := s.DB.ListConversations(ctx, callerOf(ctx).AccountID, filter, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return listed(ctx, s, scope, page, next), nil
}

type createConversationInput struct {
	Body struct {
		Title     string              `json:"title,omitempty" doc:"1 to 200 characters after trimming. Without one the service finds a title after the first turn."`
		ProjectID *protocol.ProjectID `json:"project_id,omitempty" nullable:"true"`
		Profile   *protocol.Profile   `json:"profile,omitempty" nullable:"true" enum:"auto,balanced,deep_reasoning,coding"`
		Temporary bool                `json:"temporary,omitempty" doc:"Keeps the conversation out of every list, without a generated title, and erases it 24 h after its last activity."`
	}
}

func (s *Server) createConversation(ctx context.Context, in *createConversationInput) (*created[protocol.Conversation], error) {
	if in.Body.ProjectID != nil { // an account has no projects yet, so this is one that it does not have
		return nil, protocol.Errorf(protocol.CodeNotFound, "no such project")
	}
	title, err := optionalTitle(in.Body.Title)
	if err != nil {
		return nil, err
	}
	conversation, err := s.DB.CreateConversation(ctx, callerOf(ctx).AccountID, &persistence.NewConversation{
		ConversationID: protocol.NewConversationID(), Title: title, Profile: in.Body.Profile, Temporary: in.Body.Temporary,
	})
	if err != nil {
		return nil, err
	}
	return conversationCreated(conversation), nil
}

// optionalTitle trims a title that may be left out.
func optionalTitle(title string) (string, error) {
	if title == "" {
		return "", nil
	}
	return requiredTitle(title)
}

func requiredTitle(title string) (string, error) {
	title = strings.TrimSpace(title)
	if n := utf8.RuneCountInString(title); n < 1 || n > maxTitle {
		return "", protocol.Invalid("body.title", fmt.Sprintf("must have 1 to %d characters after trimming", maxTitle))
	}
	return title, nil
}

func (s *Server) getConversation(ctx context.Context, in *InConversation) (*versioned[protocol.ConversationPage], error) {
	page, err := s.DB.ConversationPage(ctx, callerOf(ctx).AccountID, in.ConversationID)
	if err != nil {
		return nil, err
	}
	return withETag(*page, page.Version), nil
}

type putConversationInput struct {
	InConversation
	IfMatch
	Body struct {
		Title    string            `json:"title,omitempty" doc:"1 to 200 characters after trimming. Empty: none of the user's; an automatic title stays."`
		Profile  *protocol.Profile `json:"profile,omitempty" nullable:"true" enum:"auto,balanced,deep_reasoning,coding"`
		Metadata map[string]string `json:"metadata,omitempty" maxProperties:"16" doc:"Keys up to 64 characters, values up to 512."`
		Version  *int64            `json:"version,omitempty" doc:"In place of If-Match. Required when something changes."`
	}
}

// putConversationOutput answers 200, or 201 with Location.
type putConversationOutput struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Body     protocol.Conversation
}

func (s *Server) putConversation(ctx context.Context, in *putConversationInput) (*putConversationOutput, error) {
	version, err := in.version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	title, err := optionalTitle(in.Body.Title)
	if err != nil {
		return nil, err
	}
	if err := checkMetadata(in.Body.Metadata); err != nil {
		return nil, err
	}
	write := &persistence.ConversationWrite{Title: title, Profile: in.Body.Profile, Metadata: in.Body.Metadata}
	conversation, made, err := s.DB.PutConversation(ctx, callerOf(ctx).AccountID, in.ConversationID, write, version)
	if err != nil {
		return nil, err
	}
	out := &putConversationOutput{Status: stdhttp.StatusOK, ETag: ETagOf(conversation.Version), Body: *conversation}
	if made {
		out.Status, out.Location = stdhttp.StatusCreated, conversationPath(in.ConversationID)
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
	InConversation
	IfMatch
	Body struct {
		Title   string `json:"title" doc:"1 to 200 characters after trimming."`
		Version *int64 `json:"version,omitempty" doc:"In place of If-Match. Without either the last writer wins."`
	}
}

func (s *Server) setTitle(ctx context.Context, in *setTitleInput) (*versioned[protocol.Conversation], error) {
	version, err := in.version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	title, err := requiredTitle(in.Body.Title)
	if err != nil {
		return nil, err
	}
	return conversationChanged(s.DB.SetTitle(ctx, callerOf(ctx).AccountID, in.ConversationID, title, version))
}

// conversationChanged answers with the conversation as it stands now.
func conversationChanged(c *protocol.Conversation, err error) (*versioned[protocol.Conversation], error) {
	if err != nil {
		return nil, err
	}
	return withETag(*c, c.Version), nil
}

type markReadInput struct {
	InConversation
	Body struct {
		MessageID protocol.MessageID `json:"message_id" doc:"The newest message that was seen. A mark never goes back."`
	}
}

func (s *Server) markRead(ctx context.Context, in *markReadInput) (*versioned[protocol.Conversation], error) {
	return conversationChanged(s.DB.MarkRead(ctx, callerOf(ctx).AccountID, in.ConversationID, in.Body.MessageID))
}
