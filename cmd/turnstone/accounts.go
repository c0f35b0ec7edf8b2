package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	ourhttp "turnstone/http"
	"turnstone/persistence"
	"turnstone/protocol"
)

// byOperator is the request behind what these commands leave in the audit.
func byOperator() persistence.Requester {
	return persistence.Requester{RequestID: "operator-" + uuid.NewString()}
}

func addAccount(ctx context.Context, db *persistence.DB, email, name, password string) (made protocol.AccountID, err error) {
	email, name, err = ourhttp.CheckAccount(email, name)
	if err != nil {
		return made, err
	}
	hash, err := ourhttp.HashPassword(password, email)
	if err != nil {
		return made, err
	}
	account := &persistence.NewAccount{
		Account:  protocol.Account{AccountID: protocol.NewAccountID(), Email: email, DisplayName: name},
		EmailKey: ourhttp.EmailKey(email), PasswordHash: &hash, CreatedAt: time.Now(),
	}
	return account.AccountID, db.Register(ctx, account, nil, nil, byOperator())
}

func disableAccount(ctx context.Context, db *persistence.DB, name string) error {
	account, err := findAccount(ctx, db, name)
	if err != nil {
		return err
	}
	return db.DisableAccount(ctx, account, time.Now(), byOperator())
}

func enableAccount(ctx context.Context, db *persistence.DB, name string) error {
	account, err := findAccount(ctx, db, name)
	if err != nil {
		return err
	}
	return db.EnableAccount(ctx, account, byOperator())
}

func setPassword(ctx context.Context, db *persistence.DB, name, password string) error {
	account, err := findAccount(ctx, db, name)
	if err != nil {
		return err
	}
	own, err := db.CredentialsOf(ctx, account)
	if err != nil {
		return err
	}
	hash, err := ourhttp.HashPassword(password, own.Email)
	if err != nil {
		return err
	}
	return db.SetPassword(ctx, account, hash, time.Now(), byOperator())
}

// seedAccount makes the account where it is missing, which made tells, and gives it the password when that is new.
func seedAccount(ctx context.Context, db *persistence.DB, email, name, password string, isNew bool) (account protocol.AccountID, made bool, err error) {
	found, err := db.CredentialsByEmail(ctx, ourhttp.EmailKey(email))
	switch {
	case err == nil && isNew:
		return found.AccountID, false, setPassword(ctx, db, found.AccountID.String(), password)
	case err == nil:
		return found.AccountID, false, nil
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		account, err = addAccount(ctx, db, email, name, password)
		return account, true, err
	default:
		return account, false, fmt.Errorf("finding the account: %w", err)
	}
}

// findAccount finds the account that an operator names: by its identifier, or by an address that no other account shows.
func findAccount(ctx context.Context, db *persistence.DB, name string) (protocol.AccountID, error) {
	var account protocol.AccountID
	if account.UnmarshalText([]byte(name)) == nil {
		_, err := db.CredentialsOf(ctx, account)
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			return account, protocol.Errorf(protocol.CodeNotFound, "there is no account %s", name)
		}
		return account, err
	}
	found, err := db.AccountsWithEmail(ctx, ourhttp.EmailKey(name))
	switch {
	case err != nil:
		return account, fmt.Errorf("finding the account: %w", err)
	case len(found) == 0:
		return account, protocol.Errorf(protocol.CodeNotFound, "no account has the address %s", name)
	case len(found) > 1:
		return account, ambiguous(ctx, db, name, found)
	}
	return found[0], nil
}

// ambiguous lists the accounts that show one address, for the operator to choose from.
func ambiguous(ctx context.Context, db *persistence.DB, name string, accounts []protocol.AccountID) error {
	var list strings.Builder
	for _, account := range accounts {
		own, err := db.CredentialsOf(ctx, account)
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
