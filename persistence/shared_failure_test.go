package persistence_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/providers/embedded/embeddedtest"
)

var errOutage = &protocol.Error{Code: protocol.CodeUnavailable}

func TestAQuestionThatBreaksASharedTripFailsAlone(t *testing.T) {
	const hostile = 3
	for name, broken := range map[string]func() error{
		"fails":  func() error { return errors.New("no") },
		"panics": func() error { panic("no") },
	} {
		trips := 0
		answers, failures := persistence.AskTogether(func(some []int) error {
			trips++
			if slices.Contains(some, hostile) {
				return broken()
			}
			return nil
		}, 1, 2, hostile, 4)
		for i, n := range []int{1, 2, hostile, 4} {
			if n == hostile && failures[i] == nil || n != hostile && (failures[i] != nil || answers[i] != 2*n) {
				t.Errorf("%s: the answer to %d is %d, %v", name, n, answers[i], failures[i])
			}
		}
		if trips != 5 {
			t.Errorf("%s: %d trips", name, trips)
		}
	}
}

// A server that is away fails everybody, at once: no request asks it again.
func TestAnOutageOfASharedTripIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		failures []error // of one trip after the other
		trips    int
	}{
		"from the beginning": {[]error{errOutage}, 1},
		"while repeating":    {[]error{errors.New("no"), errors.New("no"), errOutage}, 3},
	} {
		trips := 0
		_, failures := persistence.AskTogether(func([]int) error {
			trips++
			return c.failures[min(trips, len(c.failures))-1]
		}, 1, 2, 3, 4)
		if trips != c.trips {
			t.Errorf("%s: %d trips", name, trips)
		}
		for i, err := range failures[trips-1:] {
			if protocol.CodeOf(err) != protocol.CodeUnavailable {
				t.Errorf("%s: the result of %d is %v", name, i+trips, err)
			}
		}
	}
}

// together runs what n callers do at the same time and returns their failures.
func together(n int, work func(i int) error) []error {
	failures := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { failures[i] = work(i) })
	}
	all.Wait()
	return failures
}

// One account has rows that cannot be read. Others look up theirs in the same trip, and it fails nobody else.
func TestAHostileAccountDecidesNoLookupButItsOwn(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db := database.Open(t)
	const accounts, hostile = 4, 1
	hashes := make([][]byte, accounts)
	owners := make([]protocol.AccountID, accounts)
	for i := range accounts {
		owners[i], hashes[i] = pgtest.Account(t, db), []byte{byte(i)}
		session := &persistence.NewSession{
			SessionID: protocol.NewSessionID(), TokenHash: hashes[i], KeyVersion: 1, At: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
		}
		if err := db.CreateSession(t.Context(), owners[i], session, persistence.Requester{RequestID: "req"}); err != nil {
			t.Fatal(err)
		}
		claim, _, err := db.ClaimKey(t.Context(), owners[i], keyOf("k", "body"))
		if err != nil {
			t.Fatal(err)
		}
		if err := claim.Complete(t.Context(), &persistence.Answer{Status: 201, Body: []byte("kept")}); err != nil {
			t.Fatal(err)
		}
	}
	database.Admin(t, `update sessions set expires_at = 'infinity' where account_id = $1`, owners[hostile])
	database.Admin(t, `update idempotency set headers = '"no object"' where account_id = $1`, owners[hostile])
	db.ShareLookups(accounts)
	for name, failures := range map[string][]error{
		"sessions": together(accounts, func(i int) error {
			session, err := db.FindSession(t.Context(), [][]byte{hashes[i]})
			if err == nil && session.AccountID != owners[i] {
				t.Errorf("session %d is of %v", i, session.AccountID)
			}
			return err
		}),
		"kept answers": together(accounts, func(i int) error {
			answer, err := db.FindAnswer(t.Context(), owners[i], keyOf("k", "body"))
			if err == nil && (answer == nil || string(answer.Body) != "kept") {
				t.Errorf("answer %d is %+v", i, answer)
			}
			return err
		}),
	} {
		for i, err := range failures {
			if (err != nil) != (i == hostile) {
				t.Errorf("%s: the result of %d is %v", name, i, err)
			}
		}
	}
}

// A counter that is none, and keys that are no text, fail nobody else's decision in the same pipeline.
func TestAHostileAccountDecidesNoLimitButItsOwn(t *testing.T) {
	limiter := newLimiter(t, embeddedtest.Redis(t).URL())
	spoiled, odd, honest := protocol.NewAccountID().String(), "\xff\x00\r\n*1\r\n", protocol.NewAccountID().String()
	if err := limiter.Spoil(t.Context(), "chat", spoiled); err != nil {
		t.Fatal(err)
	}
	if _, err := limiter.Take(t.Context(), "cancel", honest); err != nil { // loads the script
		t.Fatal(err)
	}
	for i, err := range limiter.TakeTogether(t.Context(), "chat", spoiled, honest, odd, honest) {
		if (err != nil) != (i == 0) {
			t.Errorf("the decision of %d is %v", i, err)
		}
	}
}

// Starts that share a transaction: text that Postgres cannot store fails its own start only.
func TestAHostileAccountDecidesNoStartButItsOwn(t *testing.T) {
	w := newWorld(t)
	key := protocol.IdempotencyKey{Method: "POST", Path: "/chat", Key: "\xff\x00"}
	hostile, odd := w.of(pgtest.Account(t, w.db), "text"), w.of(pgtest.Account(t, w.db), "with a key of any bytes")
	hostile.Begin = func(spec *protocol.TurnSpec) (protocol.TurnBegin, error) {
		begin, err := beginTurn(spec)
		spec.Routing.ModelID = "\xff\x00"
		return begin, err
	}
	odd.Idempotency = &key
	started := w.turns.StartTogether(t.Context(), w.request(nil, "one"), hostile, odd, w.of(pgtest.Account(t, w.db), "two"))
	for i, s := range started {
		if (s.Err != nil) != (i == 1) {
			t.Errorf("the result of %d is %v", i, s.Err)
		}
	}
}

// While the database gives no connection, the whole group is refused at once: none of it asks again.
func TestAnOutageEndsAGroupOfStartsAtOnce(t *testing.T) {
	database := pgtest.NewDatabase(t)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: database.URL, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := newWorldOn(t, database, db)
	other := pgtest.Account(t, w.db)
	w.must(db.InTx(t.Context(), w.account, func(context.Context, *persistence.Tx) error { // has the only connection
		for i, s := range w.turns.StartTogether(t.Context(), w.request(nil, "one"), w.of(other, "two")) {
			if protocol.CodeOf(s.Err) != protocol.CodeUnavailable || s.Alone {
				t.Errorf("the result of %d is %v (alone: %t)", i, s.Err, s.Alone)
			}
		}
		return nil
	}))
}

// A connection that breaks under a group costs none of it its start.
func TestAGroupOfStartsWhoseConnectionBreaksBeginsOneByOne(t *testing.T) {
	database := pgtest.NewDatabase(t)
	cut := pgtest.NewCutter(t, database.URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := newWorldOn(t, database, db)
	other := pgtest.Account(t, w.db)
	cut.CutRequest("no key update")
	for _, s := range w.turns.StartTogether(t.Context(), w.request(nil, "one"), w.of(other, "two")) {
		w.began(s, true)
	}
}
