package users

import (
	"context"
	"fmt"
	"io"
	"time"

	"turnstone/http/auth"
	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

// Device is a device on which an account is signed in.
type Device struct {
	SessionID  protocol.SessionID `json:"session_id"`
	UserAgent  string             `json:"user_agent"`
	CreatedAt  time.Time          `json:"created_at"`
	LastUsedAt time.Time          `json:"last_used_at"`
	ExpiresAt  time.Time          `json:"expires_at"`
}

// Devices returns the devices that the account itself sees, the most recently used first. There are at most
// accounts.MaxSessions.
func Devices(ctx context.Context, db *persistence.Stores, name string) ([]Device, error) {
	account, err := Find(ctx, db, name)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	query := &accounts.SessionQuery{Now: now, IdleSince: now.Add(-auth.SessionIdle), Limit: accounts.MaxSessions}
	found, _, err := db.Accounts.ListSessions(ctx, account, query)
	if err != nil {
		return nil, err
	}
	devices := make([]Device, 0, len(found))
	for i := range found {
		d := &found[i]
		devices = append(devices, Device{d.SessionID, d.UserAgent, d.CreatedAt, d.LastUsedAt, d.ExpiresAt})
	}
	return devices, nil
}

// PrintDevices prints a line for each device.
func PrintDevices(to io.Writer, devices []Device) error {
	for i := range devices {
		d := &devices[i]
		if _, err := fmt.Fprintf(to, "%s  last used %s  created %s  %s\n", d.SessionID, timeText(&d.LastUsedAt), timeText(&d.CreatedAt), printable(d.UserAgent)); err != nil {
			return err
		}
	}
	return nil
}

// SignOut ends one session of an account; a running service ends its streams.
func SignOut(ctx context.Context, db *persistence.Stores, name string, session protocol.SessionID) error {
	account, err := Find(ctx, db, name)
	if err != nil {
		return err
	}
	err = db.Accounts.EndSession(ctx, account, session, audit.EventSessionRevoked, time.Now(), requester())
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return protocol.Errorf(protocol.CodeNotFound, "the account %s has no session %s that has not ended", name, session)
	}
	return err
}

// SignOutAll ends all sessions of an account.
func SignOutAll(ctx context.Context, db *persistence.Stores, name string) error {
	account, err := Find(ctx, db, name)
	if err != nil {
		return err
	}
	return db.Accounts.EndSessions(ctx, account, time.Now(), requester())
}

// Erase starts the erasure of an account, which its address confirms or, if it has none, its identifier. A running service
// continues the erasure.
func Erase(ctx context.Context, db *persistence.Stores, name, confirm string) (id protocol.ErasureID, err error) {
	account, err := Find(ctx, db, name)
	if err != nil {
		return id, err
	}
	profile, err := db.Accounts.Profile(ctx, account)
	switch {
	case err != nil:
		return id, err
	case profile.State == protocol.AccountErasing:
		return id, protocol.Errorf(protocol.CodeConflict, "the account %s is already being erased", account)
	case profile.Email == "" && confirm != account.String():
		return id, protocol.Invalid("confirm", "must be the identifier of the account, which has no email address, so nothing was erased")
	case profile.Email != "" && auth.EmailKey(confirm) != auth.EmailKey(profile.Email):
		return id, protocol.Invalid("confirm", "is not the email address of the account, so nothing was erased")
	}
	return db.Erasures.Begin(ctx, account, time.Now(), nil, requester())
}
