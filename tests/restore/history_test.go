package restore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

// fileEvery is how many writes of a client there are for each upload.
const fileEvery = 8

// write is an acknowledged write: a conversation with a title, or a file with a content.
type write struct {
	user         int
	path         string // of the resource
	title        string // of a conversation
	sum          [sha256.Size]byte
	key          string // Idempotency-Key
	began, acked time.Time
}

func (w *write) isFile() bool { return w.title == "" }

// seen is an event of a live turn that a reader has received.
type seen struct {
	data string
	at   time.Time
}

// history is everything that the clients were sent. Its methods may be called from any goroutine.
type history struct {
	mu     sync.Mutex
	writes []write                   // guarded by mu
	events map[string]map[int64]seen // guarded by mu; by turn and sequence
	wrong  []string                  // guarded by mu
}

func (h *history) add(w write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, w)
}

func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.writes)
}

// fail records a response that no fault explains.
func (h *history) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

// record stores an event that a reader of a turn has received.
func (h *history) record(turn string, e sitetest.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.events[turn] == nil {
		h.events[turn] = map[int64]seen{}
	}
	h.events[turn][e.Sequence] = seen{e.Data, time.Now()}
}

// last returns the highest sequence of a turn that a reader has received.
func (h *history) last(turn string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(len(h.events[turn]))
}

// keepWriting writes until a request fails or ctx ends: conversations and, every fileEvery writes, a file.
func (h *history) keepWriting(ctx context.Context, number int, u *sitetest.User) {
	for n := 1; ctx.Err() == nil; n++ {
		began := time.Now()
		w, err := write{user: number, began: began, key: client.NewKey()}, error(nil)
		if n%fileEvery == 0 {
			err = w.upload(ctx, u, fmt.Sprintf("%s content %d of user %d", sitetest.Canary, n, number))
		} else {
			err = w.create(ctx, u, fmt.Sprintf("%s %d of user %d", sitetest.Canary, n, number))
		}
		if err != nil {
			if !u.Ledger.Planned(began) && ctx.Err() == nil {
				h.fail("write %d of user %d: %v", n, number, err)
			}
			return
		}
		w.acked = time.Now()
		h.add(w)
	}
}

func (w *write) create(ctx context.Context, u *sitetest.User, title string) error {
	response, err := u.Request(ctx, http.MethodPost, "/conversations", map[string]string{"title": title}, "Idempotency-Key", w.key)
	if err != nil {
		return err
	}
	var made protocol.Conversation
	w.title = title
	if err := response.Decode(http.StatusCreated, &made); err != nil {
		return err
	}
	w.path = "/conversations/" + made.ConversationID.String()
	return nil
}

func (w *write) upload(ctx context.Context, u *sitetest.User, content string) error {
	response, err := u.Request(ctx, http.MethodPost, "/files/uploads", map[string]any{
		"filename": "note.txt", "media_type": "text/plain", "size": len(content), "purpose": "library",
	}, "Idempotency-Key", w.key)
	if err != nil {
		return err
	}
	var upload protocol.Upload
	if err := response.Decode(http.StatusCreated, &upload); err != nil {
		return err
	}
	response, err = u.Request(ctx, http.MethodPut, upload.Path()+"/content", client.Content(content), "Content-Type", "text/plain")
	if err != nil {
		return err
	}
	if err := response.Decode(http.StatusOK, &upload); err != nil {
		return err
	}
	w.path, w.sum = "/files/"+upload.FileID.String(), sha256.Sum256([]byte(content))
	return nil
}

// outcome is what a restored service has of the history.
type outcome struct {
	kept, lost     int
	withoutContent int // files that are there, but whose content is not in the copy of the objects
}

// check compares a restored service with the history: every write that was acknowledged before until is there. If nothing
// else may be there, no write that began later is. Every content that was uploaded before copied, and whose file is there,
// can be read.
func (h *history) check(t *testing.T, users []*sitetest.User, until, copied time.Time, nothingElse bool) (o outcome) {
	t.Helper()
	for i := range h.writes {
		w := &h.writes[i]
		u := users[w.user]
		response := u.Do(t, http.MethodGet, w.path, nil)
		if response.Status == http.StatusNotFound {
			o.lost++
			if w.acked.Before(until) {
				t.Errorf("%s was acknowledged %s before the end of the backup, and is lost", w.path, until.Sub(w.acked))
			}
			continue
		}
		o.kept++
		if nothingElse && w.began.After(until) {
			t.Errorf("%s was written %s after the point in time, and is there", w.path, w.began.Sub(until))
		}
		if !w.isFile() {
			var found protocol.ConversationPage
			if response.Want(t, http.StatusOK, &found); found.Title != w.title {
				t.Errorf("%s has another title", w.path)
			}
			continue
		}
		content := u.Do(t, http.MethodGet, w.path+"/content", nil)
		if content.Status != http.StatusOK && w.acked.After(copied) { // the copy of the objects is older
			content.WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
			o.withoutContent++
			continue
		}
		if content.Want(t, http.StatusOK, nil); sha256.Sum256(content.Body) != w.sum {
			t.Errorf("%s has another content", w.path)
		}
	}
	return o
}

// checkEvents compares the log of a turn with what its reader received before until.
func (h *history) checkEvents(t *testing.T, turn string, events []sitetest.Event, until time.Time) (compared int) {
	t.Helper()
	for _, e := range events {
		before, known := h.events[turn][e.Sequence]
		if !known || before.at.After(until) {
			continue
		}
		if compared++; before.data != e.Data {
			t.Errorf("event %d of %s was\n%s\nand is\n%s", e.Sequence, turn, before.data, e.Data)
		}
	}
	for sequence, before := range h.events[turn] {
		if before.at.Before(until) && sequence > int64(len(events)) {
			t.Errorf("event %d of %s is lost", sequence, turn)
		}
	}
	return compared
}
