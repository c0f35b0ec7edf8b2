package idempotency_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/nodes"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/ownership"
	"turnstone/protocol/proxytest"
	"turnstone/protocol/turnlog"
)

func TestConcurrentStartsWithOneKeyStartOneTurn(t *testing.T) {
	w := storetest.NewWorld(t)
	key := storetest.KeyOf("k", "body")
	var running sync.WaitGroup
	results := make(chan *turnlog.StartResult, 8)
	for range cap(results) {
		running.Go(func() {
			start := w.Request(nil, "hello")
			start.Idempotency = &key
			result, err := w.Try(start)
			if err != nil {
				t.Error(err)
			}
			results <- result
		})
	}
	running.Wait()
	turns, begun := map[protocol.TurnID]bool{}, 0
	for range cap(results) {
		result := <-results
		if result == nil || result.Spec == nil || result.Spec.Input != "hello" {
			t.Fatalf("the result is %+v", result)
		}
		turns[result.Spec.TurnID] = true
		if !result.Replayed {
			begun++
		}
	}
	if len(turns) != 1 || begun != 1 {
		t.Errorf("%d turns, %d started", len(turns), begun)
	}
	for turn := range turns {
		if found, err := w.Turns.StoredStart(t.Context(), w.Account, key); err != nil || found == nil || found.TurnID == nil || *found.TurnID != turn {
			t.Errorf("found %v (%v)", found, err)
		}
	}
	other := w.Request(nil, "other")
	otherKey := storetest.KeyOf("k", "other body")
	other.Idempotency = &otherKey
	if _, err := w.Try(other); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body: %v", err)
	}
	if _, err := w.Turns.StoredStart(t.Context(), w.Account, otherKey); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
		t.Errorf("looking up another body: %v", err)
	}
}

func TestFailedStartFreesItsKeyAndQueuedOneKeepsIt(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	key := storetest.KeyOf("k", "body")
	start := w.Request(&turn.Spec.ConversationID, "more")
	start.Idempotency = &key
	if _, err := w.Try(start); protocol.CodeOf(err) != protocol.CodeTurnInProgress {
		t.Fatal(err)
	}
	start.IfBusy = protocol.BusyQueue
	first, err := w.Try(start)
	if err != nil || first.FollowUp == nil || first.Replayed {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := w.Try(start)
	if err != nil || again.FollowUp == nil || !again.Replayed || again.FollowUp.FollowUpID != first.FollowUp.FollowUpID {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestAKeyIsClaimedOnceAndItsResponseIsStored(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	claim, response, err := db.Idempotency.ClaimKey(t.Context(), account, storetest.KeyOf("k", "body"))
	if err != nil || claim == nil || response != nil {
		t.Fatalf("%v, %v, %v", claim, response, err)
	}
	if found, err := db.Idempotency.FindResponse(t.Context(), account, storetest.KeyOf("k", "body")); found != nil || err != nil {
		t.Errorf("a response before the request completed: %v, %v", found, err)
	}
	if _, _, err := db.Idempotency.ClaimKey(t.Context(), account, storetest.KeyOf("k", "other")); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body: %v", err)
	}
	type claimed struct {
		response *idempotency.StoredResponse
		err      error
	}
	waiting := make(chan claimed, 1)
	go func() {
		_, response, err := db.Idempotency.ClaimKey(context.Background(), account, storetest.KeyOf("k", "body"))
		waiting <- claimed{response, err}
	}()
	first := &idempotency.StoredResponse{Status: 201, Headers: map[string]string{"Location": "/things/1"}, Body: []byte("{}")}
	if err := claim.Complete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	got := <-waiting
	if got.err != nil || got.response == nil || got.response.Status != 201 || got.response.Headers["Location"] != "/things/1" || string(got.response.Body) != "{}" {
		t.Errorf("the waiting request got %+v, %v", got.response, got.err)
	}
	if _, stored, err := db.Idempotency.ClaimKey(t.Context(), account, storetest.KeyOf("k", "body")); err != nil || stored == nil {
		t.Errorf("a repeat got %v, %v", stored, err)
	}
	other := pgtest.Account(t, db)
	if claim, _, err := db.Idempotency.ClaimKey(t.Context(), other, storetest.KeyOf("k", "body")); err != nil || claim == nil {
		t.Errorf("another account's key: %v, %v", claim, err)
	}
}

func TestReleasedAndExpiredClaimsCanBeClaimedAgain(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	claim, _, err := db.Idempotency.ClaimKey(t.Context(), account, storetest.KeyOf("k", "body"))
	if err != nil {
		t.Fatal(err)
	}
	if err := claim.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	dead, _, err := db.Idempotency.ClaimKey(t.Context(), account, storetest.KeyOf("k", "another body"))
	if err != nil || dead == nil {
		t.Fatalf("after a release: %v, %v", dead, err)
	}
	database.Admin(t, `update idempotency set created_at = now() - interval '31 seconds'`)
	if next, _, err := db.Idempotency.ClaimKey(t.Context(), account, storetest.KeyOf("k", "body")); err != nil || next == nil {
		t.Fatalf("after the claim expired: %v, %v", next, err)
	}
	err = db.InTx(t.Context(), account, func(ctx context.Context, tx *pg.Tx) error {
		return dead.CompleteIn(ctx, tx, &idempotency.StoredResponse{Status: 201})
	})
	if protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("the expired claim was completed: %v", err)
	}
	status, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[*int], `select status from idempotency`)
	if err != nil || status != nil {
		t.Errorf("the status is %v (%v)", status, err)
	}
}

func TestAKeyWhoseRequestRunsLongIsBusy(t *testing.T) {
	db, err := persistence.Open(t.Context(), persistence.Config{URL: pgtest.NewDatabase(t).URL, KeyWait: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	account := pgtest.Account(t, db)
	if _, _, err := db.Idempotency.ClaimKey(t.Context(), account, storetest.KeyOf("k", "body")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Idempotency.ClaimKey(t.Context(), account, storetest.KeyOf("k", "body")); protocol.CodeOf(err) != protocol.CodeIdempotencyBusy {
		t.Errorf("got %v", err)
	}
}

// The repeat of a request whose node was killed between the claim and the effect must not wait until the claim is old.
func TestAKeyOfADeadNodeIsFree(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, KeyWait: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	account, dead, other := pgtest.Account(t, db), protocol.NewNodeID(), protocol.NewNodeID()
	directory, key := nodes.NewDirectory(db.DB), storetest.KeyOf("k", "body")
	for _, node := range []protocol.NodeID{dead, other} {
		if err := directory.Register(t.Context(), ownership.NewNode{NodeID: node}); err != nil {
			t.Fatal(err)
		}
	}
	claim, _, err := db.Idempotency.On(dead).ClaimKey(t.Context(), account, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Idempotency.On(other).ClaimKey(t.Context(), account, key); protocol.CodeOf(err) != protocol.CodeIdempotencyBusy {
		t.Fatalf("while the node runs: %v", err)
	}
	if marked, err := directory.MarkDead(t.Context(), dead, 0); err != nil || !marked {
		t.Fatalf("%v, %v", marked, err)
	}
	if found, err := db.Idempotency.FindKey(t.Context(), account, key); found != nil || err != nil {
		t.Errorf("the key of the dead node: %+v, %v", found, err)
	}
	next, response, err := db.Idempotency.On(other).ClaimKey(t.Context(), account, key)
	if err != nil || next == nil || response != nil {
		t.Fatalf("after the death of the node: %v, %v, %v", next, response, err)
	}
	// The node only seemed dead, and continues.
	err = db.InTx(t.Context(), account, func(ctx context.Context, tx *pg.Tx) error {
		return claim.CompleteIn(ctx, tx, &idempotency.StoredResponse{Status: 201})
	})
	if protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("the dead node completes its request: %v", err)
	}
	if err := next.Complete(t.Context(), &idempotency.StoredResponse{Status: 201}); err != nil {
		t.Fatal(err)
	}
	if _, stored, err := db.Idempotency.On(other).ClaimKey(t.Context(), account, key); err != nil || stored == nil {
		t.Errorf("a repeat got %v, %v", stored, err)
	}
}

// cutWorld is a store behind a Cutter, and a key.
type cutWorld struct {
	cut     *pgtest.Cutter
	db      *persistence.Stores
	account protocol.AccountID
}

func newCutWorld(t *testing.T) *cutWorld {
	t.Helper()
	cut := pgtest.NewCutter(t, pgtest.NewDatabase(t).URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL, KeyWait: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return &cutWorld{cut, db, pgtest.Account(t, db)}
}

func (w *cutWorld) claim(t *testing.T) (*idempotency.KeyClaim, *idempotency.StoredResponse, error) {
	t.Helper()
	return w.db.Idempotency.ClaimKey(t.Context(), w.account, storetest.KeyOf("k", "body"))
}

// wantReleasedByReleaseLeft checks that the key is busy until ReleaseLeft has run.
func (w *cutWorld) wantReleasedByReleaseLeft(t *testing.T) {
	t.Helper()
	if _, _, err := w.claim(t); protocol.CodeOf(err) != protocol.CodeIdempotencyBusy {
		t.Fatalf("before the release: %v", err)
	}
	if err := w.db.Idempotency.ReleaseLeft(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next, _, err := w.claim(t); err != nil || next == nil {
		t.Errorf("after the release: %v, %v", next, err)
	}
}

// A request that fails because the database is away cannot release its key either.
func TestAKeyWhoseReleaseFailedIsReleasedLater(t *testing.T) {
	w := newCutWorld(t)
	claim, _, err := w.claim(t)
	if err != nil {
		t.Fatal(err)
	}
	const release = "delete from idempotency"
	w.cut.CutRequest(release)
	if err := claim.Release(t.Context()); err == nil {
		t.Fatal("the release was not cut")
	}
	w.cut.CutRequest(release)
	if err := w.db.Idempotency.ReleaseLeft(t.Context()); err == nil {
		t.Fatal("the second release was not cut")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := w.db.Idempotency.ReleaseLeft(ended); err == nil {
		t.Error("keys are released although there is no time for it")
	}
	w.wantReleasedByReleaseLeft(t)
}

// A claim whose reply is lost may be stored. Nothing else would release it.
func TestAClaimWhoseReplyWasLostIsReleasedLater(t *testing.T) {
	w := newCutWorld(t)
	w.cut.Arm(pgtest.Statement)
	if _, _, err := w.claim(t); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Fatalf("the reply was not lost: %v", err)
	}
	w.wantReleasedByReleaseLeft(t)
}

// A client that disconnects while its key is claimed repeats its request at once, and must not find the key in use.
func TestAClaimIsKnownAlthoughTheClientDisconnects(t *testing.T) {
	database := pgtest.NewDatabase(t)
	direct := database.Open(t)
	proxy, through := pgtest.NewProxy(t, database.URL, nil)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: through})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	account, key := pgtest.Account(t, db), storetest.KeyOf("k", "body")
	repair := proxy.Inject(func(p *proxytest.Piece) {
		if p.FromServer && bytes.Contains(p.Data, []byte("INSERT 0 1")) {
			p.Wait(time.Now().Add(clocktest.HangGuard))
		}
	})
	ctx, disconnect := context.WithCancel(t.Context())
	claimed := make(chan *idempotency.KeyClaim, 1)
	go func() {
		claim, _, err := db.Idempotency.ClaimKey(ctx, account, key)
		if err != nil {
			t.Error(err)
		}
		claimed <- claim
	}()
	storetest.Eventually(t, func() bool {
		count, err := pg.Row(t.Context(), direct.DB, account, pgx.RowTo[int], `select count(*) from idempotency`)
		return err == nil && count == 1
	})
	disconnect()
	repair()
	claim := <-claimed
	if claim == nil {
		t.Fatal("there is no claim")
	}
	if err := claim.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if next, _, err := direct.Idempotency.ClaimKey(t.Context(), account, key); err != nil || next == nil {
		t.Errorf("the repeat got %v, %v", next, err)
	}
}

// deadlineOnly is a context that reports a deadline but does not end then. The test checks that the callee stops before the
// deadline, independent of the speed of the host computer.
type deadlineOnly struct {
	context.Context
	at time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.at, true }

// withClaimedKey opens a database and claims a key, as a request that is still running. Other requests wait for the key
// as long as their contexts allow.
func withClaimedKey(t *testing.T) (*persistence.Stores, pgtest.Database, protocol.AccountID) {
	t.Helper()
	database := pgtest.NewDatabase(t)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, KeyWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	account := pgtest.Account(t, db)
	if _, _, err := db.Idempotency.ClaimKey(t.Context(), account, storetest.KeyOf("k", "body")); err != nil {
		t.Fatal(err)
	}
	return db, database, account
}

// lockKeys locks the rows of all keys, so that every attempt to claim one waits until release is called.
func lockKeys(t *testing.T, conn *pgx.Conn) (release func()) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from idempotency for update`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// A request that waits for another one with the same key stops waiting before its own deadline, while it can still
// respond that the other one is running.
func TestWaitingForAClaimedKeyEndsBeforeTheRequestTimesOut(t *testing.T) {
	db, _, account := withClaimedKey(t)
	ctx := deadlineOnly{t.Context(), time.Now().Add(500 * time.Millisecond)}
	if _, _, err := db.Idempotency.ClaimKey(ctx, account, storetest.KeyOf("k", "body")); protocol.CodeOf(err) != protocol.CodeIdempotencyBusy {
		t.Errorf("got %v", err)
	}
}

// On a slow host computer the deadline can pass during another attempt to claim the key. The result is the same as before
// that attempt: the key is busy.
func TestARequestThatTimesOutWhileClaimingABusyKeyReportsBusy(t *testing.T) {
	db, database, account := withClaimedKey(t)
	admin, err := pgx.Connect(t.Context(), database.AdminURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(t.Context())) }()
	const claim = "insert into idempotency" // the beginning of the statement that claims a key
	ctx, end := context.WithCancel(t.Context())
	defer end()
	claimed := make(chan error, 1)
	release := lockKeys(t, admin)
	go func() {
		_, _, err := db.Idempotency.ClaimKey(ctx, account, storetest.KeyOf("k", "body"))
		claimed <- err
	}()
	storetest.AwaitLocked(t, database, claim)
	release()
	storetest.AwaitWaiting(t, database, claim, false) // else this test could take the lock before that attempt
	release = lockKeys(t, admin)
	storetest.AwaitLocked(t, database, claim)
	end()
	if err := <-claimed; protocol.CodeOf(err) != protocol.CodeIdempotencyBusy {
		t.Errorf("got %v", err)
	}
	release()
}

// One account has a row that cannot be read. The lookups of other accounts in the same round trip succeed.
func TestAHostileAccountFailsOnlyItsOwnLookupOfAResponse(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	const accounts, hostile = 4, 1
	owners := make([]protocol.AccountID, accounts)
	for i := range accounts {
		owners[i] = pgtest.Account(t, db)
		claim, _, err := db.Idempotency.ClaimKey(t.Context(), owners[i], storetest.KeyOf("k", "body"))
		if err != nil {
			t.Fatal(err)
		}
		if err := claim.Complete(t.Context(), &idempotency.StoredResponse{Status: 201, Body: []byte("kept")}); err != nil {
			t.Fatal(err)
		}
	}
	database.Admin(t, `update idempotency set headers = '"no object"' where account_id = $1`, owners[hostile])
	db.Idempotency.ShareLookups(accounts)
	failures := storetest.Together(accounts, func(i int) error {
		response, err := db.Idempotency.FindResponse(t.Context(), owners[i], storetest.KeyOf("k", "body"))
		if err == nil && (response == nil || string(response.Body) != "kept") {
			t.Errorf("response %d is %+v", i, response)
		}
		return err
	})
	for i, err := range failures {
		if (err != nil) != (i == hostile) {
			t.Errorf("the result of %d is %v", i, err)
		}
	}
}
