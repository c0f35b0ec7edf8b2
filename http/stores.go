package http

import (
	"context"
	"time"

	"turnstone/http/auth"
	"turnstone/http/chat"
	"turnstone/http/feed"
	"turnstone/http/feedback"
	httpfiles "turnstone/http/files"
	"turnstone/http/portability"
	"turnstone/http/projects"
	"turnstone/http/router"
	"turnstone/http/search"
	"turnstone/http/shares"
	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/files"
	"turnstone/persistence/usage"
	"turnstone/protocol"
)

// Stores are the stores that a Server uses: one interface for each noun. Their methods are documented in the packages
// that implement them.
type Stores struct {
	Sessions             Sessions
	Credentials          auth.Credentials
	Identities           auth.Identities
	Profiles             auth.Profiles
	Recovery             auth.RecoveryStore
	Flows                auth.Flows
	Passkeys             auth.PasskeyStore
	PasskeyFlows         auth.PasskeyFlows
	Audit                auth.Audit
	SecurityLog          SecurityLog
	Settings             Settings
	StoredFiles          StoredFiles
	Idempotency          router.Idempotency
	Conversations        Conversations
	Organiser            Organiser
	Branches             Branches
	Messages             Messages
	Drafts               Drafts
	FollowUps            chat.FollowUps
	Usage                Usage
	Projects             projects.Store
	ProjectTexts         projects.Texts
	ProjectConversations projects.Conversations
	ProjectOrganiser     projects.Organiser
	Feedback             feedback.Store
	Shares               shares.Store
	Feed                 feed.Store
	Search               search.Store
	Files                httpfiles.Store
	FileTexts            httpfiles.Texts
	ProjectFiles         httpfiles.Projects
	Portability          portability.Stores
	Owners               router.Owners
}

// NewStores returns the stores of a database.
func NewStores(db *persistence.Stores) Stores {
	c := db.Conversations
	return Stores{
		Sessions: db.Accounts, Credentials: db.Accounts, Identities: db.Accounts, Profiles: db.Accounts, Recovery: db.Recovery, Flows: db.Accounts, Passkeys: db.Passkeys, PasskeyFlows: db.Passkeys, Settings: db.Accounts, StoredFiles: db.Uploads, Audit: db.Audit, SecurityLog: db.Audit, Idempotency: db.Idempotency,
		Conversations: c, Organiser: db.Organiser, Branches: c, Messages: c, Drafts: db.Drafts, FollowUps: db.FollowUps, Usage: db.Usage, Owners: owners{c, db.Passkeys, db.Files, db.Uploads},
		Projects: db.Projects, ProjectTexts: db.Projects, ProjectConversations: c, ProjectOrganiser: db.Organiser,
		Feedback: db.Feedback,
		Search:   db.Search,
		Feed:     db.Feed,
		Shares:   db.Shares,
		Files:    db.Files, FileTexts: db.FileTexts, ProjectFiles: db.Files,
		Portability: portability.Stores{Exports: db.Exports, Imports: db.Imports, Erasures: db.Erasures, Audit: db.Audit},
	}
}

// owners reports the owners of objects in several stores.
type owners struct {
	conversationOwners
	passkeyOwners
	fileOwners
	uploadOwners
}

type (
	conversationOwners = *conversations.Store
	passkeyOwners      = *accounts.Passkeys
	fileOwners         = *files.Store
	uploadOwners       = *files.Sessions
)

// Sessions stores sessions. auth.Sessions has the methods that authentication needs.
type Sessions interface {
	auth.Sessions
	ListSessions(ctx context.Context, account protocol.AccountID, query *accounts.SessionQuery) (page []protocol.Device, next *accounts.SessionPosition, err error)
	LiveSessions(ctx context.Context, owners map[protocol.SessionID]protocol.AccountID, now time.Time) ([]protocol.SessionID, error)
	ListenSessions(ctx context.Context, notify func(protocol.SessionID)) error
}

// Settings stores the settings of accounts.
type Settings interface {
	Settings(ctx context.Context, account protocol.AccountID) (*protocol.Settings, error)
	PutSettings(ctx context.Context, account protocol.AccountID, settings *protocol.Settings, version *int64) (stored *protocol.Settings, err error)
}

// SecurityLog reads the security events of accounts.
type SecurityLog interface {
	ListEntries(ctx context.Context, account protocol.AccountID, after *audit.Position, limit int) (page []protocol.SecurityLogEntry, next *audit.Position, err error)
}

// StoredFiles reads how much an account stores.
type StoredFiles interface {
	Stored(ctx context.Context, account protocol.AccountID) (used, limit files.Quota, err error)
}

// Conversations stores conversations.
type Conversations interface {
	CreateConversation(ctx context.Context, account protocol.AccountID, conversation *conversations.NewConversation) (created *protocol.Conversation, err error)
	ListConversations(ctx context.Context, account protocol.AccountID, filter *conversations.ConversationFilter, after *conversations.ConversationPosition, limit int) (page []protocol.Conversation, next *conversations.ConversationPosition, err error)
	ConversationPage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.ConversationPage, error)
	PutConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, write *conversations.ConversationWrite, version *int64) (conversation *protocol.Conversation, created bool, err error)
	SetTitle(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, title string, version *int64) (conversation *protocol.Conversation, err error)
	MarkRead(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, message protocol.MessageID) (conversation *protocol.Conversation, err error)
	DeleteConversation(ctx context.Context, account protocol.AccountID, deletion *conversations.Deletion) (live *conversations.LiveWork, err error)
}

// Organiser changes where lists show conversations.
type Organiser interface {
	SetArchived(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, archived bool, version *int64) (conversation *protocol.Conversation, err error)
	SetPinned(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, pinned bool, version *int64) (conversation *protocol.Conversation, err error)
}

// Branches stores the branches of conversations.
type Branches interface {
	CreateBranch(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, request *protocol.BranchRequest, name string) (branch *protocol.Branch, err error)
	ListBranches(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, after protocol.BranchID, limit int) (page []protocol.Branch, next *protocol.BranchID, err error)
	GetBranch(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, branch protocol.BranchID) (*protocol.Branch, error)
	RenameBranch(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, branch protocol.BranchID, name string, version *int64) (renamed *protocol.Branch, err error)
	SetActiveBranch(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, branch protocol.BranchID, version *int64) (conversation *protocol.Conversation, err error)
	ForkConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, message protocol.MessageID, name string, session *protocol.SessionID) (fork *protocol.Conversation, err error)
}

// Messages reads messages.
type Messages interface {
	Messages(ctx context.Context, account protocol.AccountID, query *conversations.MessageQuery) (*conversations.MessagePage, error)
	GetMessage(ctx context.Context, account protocol.AccountID, message protocol.MessageID) (*protocol.Message, error)
}

// Drafts stores drafts.
type Drafts interface {
	Draft(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) (*protocol.Draft, error)
	PutDraft(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, content string, attachments []protocol.FileID, version *int64) (draft *protocol.Draft, err error)
}

// TurnStore reads turns.
type TurnStore interface {
	chat.Store
	CountLive(ctx context.Context, account protocol.AccountID) (int64, error)
}

// Budget reports how many model tokens accounts have used today.
type Budget interface {
	State(ctx context.Context, account protocol.AccountID) (*protocol.TokenBudget, error)
}

// Usage stores usage records.
type Usage interface {
	RecordUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, kind string, quantity float64, unit string, occurredAt *time.Time) (record *protocol.UsageRecord, err error)
	ListUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, after *usage.Position, limit int) (page []protocol.UsageRecord, next *usage.Position, err error)
	GetUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, record protocol.UsageID) (*protocol.UsageRecord, error)
	SumUsage(ctx context.Context, account protocol.AccountID, query *usage.Query) (page []protocol.UsageGroup, next string, err error)
}
