package http

import (
	"context"
	"time"

	"turnstone/http/auth"
	"turnstone/http/chat"
	"turnstone/http/conversations"
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
	storedconversations "turnstone/persistence/conversations"
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
	Conversations        conversations.Store
	Organiser            conversations.Organiser
	Branches             conversations.Branches
	Messages             conversations.Messages
	Drafts               conversations.Drafts
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
	conversationOwners = *storedconversations.Store
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
