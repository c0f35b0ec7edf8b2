package protocol

import "time"

// Account is who is signed in.
type Account struct {
	AccountID   AccountID `json:"account_id"`
	Email       string    `json:"email"`
	DisplayName string    `json:"display_name"`
}

// SessionInfo answers GET /auth/session.
type SessionInfo struct {
	Account         Account    `json:"account"`
	CSRFToken       string     `json:"csrf_token"`
	ExpiresAt       time.Time  `json:"expires_at"`
	Reauthenticated *time.Time `json:"reauthenticated_until" doc:"Until when routes that need a recent sign-in pass; null when not."`
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
	Language       string  `json:"language" doc:"BCP 47, as en, ar, ja." maxLength:"35"`
	Theme          string  `json:"theme" enum:"system,light,dark"`
	SendKey        string  `json:"send_key" enum:"enter,mod_enter" doc:"What sends a message; the other makes a new line."`
	BusyAction     string  `json:"busy_action" enum:"queue,steer,interrupt" doc:"What sending does while an answer streams."`
	DefaultProfile Profile `json:"default_profile" enum:"auto,balanced,deep_reasoning,coding"`
	Version        int64   `json:"version"`
}
