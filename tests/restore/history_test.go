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
	"turnstone/protocol/verify"
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

// history is everything that the clients were sent. Its methods may be called from any goroutine.
type history struct {
	*verify.Witness

	mu     sync.Mutex
	writes []write  // guarded by mu
	wrong  []string // guarded by mu
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
	writes, stored := make([]verify.Write, len(h.writes)), map[string][]string{}
	for i := range h.writes {
		w := &h.writes[i]
		writes[i] = verify.Write{What: w.path}
		switch {
		case w.acked.Before(until):
			writes[i].Outcome = verify.Acknowledged
		case nothingElse && w.began.After(until):
			writes[i].Outcome = verify.Refused
		}
		response := users[w.user].Do(t, http.MethodGet, w.path, nil)
		if response.Status == http.StatusNotFound {
			o.lost++
			continue
		}
		o.kept++
		stored[w.path] = []string{w.path}
		if !w.checkContent(t, users[w.user], response, copied) {
			o.withoutContent++
		}
	}
	sitetest.Report(t, fmt.Sprintf("writes until %s", until), verify.CheckWrites(writes, stored))
	return o
}

// checkContent checks the title of a conversation or the content of a file. It returns false for a file whose content is
// newer than the copy of the objects.
func (w *write) checkContent(t *testing.T, u *sitetest.User, response *sitetest.Response, copied time.Time) (has bool) {
	t.Helper()
	if !w.isFile() {
		var found protocol.ConversationPage
		if response.Want(t, http.StatusOK, &found); found.Title != w.title {
			t.Errorf("%s has another title", w.path)
		}
		return true
	}
	content := u.Do(t, http.MethodGet, w.path+"/content", nil)
	if content.Status != http.StatusOK && w.acked.After(copied) {
		content.WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
		return false
	}
	if content.Want(t, http.StatusOK, nil); sha256.Sum256(content.Body) != w.sum {
		t.Errorf("%s has another content", w.path)
	}
	return true
}
