package projects

import (
	"context"

	"turnstone/actors/toolbox"
	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

// Store stores projects; see package persistence/projects.
type Store interface {
	CreateProject(ctx context.Context, account protocol.AccountID, name string, session *protocol.SessionID) (made *protocol.Project, err error)
	Project(ctx context.Context, account protocol.AccountID, id protocol.ProjectID) (*protocol.Project, error)
	ListProjects(ctx context.Context, account protocol.AccountID, state protocol.ProjectState, after *protocol.ProjectID, limit int) (page []protocol.Project, next *protocol.ProjectID, err error)
	Rename(ctx context.Context, account protocol.AccountID, change *projects.Change, name string) (*protocol.Project, error)
	SetArchivedWithUploads(
		ctx context.Context, account protocol.AccountID, change *projects.Change, archived bool, cancel func(context.Context, protocol.UploadID) error,
	) (*protocol.Project, error)
	DeleteWithLiveTurns(
		ctx context.Context, account protocol.AccountID, deletion *projects.Deletion, cancel func(context.Context, protocol.TurnID) error,
	) (*protocol.Project, error)
	RestoreProject(ctx context.Context, account protocol.AccountID, change *projects.Change, by audit.Requester) (project *protocol.Project, err error)
	ListWork(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, after *protocol.WorkID, limit int) (page []protocol.Work, next *protocol.WorkID, err error)
}

// Texts stores the settings and the instructions of projects; see package persistence/projects.
type Texts interface {
	Settings(ctx context.Context, account protocol.AccountID, project protocol.ProjectID) (*protocol.ProjectSettings, error)
	PutSettings(ctx context.Context, account protocol.AccountID, change *projects.Change, settings *protocol.ProjectSettings) (stored *protocol.ProjectSettings, err error)
	Instructions(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, version *int64) (*protocol.Instructions, error)
	PutInstructions(ctx context.Context, account protocol.AccountID, change *projects.Change, content string) (stored *protocol.Instructions, err error)
}

// Conversations stores conversations, and reads who has their project; see package persistence/conversations.
type Conversations interface {
	OwnsProject(ctx context.Context, account protocol.AccountID, id protocol.ProjectID) error
	CreateConversation(ctx context.Context, account protocol.AccountID, conversation *conversations.NewConversation) (created *protocol.Conversation, err error)
	ListConversations(
		ctx context.Context, account protocol.AccountID, filter *conversations.ConversationFilter, after *conversations.ConversationPosition, limit int,
	) (page []protocol.Conversation, next *conversations.ConversationPosition, err error)
}

// Turns cancels the live turns of a project that is deleted.
type Turns interface {
	CancelTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, by protocol.CancelledBy, scope protocol.CancelScope) error
}

// Uploads cancels the uploads into a project that is archived.
type Uploads interface {
	Cancel(ctx context.Context, account protocol.AccountID, id protocol.UploadID) (*protocol.Upload, error)
}

// Handlers handle the requests for projects.
type Handlers struct {
	Store         Store
	Texts         Texts
	Conversations Conversations
	Turns         Turns
	Uploads       Uploads
	Tools         *toolbox.Catalogue
	Confirmations resource.Confirmations
	Keys          *auth.Keys
}

// InProject is embedded by inputs of routes below a project.
type InProject struct {
	ProjectID protocol.ProjectID `path:"project_id"`
}

// changeOf returns the change that a request makes to a project. version is that of the body.
func changeOf(ctx context.Context, project protocol.ProjectID, match resource.IfMatch, version *int64) (*projects.Change, error) {
	version, err := match.RequiredVersion(version)
	if err != nil {
		return nil, err
	}
	return &projects.Change{ProjectID: project, Version: version, SessionID: &exchange.CallerOf(ctx).SessionID}, nil
}
