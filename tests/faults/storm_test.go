package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol/clock"
	"turnstone/protocol/verify"
)

const (
	stormWriters = 3
	stormPause   = 50 * time.Millisecond
	// repeated is the number of unacknowledged writes that are repeated.
	repeated = 4
)

// storm writes continuously, so that a fault meets requests in every stage of processing.
type storm struct {
	user  *sitetest.User
	stop  context.CancelFunc
	done  sync.WaitGroup
	mu    sync.Mutex
	wrote map[string]int // guarded by mu; status by title, 0 without a response
}

// startWriters starts the writers. timeout is how long a writer waits for a response; check is called with every
// response, or nil.
func startWriters(t *testing.T, u *sitetest.User, timeout time.Duration, check func(*sitetest.Response)) *storm {
	ctx, cancel := context.WithCancel(t.Context())
	s := &storm{user: u, stop: cancel, wrote: map[string]int{}}
	for writer := range stormWriters {
		s.done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.write(t, timeout, fmt.Sprintf("Storm %d/%d", writer, n), check)
				_ = clock.Sleep(ctx, stormPause) // the loop checks ctx
			}
		})
	}
	return s
}

func (s *storm) write(t *testing.T, timeout time.Duration, title string, check func(*sitetest.Response)) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	a, err := s.user.Request(ctx, http.MethodPost, "/conversations", map[string]string{"title": title}, "Idempotency-Key", stormKey(title))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.wrote[title] = 0
		if check != nil {
			t.Errorf("%s: no response: %v", title, err)
		}
		return
	}
	s.wrote[title] = a.Status
	if check != nil {
		check(a)
	}
}

func stormKey(title string) string { return strings.NewReplacer(" ", "-", "/", "-").Replace(title) }

// end stops the writers and waits for them.
func (s *storm) end() {
	s.stop()
	s.done.Wait()
}

// acknowledged returns the numbers of acknowledged and of other writes.
func (s *storm) acknowledged() (acknowledged, others int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, status := range s.wrote {
		if status == http.StatusCreated {
			acknowledged++
		} else {
			others++
		}
	}
	return acknowledged, others
}

// checkStored compares the responses with the stored rows: every acknowledged write is stored once, every other one at
// most once, and a repeated one once.
func (s *storm) checkStored(t *testing.T, w *row, dsn string) {
	t.Helper()
	again := 0
	for title, status := range s.wrote {
		if status != http.StatusCreated && again < repeated {
			again++
			a := w.requestUntilDecided(http.MethodPost, "/conversations", map[string]string{"title": title}, "Idempotency-Key", stormKey(title))
			a.Want(t, http.StatusCreated, nil)
			s.wrote[title] = a.Status
		}
	}
	writes := make([]verify.Write, 0, len(s.wrote))
	for title, status := range s.wrote {
		one := verify.Write{What: title}
		if status == http.StatusCreated {
			one.Outcome = verify.Acknowledged
		}
		writes = append(writes, one)
	}
	sitetest.Report(t, "writes", verify.CheckWrites(writes, titles(t, dsn, w.Email)))
	acknowledged, others := s.acknowledged()
	t.Logf("%d writes acknowledged and stored, %d others stored completely or not at all", acknowledged, others)
}

const titlesSQL = `
select c.title, array_agg(c.conversation_id::text) from conversations c join accounts a using (account_id)
where a.email = $1 and c.deleted_at is null and c.title is not null group by c.title`

// titles returns the conversations of a user by title, directly from the database.
func titles(t *testing.T, dsn, email string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	asSuperuser(t, dsn, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, titlesSQL, email)
		if err != nil {
			return err
		}
		var title string
		var ids []string
		_, err = pgx.ForEachRow(rows, []any{&title, &ids}, func() error {
			found[title], ids = ids, nil
			return nil
		})
		return err
	})
	return found
}

// asSuperuser calls work with a new connection to dsn, a URL for the superuser.
func asSuperuser(t *testing.T, dsn string, work func(ctx context.Context, conn *pgx.Conn) error) {
	t.Helper()
	ctx := sitetest.Within(t, sitetest.HangGuard)
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := work(ctx, conn); err != nil {
		t.Error(err)
	}
}

const burst = 24

// wantNoRefusals creates conversations concurrently once /ready has recovered from a fault. That needs both the limiter and
// the database, and no request may be refused any more. They must not change the same row: they would wait for each other.
func (w *row) wantNoRefusals() {
	var running sync.WaitGroup
	for range burst {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(w.t.Context(), sitetest.HangGuard)
			defer cancel()
			a, err := w.Request(ctx, http.MethodPost, "/conversations", map[string]string{"title": newTitle})
			switch {
			case err != nil:
				w.t.Errorf("after the fault: %v", err)
			case a.Status != http.StatusCreated:
				w.t.Errorf("after the fault, %s returned %d after %s: %s", a.Request, a.Status, round(a.Took), a.Body)
			}
		})
	}
	running.Wait()
}
