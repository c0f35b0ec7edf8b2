package users

import (
	"strings"
	"testing"
	"time"

	"turnstone/http/auth"
	"turnstone/persistence/accounts"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func TestAnOperatorNamesOneOfTwoAccountsWithAnAddressByItsIdentifier(t *testing.T) {
	db := pgtest.New(t)
	const email, password = "ada@example.com", "correct horse battery"
	withPassword, err := Add(t.Context(), db, email, "Ada", password)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := Find(t.Context(), db, " ADA@example.com"); err != nil || found != withPassword {
		t.Errorf("one account with the address: %v %v", found, err)
	}
	byProvider := &accounts.NewAccount{
		Account:  protocol.Account{AccountID: protocol.NewAccountID(), Email: email, DisplayName: "Ada"},
		EmailKey: auth.EmailKey(email), CreatedAt: time.Now(),
	}
	if err := db.Accounts.Register(t.Context(), byProvider, &accounts.Identity{Issuer: "https://id.example", Subject: "1"}, nil, requester()); err != nil {
		t.Fatal(err)
	}
	_, err = Find(t.Context(), db, email)
	for _, line := range []string{withPassword.String() + "  signs in with a password", byProvider.AccountID.String() + "  signs in by a provider"} {
		if protocol.CodeOf(err) != protocol.CodeConflict || !strings.Contains(err.Error(), line) {
			t.Errorf("%v does not contain %q", err, line)
		}
	}
	if err := SetPassword(t.Context(), db, byProvider.AccountID.String(), password); protocol.CodeOf(err) != protocol.CodeEmailTaken {
		t.Errorf("a second password with one address: %v", err)
	}
	if err := Disable(t.Context(), db, withPassword.String()); err != nil {
		t.Fatal(err)
	}
	for account, disabled := range map[protocol.AccountID]bool{withPassword: true, byProvider.AccountID: false} {
		if own, err := db.Accounts.CredentialsOf(t.Context(), account); err != nil || own.Disabled != disabled {
			t.Errorf("%s: %+v %v", account, own, err)
		}
	}
	for _, missing := range []string{protocol.NewAccountID().String(), "nobody@example.com", "acct_x"} {
		if _, err := Find(t.Context(), db, missing); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s: %v", missing, err)
		}
	}
	if _, made, err := Seed(t.Context(), db, email, "Ada", password, false); err != nil || made {
		t.Errorf("seeding with two accounts of the address: made %v, %v", made, err)
	}
}
