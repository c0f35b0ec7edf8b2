package persistence

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// SecurityEvent is what an entry of the audit says.
type SecurityEvent string

// The events of accounts and sessions.
const (
	EventRegistered      SecurityEvent = "account.registered"
	EventAccountDisabled SecurityEvent = "account.disabled"
	EventAccountEnabled  SecurityEvent = "account.enabled"
	EventSignedIn        SecurityEvent = "sign_in.succeeded"
	EventSignInFailed    SecurityEvent = "sign_in.failed"
	EventSignedOut       SecurityEvent = "sign_in.ended"
	EventSessionCreated  SecurityEvent = "session.created"
	EventSessionRotated  SecurityEvent = "session.rotated"
	EventSessionRevoked  SecurityEvent = "session.revoked"
	EventSessionsEnded   SecurityEvent = "session.others_revoked"
	EventSessionReused   SecurityEvent = "session.reused"
	EventPasswordChanged SecurityEvent = "password.changed"
	EventReauthenticated SecurityEvent = "sign_in.repeated"
	EventIdentityLinked  SecurityEvent = "identity.linked"
	EventCSRFRefused     SecurityEvent = "request.csrf_refused"
	EventOriginRefused   SecurityEvent = "request.origin_refused"
	EventNotFound        SecurityEvent = "request.not_found"
)

// Requester is the request behind an entry: nothing of its content.
type Requester struct {
	RequestID string
	Address   string // prefix only
}

const appendAuditSQL = `select audit_append($1, $2, $3, $4, $5, $6)`

// queue adds the entry to what is stored together.
func (r Requester) queue(batch *pgx.Batch, account protocol.AccountID, event SecurityEvent, session *protocol.SessionID) {
	batch.Queue(appendAuditSQL, account, string(event), session, r.RequestID, r.Address, []byte("{}"))
}

// Record writes an entry of its own. account is Nobody where nobody is known; detail holds identifiers and counts only.
func (db *DB) Record(ctx context.Context, account protocol.AccountID, event SecurityEvent, session *protocol.SessionID, detail map[string]any, by Requester) error {
	text, err := json.Marshal(detail)
	if err != nil || detail == nil {
		text = []byte("{}")
	}
	_, err = db.Exec(ctx, account, appendAuditSQL, account, string(event), session, by.RequestID, by.Address, text)
	return err
}
