package accounts_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

var requester = audit.Requester{RequestID: "req"}

// newAccount creates an account; hash is that of its password, nil: none.
func newAccount(t *testing.T, db *persistence.Stores, email string, hash *string) protocol.AccountID {
	t.Helper()
	account := &accounts.NewAccount{
		Account:  protocol.Account{AccountID: protocol.NewAccountID(), Email: email, DisplayName: "Name"},
		EmailKey: email, PasswordHash: hash, CreatedAt: time.Now(),
	}
	if err := db.Accounts.Register(t.Context(), account, nil, nil, requester); err != nil {
		t.Fatal(err)
	}
	return account.AccountID
}

// emailChanges counts the audit entries of changed addresses.
func emailChanges(t *testing.T, db *persistence.Stores, account protocol.AccountID) int {
	t.Helper()
	n, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[int], `select count(*) from audit where account_id = $1 and event = $2`, account, string(audit.EventEmailChanged))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAChangedAddressIsTheSignInName(t *testing.T) {
	db := pgtest.New(t)
	hash := "a hash"
	ada, eve := newAccount(t, db, "ada@example.com", &hash), newAccount(t, db, "eve@example.com", &hash)
	changed, err := db.Accounts.ChangeEmail(t.Context(), ada, "Ada@Example.net", "ada@example.net", nil, requester)
	if err != nil || changed.AccountID != ada || changed.Email != "Ada@Example.net" || changed.DisplayName != "Name" {
		t.Fatalf("%+v, %v", changed, err)
	}
	if found, err := db.Accounts.CredentialsByEmail(t.Context(), "ada@example.net"); err != nil || found.AccountID != ada {
		t.Errorf("the new address signs in %+v, %v", found, err)
	}
	_, err = db.Accounts.CredentialsByEmail(t.Context(), "ada@example.com")
	storetest.WantCode(t, err, protocol.CodeNotFound)
	_, err = db.Accounts.ChangeEmail(t.Context(), eve, "ADA@example.net", "ada@example.net", nil, requester)
	storetest.WantCode(t, err, protocol.CodeEmailTaken)
	if found, err := db.Accounts.CredentialsByEmail(t.Context(), "eve@example.com"); err != nil || found.AccountID != eve {
		t.Errorf("after a refused change, the old address signs in %+v, %v", found, err)
	}
	if n := emailChanges(t, db, ada) + emailChanges(t, db, eve); n != 1 {
		t.Errorf("the audit has %d changes, want 1", n)
	}
}

func TestTheSameAddressChangesNothing(t *testing.T) {
	db := pgtest.New(t)
	hash := "a hash"
	ada := newAccount(t, db, "ada@example.com", &hash)
	changed, err := db.Accounts.ChangeEmail(t.Context(), ada, "ada@example.com", "ada@example.com", nil, requester)
	if err != nil || changed.Email != "ada@example.com" {
		t.Fatalf("%+v, %v", changed, err)
	}
	if n := emailChanges(t, db, ada); n != 0 {
		t.Errorf("the audit has %d changes, want none", n)
	}
}

// The address of an account without a password is for display only (docs/adr/0013).
func TestAnAccountWithoutAPasswordMayHaveAnAddressThatIsASignInName(t *testing.T) {
	db := pgtest.New(t)
	hash := "a hash"
	ada, linked := newAccount(t, db, "ada@example.com", &hash), newAccount(t, db, "eve@example.com", nil)
	if _, err := db.Accounts.ChangeEmail(t.Context(), linked, "ada@example.com", "ada@example.com", nil, requester); err != nil {
		t.Fatal(err)
	}
	if found, err := db.Accounts.CredentialsByEmail(t.Context(), "ada@example.com"); err != nil || found.AccountID != ada {
		t.Errorf("the address signs in %+v, %v", found, err)
	}
}

func TestAChangedNameIsThatOfOneAccount(t *testing.T) {
	db := pgtest.New(t)
	ada, eve := newAccount(t, db, "ada@example.com", nil), newAccount(t, db, "eve@example.com", nil)
	changed, err := db.Accounts.ChangeName(t.Context(), ada, "Ada Lovelace", nil)
	if err != nil || changed.AccountID != ada || changed.DisplayName != "Ada Lovelace" || changed.Email != "ada@example.com" {
		t.Fatalf("%+v, %v", changed, err)
	}
	if other, err := db.Accounts.CredentialsOf(t.Context(), eve); err != nil || other.DisplayName != "Name" {
		t.Errorf("the other account is %+v, %v", other, err)
	}
	_, err = db.Accounts.ChangeName(t.Context(), protocol.NewAccountID(), "Nobody", nil)
	storetest.WantCode(t, err, protocol.CodeNotFound)
}
