package accounts_test

import (
	"slices"
	"strconv"
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

// newPasskey returns a passkey that is not stored yet.
func newPasskey(credential string, count uint32) *accounts.Passkey {
	return &accounts.Passkey{
		Passkey:      protocol.Passkey{PasskeyID: protocol.NewPasskeyID(), Name: "Key", CreatedAt: time.Now().UTC().Truncate(time.Microsecond), BackedUp: true},
		CredentialID: []byte(credential), PublicKey: []byte("key of " + credential), SignCount: count, Transports: []string{"internal", "hybrid"},
		AAGUID: [16]byte{1, 2, 3}, BackupEligible: true,
	}
}

func addPasskey(t *testing.T, db *persistence.Stores, account protocol.AccountID, credential string, count uint32) *accounts.Passkey {
	t.Helper()
	passkey := newPasskey(credential, count)
	if err := db.Passkeys.AddPasskey(t.Context(), account, passkey, requester); err != nil {
		t.Fatal(err)
	}
	return passkey
}

func newSession() *accounts.NewSession {
	now := time.Now()
	return &accounts.NewSession{SessionID: protocol.NewSessionID(), TokenHash: []byte(now.String()), At: now, ExpiresAt: now.Add(time.Hour)}
}

func passkeyEvents(t *testing.T, db *persistence.Stores, account protocol.AccountID) []string {
	t.Helper()
	events, err := pg.Rows(t.Context(), db.DB, account, pgx.RowTo[string], `select event from audit where account_id = $1 and event like 'passkey.%' order by n`, account)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestAPasskeyFindsItsAccount(t *testing.T) {
	db := pgtest.New(t)
	ada, eve := newAccount(t, db, "ada@example.com", nil), newAccount(t, db, "eve@example.com", nil)
	added := addPasskey(t, db, ada, "one", 7)
	addPasskey(t, db, eve, "two", 0)
	found, passkey, err := db.Passkeys.CredentialsByPasskey(t.Context(), []byte("one"))
	if err != nil || found.AccountID != ada || passkey.PasskeyID != added.PasskeyID || string(passkey.PublicKey) != "key of one" || passkey.SignCount != 7 ||
		!slices.Equal(passkey.Transports, added.Transports) || passkey.AAGUID != added.AAGUID || !passkey.BackupEligible || !passkey.BackedUp || passkey.LastUsedAt != nil || !passkey.CreatedAt.Equal(added.CreatedAt) {
		t.Errorf("%+v, %+v, %v", found, passkey, err)
	}
	_, _, err = db.Passkeys.CredentialsByPasskey(t.Context(), []byte("three"))
	storetest.WantCode(t, err, protocol.CodeNotFound)
	// One credential belongs to one account.
	storetest.WantCode(t, db.Passkeys.AddPasskey(t.Context(), eve, newPasskey("one", 0), requester), protocol.CodeConflict)
	for account, n := range map[protocol.AccountID]int{ada: 1, eve: 1} {
		if list, err := db.Passkeys.ListPasskeys(t.Context(), account); err != nil || len(list) != n {
			t.Errorf("%+v, %v", list, err)
		}
	}
}

func TestAnotherAccountsPasskeyIsNotFound(t *testing.T) {
	db := pgtest.New(t)
	ada, eve := newAccount(t, db, "ada@example.com", nil), newAccount(t, db, "eve@example.com", nil)
	id := addPasskey(t, db, ada, "one", 0).PasskeyID
	_, err := db.Passkeys.RenamePasskey(t.Context(), eve, &accounts.PasskeyChange{PasskeyID: id}, "Mine")
	storetest.WantCode(t, err, protocol.CodeNotFound)
	storetest.WantCode(t, db.Passkeys.DeletePasskey(t.Context(), eve, &accounts.PasskeyChange{PasskeyID: id}, nil, requester), protocol.CodeNotFound)
	storetest.WantCode(t, db.Passkeys.OwnsPasskey(t.Context(), eve, id), protocol.CodeNotFound)
	used, err := db.Passkeys.UsePasskey(t.Context(), eve, &accounts.PasskeyUse{PasskeyID: id, SignCount: 1, At: time.Now()}, newSession(), requester)
	if used || err != nil {
		t.Errorf("used: %v, %v", used, err)
	}
	if err := db.Passkeys.OwnsPasskey(t.Context(), ada, id); err != nil {
		t.Error(err)
	}
	renamed, err := db.Passkeys.RenamePasskey(t.Context(), ada, &accounts.PasskeyChange{PasskeyID: id}, "Work laptop")
	if err != nil || renamed.Name != "Work laptop" || renamed.PasskeyID != id {
		t.Errorf("%+v, %v", renamed, err)
	}
}

func TestAnAccountHasALimitedNumberOfPasskeys(t *testing.T) {
	db := pgtest.New(t)
	ada := newAccount(t, db, "ada@example.com", nil)
	for i := range accounts.MaxPasskeys - 1 {
		addPasskey(t, db, ada, strconv.Itoa(i), 0)
	}
	failed := 0
	for _, err := range storetest.Together(3, func(i int) error {
		return db.Passkeys.AddPasskey(t.Context(), ada, newPasskey("last "+strconv.Itoa(i), 0), requester)
	}) {
		if err != nil {
			storetest.WantCode(t, err, protocol.CodeConflict)
			failed++
		}
	}
	if list, err := db.Passkeys.ListPasskeys(t.Context(), ada); err != nil || len(list) != accounts.MaxPasskeys || failed != 2 {
		t.Errorf("%d passkeys, %d refusals, %v", len(list), failed, err)
	}
}

func TestTheLastWayToSignInIsNotDeleted(t *testing.T) {
	db := pgtest.New(t)
	ada := newAccount(t, db, "ada@example.com", nil)
	first, second := addPasskey(t, db, ada, "one", 0), addPasskey(t, db, ada, "two", 0)
	refused := 0
	for _, err := range storetest.Together(2, func(i int) error {
		return db.Passkeys.DeletePasskey(t.Context(), ada, &accounts.PasskeyChange{PasskeyID: []*accounts.Passkey{first, second}[i].PasskeyID}, nil, requester)
	}) {
		if err != nil {
			storetest.WantCode(t, err, protocol.CodeConflict)
			refused++
		}
	}
	list, err := db.Passkeys.ListPasskeys(t.Context(), ada)
	if err != nil || len(list) != 1 || refused != 1 {
		t.Fatalf("%d passkeys are left after %d refusals (%v)", len(list), refused, err)
	}
	if err := db.Accounts.LinkIdentity(t.Context(), ada, accounts.Identity{Issuer: "https://issuer.example", Subject: "ada"}, requester); err != nil {
		t.Fatal(err)
	}
	change := &accounts.PasskeyChange{PasskeyID: list[0].PasskeyID}
	storetest.WantCode(t, db.Passkeys.DeletePasskey(t.Context(), ada, change, []string{"https://other.example"}, requester), protocol.CodeConflict)
	if err := db.Passkeys.DeletePasskey(t.Context(), ada, change, []string{"https://issuer.example"}, requester); err != nil {
		t.Errorf("with an identity: %v", err)
	}
	hash := "a hash"
	eve := newAccount(t, db, "eve@example.com", &hash)
	if err := db.Passkeys.DeletePasskey(t.Context(), eve, &accounts.PasskeyChange{PasskeyID: addPasskey(t, db, eve, "three", 0).PasskeyID}, nil, requester); err != nil {
		t.Errorf("with a password: %v", err)
	}
	if events := passkeyEvents(t, db, eve); !slices.Equal(events, []string{string(audit.EventPasskeyAdded), string(audit.EventPasskeyRemoved)}) {
		t.Errorf("audit %v", events)
	}
}

func TestACountOfSignaturesIsUsedOnce(t *testing.T) {
	db := pgtest.New(t)
	ada := newAccount(t, db, "ada@example.com", nil)
	counting, other := addPasskey(t, db, ada, "one", 3), addPasskey(t, db, ada, "two", 0)
	use := func(passkey *accounts.Passkey, count uint32, session *accounts.NewSession) bool {
		t.Helper()
		used, err := db.Passkeys.UsePasskey(t.Context(), ada, &accounts.PasskeyUse{PasskeyID: passkey.PasskeyID, SignCount: count, At: time.Now()}, session, requester)
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	session := newSession()
	if !use(counting, 5, session) || use(counting, 5, newSession()) || use(counting, 4, newSession()) || use(counting, 0, newSession()) || !use(counting, 6, nil) {
		t.Error("a count that is not above the last one was accepted, or one above it was refused")
	}
	for _, step := range []struct {
		count    uint32
		accepted bool
	}{{0, true}, {0, true}, {1, true}, {0, false}} { // an authenticator that does not count at first
		if got := use(other, step.count, nil); got != step.accepted {
			t.Errorf("the count %d: accepted %t", step.count, got)
		}
	}
	if found, err := db.Accounts.FindSession(t.Context(), [][]byte{session.TokenHash}); err != nil || found.AccountID != ada {
		t.Errorf("the session %+v, %v", found, err)
	}
	if sessions, err := pg.Row(t.Context(), db.DB, ada, pgx.RowTo[int], `select count(*) from sessions where account_id = $1`, ada); err != nil || sessions != 1 {
		t.Errorf("%d sessions, %v", sessions, err)
	}
	if _, err := db.Exec(t.Context(), ada, `update accounts set disabled_at = now() where account_id = $1`, ada); err != nil {
		t.Fatal(err)
	}
	if use(counting, 9, newSession()) {
		t.Error("a disabled account signed in")
	}
}

func TestAChallengeOfAPasskeyIsTakenOnce(t *testing.T) {
	db := pgtest.New(t)
	ada := newAccount(t, db, "ada@example.com", nil)
	begin := &accounts.PasskeyFlow{ChallengeHash: []byte("hash"), BrowserHash: []byte("browser"), Purpose: accounts.PasskeyRegister, ForAccount: &ada, ExpiresAt: time.Now().Add(time.Minute)}
	if err := db.Passkeys.BeginPasskeyFlow(t.Context(), begin); err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, err := range storetest.Together(3, func(int) error {
		_, err := db.Passkeys.TakePasskeyFlow(t.Context(), begin.ChallengeHash)
		return err
	}) {
		if err == nil {
			taken++
			continue
		}
		storetest.WantCode(t, err, protocol.CodeNotFound)
	}
	if taken != 1 {
		t.Errorf("taken %d times", taken)
	}
	for _, expiry := range []time.Time{time.Now().Add(-time.Minute), time.Now().Add(time.Minute)} {
		flow := &accounts.PasskeyFlow{ChallengeHash: []byte(expiry.String()), BrowserHash: []byte("browser"), Purpose: accounts.PasskeySignIn, ExpiresAt: expiry}
		if err := db.Passkeys.BeginPasskeyFlow(t.Context(), flow); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Accounts.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := pg.Row(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[int], `select count(*) from passkey_flows`); err != nil || left != 1 {
		t.Errorf("%d flows are left (%v)", left, err)
	}
}
