package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
)

const (
	stormers   = 3
	stormPause = 50 * time.Millisecond
	// repeated is how many of the writes that were not acknowledged are asked for again.
	repeated = 4
)

// storm writes all the while, so that a fault finds requests at every place of their way.
type storm struct {
	user  *sitetest.User
	ends  context.CancelFunc
	done  sync.WaitGroup
	mu    sync.Mutex
	wrote map[string]int // guarded by mu; status by title, 0 without an answer
}

// begin starts the writers, which wait so long for an answer. check is given every answer.
func begin(t *testing.T, u *sitetest.User, patience time.Duration, check func(*sitetest.Answer)) *storm {
	ctx, cancel := context.WithCancel(t.Context())
	s := &storm{user: u, ends: cancel, wrote: map[string]int{}}
	for writer := range stormers {
		s.done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.write(t, patience, fmt.Sprintf("Storm %d/%d", writer, n), check)
				_ = sitetest.Pause(ctx, stormPause) // the end is what the loop looks at
			}
		})
	}
	return s
}

func (s *storm) write(t *testing.T, patience time.Duration, title string, check func(*sitetest.Answer)) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a, err := s.user.Ask(ctx, http.MethodPost, "/conversations", map[string]string{"title": title}, "Idempotency-Key", stormKey(title))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.wrote[title] = 0
		if check != nil {
			t.Errorf("%s: no answer: %v", title, err)
		}
		return
	}
	s.wrote[title] = a.Status
	if check != nil {
		check(a)
	}
}

func stormKey(title string) string { return strings.NewReplacer(" ", "-", "/", "-").Replace(title) }

// end waits for the writers.
func (s *storm) end() {
	s.ends()
	s.done.Wait()
}

// acknowledged counts what was promised.
func (s *storm) acknowledged() (kept, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, status := range s.wrote {
		if status == http.StatusCreated {
			kept++
		} else {
			refused++
		}
	}
	return kept, refused
}

// hold compares what was promised with what is there: every acknowledged write once, every other one once or not at all;
// and of the others, when they are asked for again, once.
func (s *storm) hold(t *testing.T, w *row, dsn string) {
	t.Helper()
	again := 0
	for title, status := range s.wrote {
		if status != http.StatusCreated && again < repeated {
			again++
			a := w.insist(http.MethodPost, "/conversations", map[string]string{"title": title}, "Idempotency-Key", stormKey(title))
			a.Want(t, http.StatusCreated, nil)
			s.wrote[title] = a.Status
		}
	}
	there := titles(t, dsn, w.Email)
	for title, status := range s.wrote {
		n := there[title]
		if n > 1 || (status == http.StatusCreated && n != 1) {
			t.Errorf("%q was answered %d and is there %d times", title, status, n)
		}
	}
	kept, refused := s.acknowledged()
	t.Logf("%d writes acknowledged and there, %d refused and none or whole", kept, refused)
}

const titlesSQL = `
select c.title, count(*) from conversations c join accounts a using (account_id)
where a.email = $1 and c.deleted_at is null and c.title is not null group by c.title`

// titles counts the conversations of a user by title, past the service.
func titles(t *testing.T, dsn, email string) map[string]int {
	t.Helper()
	found := map[string]int{}
	asSuperuser(t, dsn, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, titlesSQL, email)
		if err != nil {
			return err
		}
		var title string
		var n int
		_, err = pgx.ForEachRow(rows, []any{&title, &n}, func() error {
			found[title] = n
			return nil
		})
		return err
	})
	return found
}

// asSuperuser works on a connection of its own.
func asSuperuser(t *testing.T, dsn string, work func(ctx context.Context, conn *pgx.Conn) error) {
	t.Helper()
	ctx := sitetest.Within(t, sitetest.Soon)
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

const crowd = 24

// alive asks many things at once right after a fault and counts who still meets it; then it waits until nobody does.
func (w *row) alive() {
	late := w.meetCrowd()
	w.report.update(w.link, w.fault, func(one *refusal) { one.late = late })
	if late > 0 {
		sitetest.Eventually(w.t, "nobody meets what is over", func() bool { return w.meetCrowd() == 0 })
	}
}

// meetCrowd renames, which takes the limiter as well as the database. It answers how many were refused.
func (w *row) meetCrowd() int {
	var running sync.WaitGroup
	var late atomic.Int64
	for range crowd {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(w.t.Context(), sitetest.Soon)
			defer cancel()
			a, err := w.Ask(ctx, http.MethodPut, "/conversations/"+w.talks+"/title", map[string]string{"title": newTitle})
			if err == nil && a.Status == http.StatusOK {
				return
			}
			late.Add(1)
			if err != nil || a.Status != http.StatusServiceUnavailable {
				w.t.Errorf("after the fault: %v %+v", err, a)
			}
		})
	}
	running.Wait()
	return int(late.Load())
}
