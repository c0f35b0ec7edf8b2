package protocol

import "time"

// Limits of sign-ins, in characters.
const (
	MinPassword    = 8
	MaxDisplayName = 100
	MaxPasskeyName = 100
)

// Account is the signed-in account.
type Account struct {
	AccountID             AccountID  `json:"account_id"`
	Email                 string     `json:"email"`
	PendingEmail          *string    `json:"pending_email" doc:"The address that the account changes to when it is confirmed; null: none."`
	PendingEmailExpiresAt *time.Time `json:"pending_email_expires_at" doc:"When the change to pending_email ends unless it is confirmed; null: there is none."`
	DisplayName           string     `json:"display_name"`
	Version               int64      `json:"version" doc:"Of the name, the address and the pending address."`
}

// CurrentVersion returns the version of the account.
func (a *Account) CurrentVersion() int64 { return a.Version }

// SessionInfo is the response body of GET /auth/session.
type SessionInfo struct {
	Account         Account    `json:"account"`
	CSRFToken       string     `json:"csrf_token"`
	ExpiresAt       time.Time  `json:"expires_at"`
	Reauthenticated *time.Time `json:"reauthenticated_until" doc:"The time until which the session may use routes that need a recent sign-in; null when it may not."`
}

// Device is one of the account's sessions.
type Device struct {
	SessionID  SessionID `json:"session_id"`
	UserAgent  string    `json:"user_agent"`
	Current    bool      `json:"current"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Settings are the account's preferences.
type Settings struct {
	Language         string   `json:"language" doc:"BCP 47 language tag, for example en, ar or ja." maxLength:"35"`
	Theme            string   `json:"theme" enum:"system,light,dark"`
	SendKey          string   `json:"send_key" enum:"enter,mod_enter" doc:"The key that sends a message; the other one inserts a line break."`
	BusyAction       string   `json:"busy_action" enum:"queue,steer,interrupt" doc:"What happens to a message that is sent while an answer streams."`
	SteeringDelivery Delivery `json:"steering_delivery" enum:"next_step,interrupt" doc:"When a steering input is applied unless the user says otherwise: after the model's current sentence and its running tools, or at once within the sentence."`
	DefaultProfile   Profile  `json:"default_profile" enum:"auto,balanced,deep_reasoning,coding"`
	Version          int64    `json:"version"`
}

// CurrentVersion returns the version of the settings.
func (s *Settings) CurrentVersion() int64 { return s.Version }
