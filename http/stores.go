package http

import (
	"context"
	"time"

	"turnstone/http/accounts"
	"turnstone/http/auth"
	"turnstone/http/chat"
	"turnstone/protocol"
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
