package http

import (
	"context"
	"fmt"
	stdhttp "net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/protocol"
)

func (s *Server) branchRoutes() []route {
	const one = "/conversations/{conversation_id}"
	return []route{
		call("POST", one+"/branches", "createBranch",
			"Makes a new active branch for another version of a message, or a new conversation of the path up to one.", creates, s.createBranch).
			about("edit and regenerate make a new active branch, whose content the next POST /chat supplies. fork returns a new conversation. Siblings are never deleted.").
			sends(object{"message_id": "msg_01h2xcejqtf2nbrexx3vqjhp41", "mode": "edit"}).
			refuses(protocol.CodeTurnInProgress).
			answers(stdhttp.StatusCreated).documented(answersEither),
		call("GET", one+"/branches", "listBranches", "Lists the branches of a conversation in the order of their making.", reads, s.listBranches).
			about("The oldest first."),
		call("PUT", one+"/active-branch", "setActiveBranch", "Switches a conversation to one of its branches.", writes, s.setActiveBranch).
			about("The version is required (If-Match or version). Refused while a turn is live.").
			sends(object{"branch_id": "br_01h2xcejqtf2nbrexx3vqjhp41", "version": 3}).
			refuses(protocol.CodeStaleVersion, protocol.CodeVersionRequired, protocol.CodeTurnInProgress),
	}
}

// answersEither documents what a new branch is answered with.
func answersEither(api huma.API, op *huma.Operation) {
	schemas := api.OpenAPI().Components.Schemas
	op.Responses = map[string]*huma.Response{strconv.Itoa(stdhttp.StatusCreated): {
		Description: "edit and regenerate: the branch. fork: the new conversation.",
		Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{OneOf: []*huma.Schema{
			schemas.Schema(reflect.TypeFor[protocol.Branch](), true, ""),
			schemas.Schema(reflect.TypeFor[protocol.Conversation](), true, ""),
		}}}},
	}}
}

type createBranchInput struct {
	InConversation
	Body struct {
		MessageID protocol.MessageID `json:"message_id" doc:"edit: a message of the user. regenerate: an answer. fork: the last message of the copy."`
		Mode      string             `json:"mode" enum:"edit,regenerate,fork"`
		Name      string             `json:"name,omitempty" doc:"Up to 200 characters; with fork the title of the new conversation."`
	}
}

// branchOrFork answers with a protocol.Branch, or with a protocol.Conversation for fork.
type branchOrFork struct {
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Body     any
}

func (s *Server) createBranch(ctx context.Context, in *createBranchInput) (*branchOrFork, error) {
	name := strings.TrimSpace(in.Body.Name)
	if utf8.RuneCountInString(name) > maxTitle {
		return nil, protocol.Invalid("body.name", fmt.Sprintf("must have at most %d characters", maxTitle))
	}
	account := callerOf(ctx).AccountID
	if in.Body.Mode == protocol.BranchFork {
		fork, err := s.DB.ForkConversation(ctx, account, in.ConversationID, in.Body.MessageID, name)
		if err != nil {
			return nil, err
		}
		return &branchOrFork{Location: conversationPath(fork.ConversationID), ETag: ETagOf(fork.Version), Body: fork}, nil
	}
	request := &protocol.BranchRequest{MessageID: in.Body.MessageID, Mode: in.Body.Mode}
	branch, err := s.DB.CreateBranch(ctx, account, in.ConversationID, request, name)
	if err != nil {
		return nil, err
	}
	return &branchOrFork{Location: conversationPath(in.ConversationID) + "/branches", Body: branch}, nil
}

type listBranchesInput struct {
	InConversation
	PageInput
}

func (s *Server) listBranches(ctx context.Context, in *listBranchesInput) (*body[protocol.List[protocol.Branch]], error) {
	scope := "branches " + in.ConversationID.String()
	after, err := openCursor[protocol.BranchID](ctx, s, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	if after == nil {
		after = new(protocol.BranchID)
	}
	page, next, err := s.DB.ListBranches(ctx, callerOf(ctx).AccountID, in.ConversationID, *after, in.Limit)
	if err != nil {
		return nil, err
	}
	return listed(ctx, s, scope, page, next), nil
}

type setActiveBranchInput struct {
	InConversation
	IfMatch
	Body struct {
		BranchID protocol.BranchID `json:"branch_id"`
		Version  *int64            `json:"version,omitempty" doc:"In place of If-Match; one of them is required."`
	}
}

func (s *Server) setActiveBranch(ctx context.Context, in *setActiveBranchInput) (*versioned[protocol.Conversation], error) {
	version, err := in.version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	return conversationChanged(s.DB.SetActiveBranch(ctx, callerOf(ctx).AccountID, in.ConversationID, in.Body.BranchID, version))
}
