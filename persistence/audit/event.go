package audit

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

// SecurityEvent is the type of an audit entry.
type SecurityEvent string

// The events of accounts, sessions and requests.
const (
	EventRegistered       SecurityEvent = "account.registered"
	EventAccountDisabled  SecurityEvent = "account.disabled"
	EventAccountEnabled   SecurityEvent = "account.enabled"
	EventAccountExported  SecurityEvent = "account.exported"
	EventSignedIn         SecurityEvent = "sign_in.succeeded"
	EventSignInFailed     SecurityEvent = "sign_in.failed"
	EventSignedOut        SecurityEvent = "sign_in.ended"
	EventSessionCreated   SecurityEvent = "session.created"
	EventSessionRotated   SecurityEvent = "session.rotated"
	EventSessionRevoked   SecurityEvent = "session.revoked"
	EventSessionsEnded    SecurityEvent = "session.others_revoked"
	EventSessionReused    SecurityEvent = "session.reused"
	EventPasswordChanged  SecurityEvent = "password.changed"
	EventResetRequested   SecurityEvent = "password.reset_requested"
	EventPasswordReset    SecurityEvent = "password.reset"
	EventEmailRequested   SecurityEvent = "email.change_requested"
	EventEmailCancelled   SecurityEvent = "email.change_cancelled"
	EventEmailChanged     SecurityEvent = "email.changed"
	EventReauthenticated  SecurityEvent = "sign_in.repeated"
	EventIdentityLinked   SecurityEvent = "identity.linked"
	EventIdentityUnlinked SecurityEvent = "identity.unlinked"
	EventPasskeyAdded     SecurityEvent = "passkey.added"
	EventPasskeyRemoved   SecurityEvent = "passkey.removed"
	EventPasskeyUsed      SecurityEvent = "passkey.used"
	EventPasskeyCloned    SecurityEvent = "passkey.counter_repeated"
	EventFileInfected     SecurityEvent = "file.infected"
	EventObjectMissing    SecurityEvent = "integrity.missing_object"
	EventCSRFRefused      SecurityEvent = "request.csrf_refused"
	EventOriginRefused    SecurityEvent = "request.origin_refused"
	EventNotFound         SecurityEvent = "request.not_found"
)

// Requester identifies the request that caused an entry. It holds no content of the request.
type Requester struct {
	RequestID string
	Address   string // network prefix only
}

// AppendAuditSQL appends an entry to the hash chain of an account.
const AppendAuditSQL = `select audit_append($1, $2, $3, $4, $5, $6)`

// Queue adds the statement that appends an entry, so that it is stored with the rest of the batch.
func (r Requester) Queue(batch *pgx.Batch, account protocol.AccountID, event SecurityEvent, session *protocol.SessionID) {
	batch.Queue(AppendAuditSQL, account, string(event), session, r.RequestID, r.Address, []byte("{}"))
}

// Record appends a single entry. account is pg.NoAccount if no account is known; detail has identifiers and counts
// only.
func (s *Log) Record(ctx context.Context, account protocol.AccountID, event SecurityEvent, session *protocol.SessionID, detail map[string]any, by Requester) error {
	text, err := json.Marshal(detail)
	if err != nil || detail == nil {
		text = []byte("{}")
	}
	_, err = s.db.Exec(ctx, account, AppendAuditSQL, account, string(event), session, by.RequestID, by.Address, text)
	return err
}
