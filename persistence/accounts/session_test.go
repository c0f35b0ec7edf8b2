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
