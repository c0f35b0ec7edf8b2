package persistence_test

import (
	"context"
	"crypto/sha256"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func keyOf(key, body string) protocol.IdempotencyKey {
	return protocol.IdempotencyKey{Method: "POST", Path: "/things", Key: key, BodyHash: sha256.Sum256([]byte(body))}
}

func TestSameKeyBeginsOneTurn(t *testing.T) {
	w := newWorld(t)
	key := keyOf("k", "body")
	var running sync.WaitGroup
	results := make(chan *protocol.TurnStartResult, 8)
	for range cap(results) {
		running.Go(func() {
			start := w.request(nil, "hello")
			start.Idempotency = &key
			result, err := w.try(start)
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
			t.Fatalf("answered %+v", result)
		}
		turns[result.Spec.TurnID] = true
		if !result.Replayed {
			begun++
		}
	}
	if len(turns) != 1 || begun != 1 {
		t.Errorf("%d turns, %d begun", len(turns), begun)
	}
	for turn := range turns {
		if found, err := w.turns.KeptStart(t.Context(), w.account, key); err != nil || found == nil || found.TurnID == nil || *found.TurnID != turn {
			t.Errorf("found %v (%v)", found, err)
		}
	}
	other := w.request(nil, "other")
	otherKey := keyOf("k", "other body")
	other.Idempotency = &otherKey
	if _, err := w.try(other); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body: %v", err)
	}
	if _, err := w.turns.KeptStart(t.Context(), w.account, otherKey); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
		t.Errorf("looking another body up: %v", err)
	}
}

func TestFailedStartFreesItsKeyAndQueuedOneKeepsIt(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	key := keyOf("k", "body")
	start := w.request(&turn.spec.ConversationID, "more")
	start.Idempotency = &key
	if _, err := w.try(start); protocol.CodeOf(err) != protocol.CodeTurnInProgress {
		t.Fatal(err)
	}
	start.IfBusy = protocol.BusyQueue
	first, err := w.try(start)
	if err != nil || first.FollowUp == nil || first.Replayed {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := w.try(start)
	if err != nil || again.FollowUp == nil || !again.Replayed || again.FollowUp.FollowUpID != first.FollowUp.FollowUpID {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestKeyIsClaimedByOneAndItsAnswerKept(t *testing.T) {
	db := pgtest.New(t)
	account := pgtest.Account(t, db)
	claim, answer, err := db.ClaimKey(t.Context(), account, keyOf("k", "body"))
	if err != nil || claim == nil || answer != nil {
		t.Fatalf("%v, %v, %v", claim, answer, err)
	}
	if found, err := db.FindAnswer(t.Context(), account, keyOf("k", "body")); found != nil || err != nil {
		t.Errorf("an answer before there is one: %v, %v", found, err)
	}
	if _, _, err := db.ClaimKey(t.Context(), account, keyOf("k", "other")); protocol.CodeOf(err) != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body: %v", err)
	}
	type claimed struct {
		answer *persistence.Answer
		err    error
	}
	waiting := make(chan claimed, 1)
	go func() {
		_, answer, err := db.ClaimKey(context.Background(), account, keyOf("k", "body"))
		waiting <- claimed{answer, err}
	}()
	first := &persistence.Answer{Status: 201, Headers: map[string]string{"Location": "/things/1"}, Body: []byte("{}")}
	if err := claim.Complete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	got := <-waiting
	if got.err != nil || got.answer == nil || got.answer.Status != 201 || got.answer.Headers["Location"] != "/things/1" || string(got.answer.Body) != "{}" {
		t.Errorf("the one who waited got %+v, %v", got.answer, got.err)
	}
	if _, kept, err := db.ClaimKey(t.Context(), account, keyOf("k", "body")); err != nil || kept == nil {
		t.Errorf("a repeat got %v, %v", kept, err)
	}
	other := pgtest.Account(t, db)
	if claim, _, err := db.ClaimKey(t.Context(), other, keyOf("k", "body")); err != nil || claim == nil {
		t.Errorf("another account's key: %v, %v", claim, err)
	}
}

func TestReleasedAndDeadClaimsAreFree(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	account := pgtest.Account(t, db)
	claim, _, err := db.ClaimKey(t.Context(), account, keyOf("k", "body"))
	if err != nil {
		t.Fatal(err)
	}
	if err := claim.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	dead, _, err := db.ClaimKey(t.Context(), account, keyOf("k", "another body"))
	if err != nil || dead == nil {
		t.Fatalf("after a release: %v, %v", dead, err)
	}
	database.Admin(t, `update idempotency set created_at = now() - interval '31 seconds'`)
	if next, _, err := db.ClaimKey(t.Context(), account, keyOf("k", "body")); err != nil || next == nil {
		t.Fatalf("after a death: %v, %v", next, err)
	}
	err = db.InTx(t.Context(), account, func(ctx context.Context, tx *persistence.Tx) error {
		return dead.CompleteIn(ctx, tx, &persistence.Answer{Status: 201})
	})
	if protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("the dead one completes: %v", err)
	}
	status, err := persistence.Row(t.Context(), db, account, pgx.RowTo[*int], `select status from idempotency`)
	if err != nil || status != nil {
		t.Errorf("the status is %v (%v)", status, err)
	}
}

func TestKeyThatIsWorkedOnForLongIsBusy(t *testing.T) {
	db, err := persistence.Open(t.Context(), persistence.Config{URL: pgtest.NewDatabase(t).URL, KeyWait: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	account := pgtest.Account(t, db)
	if _, _, err := db.ClaimKey(t.Context(), account, keyOf("k", "body")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.ClaimKey(t.Context(), account, keyOf("k", "body")); protocol.CodeOf(err) != protocol.CodeIdempotencyBusy {
		t.Errorf("answered %v", err)
	}
}

// due is a context that says when it ends, but does not: what is held is that somebody heeds the time, not that the
// machine is fast enough to do so.
type due struct {
	context.Context
	at time.Time
}

func (d due) Deadline() (time.Time, bool) { return d.at, true }

// withAKeyInWork has a key that somebody works on, and lets others wait for it as long as their requests last.
func withAKeyInWork(t *testing.T) (*persistence.DB, pgtest.Database, protocol.AccountID) {
	t.Helper()
	database := pgtest.NewDatabase(t)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, KeyWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	account := pgtest.Account(t, db)
	if _, _, err := db.ClaimKey(t.Context(), account, keyOf("k", "body")); err != nil {
		t.Fatal(err)
	}
	return db, database, account
}

// lockKeys makes every look at a key wait until release is called.
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

// A request that is out of time says that its twin works, as long as it can still say something.
func TestWaitingForATwinEndsBeforeTheRequestDoes(t *testing.T) {
	db, _, account := withAKeyInWork(t)
	ctx := due{t.Context(), time.Now().Add(500 * time.Millisecond)}
	if _, _, err := db.ClaimKey(ctx, account, keyOf("k", "body")); protocol.CodeOf(err) != protocol.CodeIdempotencyBusy {
		t.Errorf("answered %v", err)
	}
}

// On a slow machine the time ends while the database is being asked once more: what was seen before is still the answer.
func TestARequestWhoseTimeEndsWhileItLooksForItsTwinHasSeenItBefore(t *testing.T) {
	db, database, account := withAKeyInWork(t)
	admin, err := pgx.Connect(t.Context(), database.AdminURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(t.Context())) }()
	const look = "insert into idempotency"
	ctx, end := context.WithCancel(t.Context())
	defer end()
	answered := make(chan error, 1)
	release := lockKeys(t, admin)
	go func() {
		_, _, err := db.ClaimKey(ctx, account, keyOf("k", "body"))
		answered <- err
	}()
	awaitLocked(t, database, look)
	release()
	awaitWaiting(t, database, look, false) // else the lock could be taken before the first look has it
	release = lockKeys(t, admin)
	awaitLocked(t, database, look)
	end()
	if err := <-answered; protocol.CodeOf(err) != protocol.CodeIdempotencyBusy {
		t.Errorf("answered %v", err)
	}
	release()
}
