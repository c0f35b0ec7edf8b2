package users

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"turnstone/http/auth"
	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

// requester returns the requester under which these commands are recorded in the audit.
func requester() audit.Requester {
	return audit.Requester{RequestID: "operator-" + uuid.NewString()}
}

// Add creates an account that signs in with a password.
func Add(ctx context.Context, db *persistence.Stores, email, name, password string) (made protocol.AccountID, err error) {
	email, name, err = auth.CheckAccount(email, name)
	if err != nil {
		return made, err
	}
	hash, err := auth.HashPassword(password, email)
	if err != nil {
		return made, err
	}
	account := &accounts.NewAccount{
		Account:  protocol.Account{AccountID: protocol.NewAccountID(), Email: email, DisplayName: name, Version: 1},
		EmailKey: auth.EmailKey(email), PasswordHash: &hash, CreatedAt: time.Now(),
	}
	return account.AccountID, db.Accounts.Register(ctx, account, nil, nil, requester())
}

// Disable disables an account: it ends its sessions, cancels its live turns and holds its queues.
func Disable(ctx context.Context, db *persistence.Stores, name string) error {
	account, err := Find(ctx, db, name)
	if err != nil {
		return err
	}
	return db.Operator.DisableAccount(ctx, account, time.Now(), requester())
}

// Enable lets a disabled account sign in again.
func Enable(ctx context.Context, db *persistence.Stores, name string) error {
	account, err := Find(ctx, db, name)
	if err != nil {
		return err
	}
	return db.Operator.EnableAccount(ctx, account, requester())
}

// SetPassword gives an account a new password and ends its sessions.
func SetPassword(ctx context.Context, db *persistence.Stores, name, password string) error {
	account, err := Find(ctx, db, name)
	if err != nil {
		return err
	}
	own, err := db.Accounts.CredentialsOf(ctx, account)
	if err != nil {
		return err
	}
	hash, err := auth.HashPassword(password, own.Email)
	if err != nil {
		return err
	}
	return db.Accounts.SetPassword(ctx, account, hash, time.Now(), requester())
}

// Seed creates the account if it is missing; made reports whether it did. If the account exists and isNew says
// that the password is new, it sets the password.
func Seed(ctx context.Context, db *persistence.Stores, email, name, password string, isNew bool) (account protocol.AccountID, made bool, err error) {
	found, err := db.Accounts.CredentialsByEmail(ctx, auth.EmailKey(email))
	switch {
	case err == nil && isNew:
		return found.AccountID, false, SetPassword(ctx, db, found.AccountID.String(), password)
	case err == nil:
		return found.AccountID, false, nil
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		account, err = Add(ctx, db, email, name, password)
		return account, true, err
	default:
		return account, false, fmt.Errorf("finding the account: %w", err)
	}
}

// Find returns the account that an operator names: by its identifier, or by an email address that only one
// account has.
func Find(ctx context.Context, db *persistence.Stores, name string) (protocol.AccountID, error) {
	var account protocol.AccountID
	if account.UnmarshalText([]byte(name)) == nil {
		_, err := db.Accounts.CredentialsOf(ctx, account)
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			return account, protocol.Errorf(protocol.CodeNotFound, "there is no account %s", name)
		}
		return account, err
	}
	found, err := db.Accounts.AccountsWithEmail(ctx, auth.EmailKey(name))
	switch {
	case err != nil:
		return account, fmt.Errorf("finding the account: %w", err)
	case len(found) == 0:
		return account, protocol.Errorf(protocol.CodeNotFound, "no account has the address %s", name)
	case len(found) > 1:
		return account, ambiguousAddress(ctx, db, name, found)
	}
	return found[0], nil
}

// ambiguousAddress returns an error that lists the accounts with the same email address, so that the operator can
// choose one.
func ambiguousAddress(ctx context.Context, db *persistence.Stores, name string, accounts []protocol.AccountID) error {
	var list strings.Builder
	for _, account := range accounts {
		own, err := db.Accounts.CredentialsOf(ctx, account)
		if err != nil {
			return fmt.Errorf("reading the accounts of an address: %w", err)
		}
		how := "signs in by a provider"
		if own.PasswordHash != nil {
			how = "signs in with a password"
		}
		if own.Disabled {
			how += ", disabled"
		}
		fmt.Fprintf(&list, "\n  %s  %s", account, how)
	}
	return protocol.Errorf(protocol.CodeConflict, "%d accounts have the address %s; name one by its identifier:%s", len(accounts), name, list.String())
}
