package audit

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
