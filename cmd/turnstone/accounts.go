package main

import (
	"context"
	"fmt"
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

func addAccount(ctx context.Context, db *persistence.DB, email, name, password string) error {
	email, name, err := ourhttp.CheckAccount(email, name)
	if err != nil {
		return err
	}
	hash, err := ourhttp.HashPassword(password, email)
	if err != nil {
		return err
	}
	account := &persistence.NewAccount{
		Account:  protocol.Account{AccountID: protocol.NewAccountID(), Email: email, DisplayName: name},
		EmailKey: ourhttp.EmailKey(email), PasswordHash: &hash, CreatedAt: time.Now(),
	}
	return db.Register(ctx, account, nil, nil, byOperator())
}

func disableAccount(ctx context.Context, db *persistence.DB, email string) error {
	account, err := findAccount(ctx, db, email)
	if err != nil {
		return err
	}
	return db.DisableAccount(ctx, account, time.Now(), byOperator())
}

func setPassword(ctx context.Context, db *persistence.DB, email, password string) error {
	account, err := findAccount(ctx, db, email)
	if err != nil {
		return err
	}
	hash, err := ourhttp.HashPassword(password, email)
	if err != nil {
		return err
	}
	return db.SetPassword(ctx, account, hash, time.Now(), byOperator())
}

// seedAccount makes the account where it is missing, which made tells, and gives it the password when that is new.
func seedAccount(ctx context.Context, db *persistence.DB, email, name, password string, isNew bool) (account protocol.AccountID, made bool, err error) {
	account, err = findAccount(ctx, db, email)
	switch {
	case err == nil && isNew:
		return account, false, setPassword(ctx, db, email, password)
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		if err := addAccount(ctx, db, email, name, password); err != nil {
			return account, false, err
		}
		account, err = findAccount(ctx, db, email)
		return account, true, err
	default:
		return account, false, err
	}
}

func findAccount(ctx context.Context, db *persistence.DB, email string) (protocol.AccountID, error) {
	found, err := db.CredentialsByEmail(ctx, ourhttp.EmailKey(email))
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return protocol.AccountID{}, protocol.Errorf(protocol.CodeNotFound, "no account has the address %s", email)
	}
	if err != nil {
		return protocol.AccountID{}, fmt.Errorf("finding the account: %w", err)
	}
	return found.AccountID, nil
}
