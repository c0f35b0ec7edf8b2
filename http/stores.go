package http

import (
	"context"
	"time"

	"turnstone/http/accounts"
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
	"turnstone/http/usage"
	"turnstone/persistence"
	storedaccounts "turnstone/persistence/accounts"
	storedconversations "turnstone/persistence/conversations"
	"turnstone/persistence/files"
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
	SecurityLog          accounts.SecurityLog
	Settings             accounts.Settings
	StoredFiles          accounts.StoredFiles
	Idempotency          router.Idempotency
	Conversations        conversations.Store
	Organiser            conversations.Organiser
	Branches             conversations.Branches
	Messages             conversations.Messages
	Drafts               conversations.Drafts
	FollowUps            chat.FollowUps
	Usage                usage.Store
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
	passkeyOwners      = *storedaccounts.Passkeys
	fileOwners         = *files.Store
	uploadOwners       = *files.Sessions
)

// TurnStore reads turns; see package persistence/turns.
type TurnStore interface {
	chat.Store
	accounts.LiveTurns
}

// Sessions stores sessions.
type Sessions interface {
	auth.Sessions
	accounts.Sessions
	LiveSessions(ctx context.Context, owners map[protocol.SessionID]protocol.AccountID, now time.Time) ([]protocol.SessionID, error)
	ListenSessions(ctx context.Context, notify func(protocol.SessionID)) error
}
