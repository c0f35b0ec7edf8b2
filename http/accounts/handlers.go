package accounts

import (
	"context"
	"time"

	"turnstone/http/auth"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/files"
	"turnstone/protocol"
)

// Sessions lists sessions; see package persistence/accounts. auth.Sessions has the methods that authentication needs.
type Sessions interface {
	ListSessions(ctx context.Context, account protocol.AccountID, query *accounts.SessionQuery) (page []protocol.Device, next *accounts.SessionPosition, err error)
}

// Passkeys reads who has a passkey; see package persistence/accounts.
type Passkeys interface {
	OwnsPasskey(ctx context.Context, account protocol.AccountID, id protocol.PasskeyID) error
}

// Settings stores the settings of accounts; see package persistence/accounts.
type Settings interface {
	Settings(ctx context.Context, account protocol.AccountID) (*protocol.Settings, error)
	PutSettings(ctx context.Context, account protocol.AccountID, settings *protocol.Settings, version *int64) (stored *protocol.Settings, err error)
}

// Instructions stores the instructions of accounts; see package persistence/accounts.
type Instructions interface {
	Instructions(ctx context.Context, account protocol.AccountID) (*protocol.Instructions, error)
	PutInstructions(ctx context.Context, account protocol.AccountID, version *int64, content string) (stored *protocol.Instructions, err error)
}

// SecurityLog reads the security events of accounts; see package persistence/audit.
type SecurityLog interface {
	ListEntries(ctx context.Context, account protocol.AccountID, after *audit.Position, limit int) (page []protocol.SecurityLogEntry, next *audit.Position, err error)
}

// StoredFiles reads how much an account stores; see package persistence/files.
type StoredFiles interface {
	Stored(ctx context.Context, account protocol.AccountID) (used, limit files.Quota, err error)
}

// LiveTurns counts the live turns of an account; see package persistence/turns.
type LiveTurns interface {
	CountLive(ctx context.Context, account protocol.AccountID) (int64, error)
}

// Budget reports how many model tokens accounts have used today.
type Budget interface {
	State(ctx context.Context, account protocol.AccountID) (*protocol.TokenBudget, error)
}

// Handlers handle the requests for sign-ins, sessions, passwords, passkeys and identities, and for the account itself.
type Handlers struct {
	Auth         *auth.Service
	Sessions     Sessions
	Passkeys     Passkeys
	Settings     Settings
	Instructions Instructions
	SecurityLog  SecurityLog
	Files        StoredFiles
	Turns        LiveTurns
	Budget       Budget // nil: no limit
	MaxLiveTurns int
	Keys         *auth.Keys
	Now          func() time.Time
}
