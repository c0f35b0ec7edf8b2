package resource

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"turnstone/http/auth"
	"turnstone/http/router"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

// InConversation is embedded by inputs of routes below a conversation.
type InConversation struct {
	ConversationID protocol.ConversationID `path:"conversation_id"`
}

// ConversationPath returns the path of a conversation.
func ConversationPath(id protocol.ConversationID) string { return "/conversations/" + id.String() }

// ConversationListInput is embedded by inputs of lists of conversations.
type ConversationListInput struct {
	PageInput
	Archived string `query:"archived" enum:"true,false,any" default:"false"`
	Pinned   string `query:"pinned" enum:"true,false,any" default:"any"`
}

// ConversationLister lists conversations; see package persistence/conversations.
type ConversationLister interface {
	ListConversations(ctx context.Context, account protocol.AccountID, filter *conversations.ConversationFilter, after *conversations.ConversationPosition, limit int) (page []protocol.Conversation, next *conversations.ConversationPosition, err error)
}

// ListConversations returns a page of the conversations of the caller, or of one of its projects.
func ListConversations(ctx context.Context, store ConversationLister, keys *auth.Keys, in *ConversationListInput, project *protocol.ProjectID) (
	*Body[protocol.List[protocol.Conversation]], error,
) {
	caller, inProject := router.CallerOf(ctx), "any project"
	if project != nil {
		inProject = project.String()
	}
	scope := fmt.Sprintf("conversations %s %s %s", in.Archived, in.Pinned, inProject)
	after, err := OpenCursor[conversations.ConversationPosition](caller, keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	filter := &conversations.ConversationFilter{Archived: flag(in.Archived), Pinned: flag(in.Pinned), ProjectID: project}
	page, next, err := store.ListConversations(ctx, caller.AccountID, filter, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return Listed(caller, keys, scope, page, next), nil
}

// flag converts a filter with three values; nil is any.
func flag(value string) *bool {
	if value == "any" {
		return nil
	}
	wanted := value == "true"
	return &wanted
}

// OptionalTitle trims and checks a title that may be empty. field is the field of the request that has it.
func OptionalTitle(field, title string) (string, error) {
	if title == "" {
		return "", nil
	}
	return RequiredTitle(field, title)
}

// RequiredTitle trims and checks a title. field is the field of the request that has it.
func RequiredTitle(field, title string) (string, error) {
	title = strings.TrimSpace(title)
	if n := utf8.RuneCountInString(title); n < 1 || n > protocol.MaxTitle {
		return "", protocol.Invalid(field, fmt.Sprintf("must have 1 to %d characters after trimming", protocol.MaxTitle))
	}
	return title, nil
}
