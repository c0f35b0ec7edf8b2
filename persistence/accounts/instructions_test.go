package accounts_test

import (
	"testing"

	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
)

func TestTheInstructionsOfAnAccountHaveVersions(t *testing.T) {
	db := pgtest.New(t)
	account, other := pgtest.Account(t, db), pgtest.Account(t, db)
	if none, err := db.Accounts.Instructions(t.Context(), account); err != nil || none.Version != 0 || none.Content != "" || none.UpdatedAt != nil {
		t.Errorf("instructions that were never written are %+v, %v", none, err)
	}
	put := func(version *int64, content string) (*protocol.Instructions, error) {
		return db.Accounts.PutInstructions(t.Context(), account, version, content)
	}
	_, err := put(nil, "Be brief.")
	storetest.WantCode(t, err, protocol.CodeVersionRequired)
	for n, content := range []string{"Be brief.", "Be kind.", ""} {
		stored, err := put(new(int64(n)), content)
		if err != nil || stored.Version != int64(n+1) || stored.Content != content || stored.UpdatedAt == nil {
			t.Errorf("stored %+v, %v", stored, err)
		}
		_, err = put(new(int64(n)), "stale")
		storetest.WantCode(t, err, protocol.CodeStaleVersion)
		if same, err := put(new(int64(n+1)), content); err != nil || same.Version != int64(n+1) {
			t.Errorf("the same text again is %+v, %v", same, err)
		}
	}
	if any, err := put(new(protocol.AnyVersion), "Be long."); err != nil || any.Version != 4 {
		t.Errorf("over any version: %+v, %v", any, err)
	}
	if found, err := db.Accounts.Instructions(t.Context(), account); err != nil || found.Content != "Be long." || found.Version != 4 {
		t.Errorf("read %+v, %v", found, err)
	}
	if theirs, err := db.Accounts.Instructions(t.Context(), other); err != nil || theirs.Version != 0 {
		t.Errorf("another account has %+v, %v", theirs, err)
	}
}
