// Package tools handles the requests for the list of tools, and checks choices of tools.
//
// It contains no SQL and no state.
package tools

import (
	"context"
	"fmt"
	"slices"

	"turnstone/actors/toolbox"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
)

// Conversations reads conversations; see package persistence/conversations.
type Conversations interface {
	Conversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.Conversation, error)
}

// Projects reads the settings of projects; see package persistence/projects.
type Projects interface {
	Settings(ctx context.Context, account protocol.AccountID, id protocol.ProjectID) (*protocol.ProjectSettings, error)
}

// Consents reads to what accounts consent; see package persistence/memory.
type Consents interface {
	Granted(ctx context.Context, account protocol.AccountID) ([]protocol.MemorySource, error)
}

// Handlers handle the requests for tools.
type Handlers struct {
	Catalogue     *toolbox.Catalogue
	Conversations Conversations
	Projects      Projects
	Consents      Consents
}

type listInput struct {
	ConversationID protocol.ConversationID `query:"conversation_id" doc:"The tools of a conversation: those of its project, if it has one."`
	ProjectID      protocol.ProjectID      `query:"project_id" doc:"The tools of a project."`
}

// list answers with all tools on one page: there are few.
func (h *Handlers) list(ctx context.Context, in *listInput) (*resource.Body[protocol.List[protocol.ToolInfo]], error) {
	account := exchange.CallerOf(ctx).AccountID
	var project *protocol.ProjectID
	var access toolbox.Access
	switch {
	case !in.ConversationID.IsZero() && !in.ProjectID.IsZero():
		return nil, protocol.Invalid("query.project_id", "is not possible together with conversation_id")
	case !in.ConversationID.IsZero():
		conversation, err := h.Conversations.Conversation(ctx, account, in.ConversationID)
		if err != nil {
			return nil, err
		}
		project, access.Temporary = conversation.ProjectID, conversation.Temporary
	case !in.ProjectID.IsZero():
		project = &in.ProjectID
	}
	var off []string
	if project != nil {
		settings, err := h.Projects.Settings(ctx, account, *project)
		if err != nil {
			return nil, err
		}
		off = settings.Tools.Disabled()
	}
	granted, err := h.Consents.Granted(ctx, account)
	if err != nil {
		return nil, err
	}
	access.Project, access.Granted = project != nil, granted
	list := protocol.List[protocol.ToolInfo]{Data: []protocol.ToolInfo{}}
	for _, entry := range h.Catalogue.All() {
		info := protocol.ToolInfo{
			Name: entry.Name, Kind: entry.Kind, Title: entry.Title, Description: entry.Description, Effect: entry.Effect, Risk: entry.Risk,
			Reversibility: entry.Reversibility, Source: "builtin", Available: true,
		}
		missing := entry.Missing(&access)
		switch {
		case missing != "":
			info.Available, info.Reason = false, &missing
		case slices.Contains(off, entry.Name):
			reason := "The project has switched this tool off."
			info.Available, info.Reason = false, &reason
		}
		list.Data = append(list.Data, info)
	}
	return resource.OK(list), nil
}

// Check returns an error if a choice names a tool or a binding that does not exist. field is that of the choice.
func Check(catalogue *toolbox.Catalogue, field string, choice *protocol.ToolChoice) error {
	if choice == nil {
		return nil
	}
	for i, name := range choice.Off {
		if catalogue.Find(name) == nil {
			return protocol.Invalid(fmt.Sprintf("%s.off[%d]", field, i), "is not the name of a tool")
		}
	}
	if len(choice.Connectors) > 0 {
		return protocol.Invalid(field+".connectors[0]", "is not a binding of the project")
	}
	return nil
}
