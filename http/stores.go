package http

import (
	"context"
	"time"

	"turnstone/http/accounts"
	"turnstone/http/auth"
	"turnstone/http/chat"
	storedaccounts "turnstone/persistence/accounts"
	"turnstone/persistence/artifacts"
	storedconversations "turnstone/persistence/conversations"
	"turnstone/persistence/files"
	"turnstone/persistence/prompts"
	"turnstone/persistence/research"
	"turnstone/protocol"
)

// owners reports the owners of objects in several stores.
type owners struct {
	conversationOwners
	passkeyOwners
	fileOwners
	uploadOwners
	artifactOwners
	taskOwners
	promptOwners
}

type (
	conversationOwners = *storedconversations.Store
	passkeyOwners      = *storedaccounts.Passkeys
	fileOwners         = *files.Store
	uploadOwners       = *files.Uploads
	artifactOwners     = *artifacts.Store
	taskOwners         = *research.Store
	promptOwners       = *prompts.Store
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
