package accounts_test

import (
	"testing"
	"time"

	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

// A password was checked before the account had another one, or before the session ended.
func TestAnOldPasswordNeitherSignsInNorIsChanged(t *testing.T) {
	db := pgtest.NewDatabase(t).Open(t)
	account, by, now := pgtest.Account(t, db), audit.Requester{RequestID: "req"}, time.Now()
	set := func(hash string) {
		if err := db.Accounts.SetPassword(t.Context(), account, hash, now, by); err != nil {
			t.Fatal(err)
		}
	}
	session := func(token byte, checked string) *accounts.NewSession {
		return &accounts.NewSession{SessionID: protocol.SessionID{1}, TokenHash: []byte{token}, KeyVersion: 1, At: now, ExpiresAt: now.Add(time.Hour), Checked: &checked}
	}
	change := func(token byte, checked string) error {
		_, err := db.Accounts.ChangePassword(t.Context(), account, "changed", session(token, checked), by)
		return err
	}
	set("old")
	if err := db.Accounts.CreateSession(t.Context(), account, session(1, "old"), by); err != nil {
		t.Fatal(err)
	}
	set("new") // ends the session
	for name, err := range map[string]error{
		"a sign-in with the old password": db.Accounts.CreateSession(t.Context(), account, session(2, "old"), by), "a change of the old password": change(3, "old"), "a session that has ended": change(4, "new"),
	} {
		if protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if found, err := db.Accounts.CredentialsOf(t.Context(), account); err != nil || *found.PasswordHash != "new" {
		t.Errorf("%+v, %v", found, err)
	}
	if err := db.Accounts.CreateSession(t.Context(), account, session(5, "new"), by); err != nil {
		t.Error(err)
	}
	if err := change(6, "new"); err != nil {
		t.Error(err)
	}
}

// One account has rows that cannot be read. The lookups of other accounts in the same round trip succeed.
func TestAHostileAccountFailsOnlyItsOwnLookupOfASession(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	const count, hostile = 4, 1
	hashes := make([][]byte, count)
	owners := make([]protocol.AccountID, count)
	for i := range count {
		owners[i], hashes[i] = pgtest.Account(t, db), []byte{byte(i)}
		session := &accounts.NewSession{
			SessionID: protocol.NewSessionID(), TokenHash: hashes[i], KeyVersion: 1, At: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
		}
		if err := db.Accounts.CreateSession(t.Context(), owners[i], session, audit.Requester{RequestID: "req"}); err != nil {
			t.Fatal(err)
		}
	}
	database.Admin(t, `update sessions set expires_at = 'infinity' where account_id = $1`, owners[hostile])
	db.Accounts.ShareLookups(count)
	failures := storetest.Together(count, func(i int) error {
		session, err := db.Accounts.FindSession(t.Context(), [][]byte{hashes[i]})
		if err == nil && session.AccountID != owners[i] {
			t.Errorf("session %d belongs to %v", i, session.AccountID)
		}
		return err
	})
	for i, err := range failures {
		if (err != nil) != (i == hostile) {
			t.Errorf("the result of %d is %v", i, err)
		}
	}
}
