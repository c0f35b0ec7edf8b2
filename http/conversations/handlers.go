package conversations

import (
	"context"

	"turnstone/http/auth"
	"turnstone/http/resource"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
)

// Store stores conversations; see package persistence/conversations.
type Store interface {
	OwnsConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) error
	CreateConversation(ctx context.Context, account protocol.AccountID, conversation *conversations.NewConversation) (created *protocol.Conversation, err error)
	ListConversations(
		ctx context.Context, account protocol.AccountID, filter *conversations.ConversationFilter, after *conversations.ConversationPosition, limit int,
	) (page []protocol.Conversation, next *conversations.ConversationPosition, err error)
	ConversationPage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.ConversationPage, error)
	PutConversation(
		ctx context.Context, account protocol.AccountID, id protocol.ConversationID, write *conversations.ConversationWrite, version *int64,
	) (conversation *protocol.Conversation, created bool, err error)
	SetTitle(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, title string, version *int64) (conversation *protocol.Conversation, err error)
	MarkRead(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, message protocol.MessageID) (conversation *protocol.Conversation, err error)
	DeleteWithLiveWork(ctx context.Context, account protocol.AccountID, deletion *conversations.Deletion, interrupt conversations.Interruption) error
}

// Placements changes where lists show conversations, and in which project they are.
type Placements interface {
	SetArchived(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, archived bool, version *int64) (conversation *protocol.Conversation, err error)
	SetPinned(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, pinned bool, version *int64) (conversation *protocol.Conversation, err error)
	MoveConversation(ctx context.Context, account protocol.AccountID, move *conversations.Move) (conversation *protocol.Conversation, err error)
	ListMoveTargets(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, after *protocol.ProjectID, limit int) (page []protocol.Project, next *protocol.ProjectID, err error)
}

// Branches stores the branches of conversations.
type Branches interface {
	OwnsBranch(ctx context.Context, account protocol.AccountID, id protocol.BranchID) error
	CreateBranch(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, request *protocol.BranchRequest, name string) (branch *protocol.Branch, err error)
	ListBranches(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, after protocol.BranchID, limit int) (page []protocol.Branch, next *protocol.BranchID, err error)
	GetBranch(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, branch protocol.BranchID) (*protocol.Branch, error)
	RenameBranch(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, branch protocol.BranchID, name string, version *int64) (renamed *protocol.Branch, err error)
	SetActiveBranch(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, branch protocol.BranchID, version *int64) (conversation *protocol.Conversation, err error)
	ForkConversation(
		ctx context.Context, account protocol.AccountID, id protocol.ConversationID, message protocol.MessageID, name string, session *protocol.SessionID,
	) (fork *protocol.Conversation, err error)
}

// Messages reads messages.
type Messages interface {
	Messages(ctx context.Context, account protocol.AccountID, query *conversations.MessageQuery) (*conversations.MessagePage, error)
	GetMessage(ctx context.Context, account protocol.AccountID, message protocol.MessageID) (*protocol.Message, error)
	FindText(ctx context.Context, account protocol.AccountID, query *conversations.FindQuery) (*conversations.FoundPage, error)
}

// Drafts stores drafts.
type Drafts interface {
	Draft(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.Draft, error)
	PutDraft(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, content string, attachments []protocol.FileID, version *int64) (draft *protocol.Draft, err error)
}

// Turns cancels the live turn of a conversation that is deleted; see package actors/turn.
type Turns interface {
	CancelTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, by protocol.CancelledBy, scope protocol.CancelScope) error
}

// Handlers handle the requests for conversations, their messages, branches and drafts.
type Handlers struct {
	Store         Store
	Placements    Placements
	Branches      Branches
	Messages      Messages
	Drafts        Drafts
	Turns         Turns
	Confirmations resource.Confirmations
	Keys          *auth.Keys
}
