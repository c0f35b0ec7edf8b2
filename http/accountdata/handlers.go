package accountdata

import (
	"context"
	"time"

	"go.uber.org/zap"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

// Stores are the stores that the handlers use. Their methods are documented in the packages that implement them.
type Stores struct {
	Exports  Exports
	Imports  Imports
	Erasures Erasures
	Audit    Audit
}

// Audit stores security events.
type Audit interface {
	Record(ctx context.Context, account protocol.AccountID, event audit.SecurityEvent, session *protocol.SessionID, detail map[string]any, by audit.Requester) error
}

// Config has the dependencies of the handlers.
type Config struct {
	Stores
	Sessions exchange.Sessions
	Keys     *auth.Keys
	// ExpiredCookie returns the cookie that removes the session cookie from the browser.
	ExpiredCookie func() string
	Log           *zap.Logger
	Now           func() time.Time
}

// Handlers handle the requests for exports, imports and erasures.
type Handlers struct {
	Config
	exports *exchange.Queues // one export of an account at a time reads and encodes
}

// New returns handlers.
func New(config Config) *Handlers { return &Handlers{config, exchange.NewQueues()} }
