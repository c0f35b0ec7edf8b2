// Package prompts handles the requests for the texts that a user has saved for messages.
//
// It contains no SQL and no state.
package prompts

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"unicode/utf8"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/prompts"
	"turnstone/protocol"
)

//go:embed create.md
var createDescription string

// Store stores prompts; see package persistence/prompts.
type Store interface {
	OwnsPrompt(ctx context.Context, account protocol.AccountID, id protocol.PromptID) error
	List(ctx context.Context, account protocol.AccountID, filter *prompts.Filter, after *prompts.Position, limit int) (page []protocol.Prompt, next *prompts.Position, err error)
	Create(ctx context.Context, account protocol.AccountID, prompt *protocol.Prompt) (made *protocol.Prompt, err error)
	Get(ctx context.Context, account protocol.AccountID, id protocol.PromptID) (*protocol.Prompt, error)
	Change(ctx context.Context, account protocol.AccountID, change *prompts.Change) (stored *protocol.Prompt, err error)
	Delete(ctx context.Context, account protocol.AccountID, id protocol.PromptID, version *int64) error
}

// Handlers handle the requests for prompts.
type Handlers struct {
	Store Store
	Keys  *auth.Keys
}

type listInput struct {
	resource.PageInput
	Query     string             `query:"q" doc:"The beginning of a word in the name or in the description, in upper or lower case; at most 160 characters. In a script without spaces, any part of them."`
	ProjectID protocol.ProjectID `query:"project_id" doc:"Only the prompts of this project; none if it does not exist or is deleted."`
	Scope     string             `query:"scope" enum:"any,account" default:"any" doc:"account: only the prompts that belong to no project."`
}

func (h *Handlers) list(ctx context.Context, in *listInput) (*resource.Body[protocol.List[protocol.Prompt]], error) {
	query := strings.TrimSpace(in.Query)
	if utf8.RuneCountInString(query) > protocol.MaxQueryRunes {
		return nil, protocol.Invalid("query.q", fmt.Sprintf("must have at most %d characters", protocol.MaxQueryRunes))
	}
	filter := &prompts.Filter{Query: query, Account: in.Scope == "account"}
	if !in.ProjectID.IsZero() {
		filter.ProjectID = &in.ProjectID
	}
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, fmt.Sprintf("prompts %q %s %s", query, in.ProjectID, in.Scope), func(after *prompts.Position) ([]protocol.Prompt, *prompts.Position, error) {
		return h.Store.List(ctx, caller.AccountID, filter, after, in.Limit)
	})
}

type createPromptInput struct {
	Body struct {
		ProjectID   *protocol.ProjectID `json:"project_id,omitempty" nullable:"true" doc:"The active project to which the prompt belongs. Absent or null: it belongs to the account."`
		Name        string              `json:"name" doc:"1 to 64 letters, digits, hyphens and underscores; the first is a letter or a digit."`
		Description string              `json:"description,omitempty" doc:"What the prompt is for: at most 200 characters after trimming."`
		Text        string              `json:"text" doc:"1 to 16,000 characters, not only white space."`
	}
}

func (h *Handlers) create(ctx context.Context, in *createPromptInput) (*resource.Created[protocol.Prompt], error) {
	change := &prompts.Change{Name: &in.Body.Name, Description: &in.Body.Description, Text: &in.Body.Text}
	if err := check(change); err != nil {
		return nil, err
	}
	prompt := &protocol.Prompt{ProjectID: in.Body.ProjectID, Name: *change.Name, Description: *change.Description, Text: *change.Text}
	made, err := h.Store.Create(ctx, exchange.CallerOf(ctx).AccountID, prompt)
	if err != nil {
		return nil, err
	}
	return resource.NewCreated("", made), nil
}

// check trims and checks what a change has.
func check(change *prompts.Change) error {
	if change.Name != nil {
		name, valid := protocol.PromptName(strings.TrimSpace(*change.Name))
		if !valid {
			return protocol.Invalid("body.name", fmt.Sprintf("must have 1 to %d letters, digits, hyphens and underscores, of which the first is a letter or a digit", protocol.MaxPromptName))
		}
		change.Name = &name
	}
	if change.Description != nil {
		description := strings.TrimSpace(*change.Description)
		if utf8.RuneCountInString(description) > protocol.MaxPromptDescription {
			return protocol.Invalid("body.description", fmt.Sprintf("must have at most %d characters after trimming", protocol.MaxPromptDescription))
		}
		change.Description = &description
	}
	if change.Text == nil {
		return nil
	}
	if strings.TrimSpace(*change.Text) == "" || utf8.RuneCountInString(*change.Text) > protocol.MaxPromptText {
		return protocol.Invalid("body.text", fmt.Sprintf("must have 1 to %d characters, not only white space", protocol.MaxPromptText))
	}
	return nil
}

// InPrompt is embedded by inputs of routes below a prompt.
type InPrompt struct {
	PromptID protocol.PromptID `path:"prompt_id"`
}

func (h *Handlers) get(ctx context.Context, in *InPrompt) (*resource.Versioned[protocol.Prompt], error) {
	return resource.WithETag(h.Store.Get(ctx, exchange.CallerOf(ctx).AccountID, in.PromptID))
}

type changePromptInput struct {
	InPrompt
	resource.IfMatch
	Body struct {
		Name        *string `json:"name,omitempty" doc:"1 to 64 letters, digits, hyphens and underscores; the first is a letter or a digit. Absent: unchanged."`
		Description *string `json:"description,omitempty" doc:"At most 200 characters after trimming. Absent: unchanged."`
		Text        *string `json:"text,omitempty" doc:"1 to 16,000 characters, not only white space. Absent: unchanged."`
		Version     *int64  `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) change(ctx context.Context, in *changePromptInput) (*resource.Versioned[protocol.Prompt], error) {
	version, err := in.RequiredVersion(in.Body.Version)
	if err != nil {
		return nil, err
	}
	change := &prompts.Change{PromptID: in.PromptID, Version: version, Name: in.Body.Name, Description: in.Body.Description, Text: in.Body.Text}
	if err := check(change); err != nil {
		return nil, err
	}
	return resource.WithETag(h.Store.Change(ctx, exchange.CallerOf(ctx).AccountID, change))
}

type deleteInput struct {
	InPrompt
	resource.IfMatch
}

func (h *Handlers) delete(ctx context.Context, in *deleteInput) (*resource.Nothing, error) {
	version, err := in.Version(nil)
	if err != nil {
		return nil, err
	}
	return nil, h.Store.Delete(ctx, exchange.CallerOf(ctx).AccountID, in.PromptID, version)
}
