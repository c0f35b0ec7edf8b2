package resource

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

// InConversation is embedded by inputs of routes below a conversation.
type InConversation struct {
	ConversationID protocol.ConversationID `path:"conversation_id"`
}

// ConversationListInput is embedded by inputs of lists of conversations.
type ConversationListInput struct {
	PageInput
	Archived string `query:"archived" enum:"true,false,any" default:"false"`
	Pinned   string `query:"pinned" enum:"true,false,any" default:"any"`

	Metadata    map[string]string `query:"metadata,deepObject" maxProperties:"16" doc:"Entries that the metadata of a conversation must have, for example metadata[colour]=blue."`
	CreatedFrom string            `query:"created_from" maxLength:"40" doc:"The earliest time of creation, for example 2026-01-31T08:00:00Z, or a day (UTC)."`
	CreatedTo   string            `query:"created_to" maxLength:"40" doc:"The end of the times of creation: a time, or a day (UTC) before which they must be."`
	UpdatedFrom string            `query:"updated_from" maxLength:"40" doc:"The earliest updated_at: a time or a day (UTC)."`
	UpdatedTo   string            `query:"updated_to" maxLength:"40" doc:"The end of updated_at: a time, or a day (UTC) before which it must be."`
}

// filter returns the filter of the request.
func (in *ConversationListInput) filter(project *protocol.ProjectID) (*conversations.ConversationFilter, error) {
	filter := &conversations.ConversationFilter{Archived: flag(in.Archived), Pinned: flag(in.Pinned), ProjectID: project, Metadata: in.Metadata}
	for _, of := range []struct {
		field, text string
		to          *time.Time
	}{
		{"query.created_from", in.CreatedFrom, &filter.Created.From},
		{"query.created_to", in.CreatedTo, &filter.Created.To},
		{"query.updated_from", in.UpdatedFrom, &filter.Updated.From},
		{"query.updated_to", in.UpdatedTo, &filter.Updated.To},
	} {
		at, err := TimeOr(of.field, of.text, time.Time{})
		if err != nil {
			return nil, err
		}
		*of.to = at
	}
	return filter, nil
}

// TimeOr parses a time, or a day, of a field of a request. Without one, it returns the default.
func TimeOr(field, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, protocol.Invalid(field, "must be a time, for example 2026-01-31T08:00:00Z, or a day, for example 2026-01-31")
}

// ConversationLister lists conversations; see package persistence/conversations.
type ConversationLister interface {
	ListConversations(
		ctx context.Context, account protocol.AccountID, filter *conversations.ConversationFilter, after *conversations.ConversationPosition, limit int,
	) (page []protocol.Conversation, next *conversations.ConversationPosition, err error)
}

// ListConversations returns a page of the conversations of the caller, or of one of its projects.
func ListConversations(ctx context.Context, store ConversationLister, keys *auth.Keys, in *ConversationListInput, project *protocol.ProjectID) (
	*Body[protocol.List[protocol.Conversation]], error,
) {
	caller, inProject := exchange.CallerOf(ctx), "any project"
	if project != nil {
		inProject = project.String()
	}
	filter, err := in.filter(project)
	if err != nil {
		return nil, err
	}
	scope := fmt.Sprintf("conversations %s %s %s %q %q", in.Archived, in.Pinned, inProject, in.Metadata, []string{in.CreatedFrom, in.CreatedTo, in.UpdatedFrom, in.UpdatedTo})
	return List(caller, keys, in.PageInput, scope, func(after *conversations.ConversationPosition) ([]protocol.Conversation, *conversations.ConversationPosition, error) {
		return store.ListConversations(ctx, caller.AccountID, filter, after, in.Limit)
	})
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
