package conversations

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/response"
	"turnstone/protocol"
)

// documentBranchOrFork documents that createBranch responds with a branch or with a conversation.
func documentBranchOrFork(api huma.API, op *huma.Operation) {
	schemas := api.OpenAPI().Components.Schemas
	op.Responses = map[string]*huma.Response{strconv.Itoa(stdhttp.StatusCreated): {
		Description: "The new branch for `edit` and `regenerate`; the new conversation for `fork`.",
		Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{OneOf: []*huma.Schema{
			schemas.Schema(reflect.TypeFor[protocol.Branch](), true, ""),
			schemas.Schema(reflect.TypeFor[protocol.Conversation](), true, ""),
		}}}},
	}}
}

type createBranchInput struct {
	resource.InConversation
	Body struct {
		MessageID protocol.MessageID `json:"message_id" doc:"For edit, a user message. For regenerate, an answer. For fork, the last message to copy."`
		Mode      string             `json:"mode" enum:"edit,regenerate,fork"`
		Name      string             `json:"name,omitempty" doc:"Up to 200 characters. For fork, the title of the new conversation."`
	}
}

// branchOrFork is a response with a protocol.Branch or, for fork, with a protocol.Conversation.
type branchOrFork struct {
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Body     any
}

func (h *Handlers) createBranch(ctx context.Context, in *createBranchInput) (*branchOrFork, error) {
	name, err := branchName(in.Body.Name)
	if err != nil {
		return nil, err
	}
	account := exchange.CallerOf(ctx).AccountID
	if in.Body.Mode == protocol.BranchFork {
		fork, err := h.Branches.ForkConversation(ctx, account, in.ConversationID, in.Body.MessageID, name, &exchange.CallerOf(ctx).SessionID)
		if err != nil {
			return nil, err
		}
		return &branchOrFork{Location: protocol.ConversationPath(fork.ConversationID), ETag: response.ETagOf(fork.Version), Body: fork}, nil
	}
	request := &protocol.BranchRequest{MessageID: in.Body.MessageID, Mode: in.Body.Mode}
	branch, err := h.Branches.CreateBranch(ctx, account, in.ConversationID, request, name)
	if err != nil {
		return nil, err
	}
	return &branchOrFork{Location: protocol.ConversationPath(in.ConversationID) + "/branches/" + branch.BranchID.String(), ETag: response.ETagOf(branch.Version), Body: branch}, nil
}

func branchName(text string) (string, error) {
	name := strings.TrimSpace(text)
	if utf8.RuneCountInString(name) > protocol.MaxTitle {
		return "", protocol.Invalid("body.name", fmt.Sprintf("must have at most %d characters", protocol.MaxTitle))
	}
	return name, nil
}

type renameBranchInput struct {
	resource.InConversation
	resource.IfMatch
	BranchID protocol.BranchID `path:"branch_id"`
	Body     struct {
		Name    string `json:"name" doc:"Up to 200 characters."`
		Version *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Without either, the last write wins."`
	}
}

func (h *Handlers) renameBranch(ctx context.Context, in *renameBranchInput) (*resource.Versioned[protocol.Branch], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	name, err := branchName(in.Body.Name)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Branches.RenameBranch(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.BranchID, name, version))
}

type branchPath struct {
	resource.InConversation
	BranchID protocol.BranchID `path:"branch_id"`
}

func (h *Handlers) getBranch(ctx context.Context, in *branchPath) (*resource.Versioned[protocol.Branch], error) {
	return resource.WithETag(h.Branches.GetBranch(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.BranchID))
}

type listBranchesInput struct {
	resource.InConversation
	resource.PageInput
}

func (h *Handlers) listBranches(ctx context.Context, in *listBranchesInput) (*resource.Body[protocol.List[protocol.Branch]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "branches "+in.ConversationID.String(), func(after *protocol.BranchID) ([]protocol.Branch, *protocol.BranchID, error) {
		if after == nil {
			after = new(protocol.BranchID)
		}
		return h.Branches.ListBranches(ctx, caller.AccountID, in.ConversationID, *after, in.Limit)
	})
}

type setActiveBranchInput struct {
	resource.InConversation
	resource.IfMatch
	Body struct {
		BranchID protocol.BranchID `json:"branch_id"`
		Version  *int64            `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. One of them is required."`
	}
}

func (h *Handlers) setActiveBranch(ctx context.Context, in *setActiveBranchInput) (*resource.Versioned[protocol.Conversation], error) {
	version, err := in.RequiredVersion(in.Body.Version)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Branches.SetActiveBranch(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.Body.BranchID, version))
}
