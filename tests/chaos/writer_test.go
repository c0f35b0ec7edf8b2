package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/clock"
	"turnstone/protocol/verify"
)

const (
	writePause  = 50 * time.Millisecond // between two writes of an account, in make test
	shortPause  = 10 * time.Millisecond // in longer runs: enough writes to find a change in ten thousand that the feed leaves out
	largestFile = 64 << 10
)

// writer writes conversations, titles, drafts and files of an account, one after the other and each through any node. A reader of
// the account feed, which also uses any node, must get every change that was acknowledged.
type writer struct {
	load   *load
	user   *user
	random *rand.Rand
	home   string // the conversation whose title and draft it changes

	started chan struct{} // closed when the feed has started

	mu           sync.Mutex
	created      []verify.Write    // guarded by mu: conversations, by title
	files        map[string]string // guarded by mu: the SHA-256 of each acknowledged file, by filename
	title, draft string            // guarded by mu: the newest acknowledged ones
	want, got    map[string]int64  // guarded by mu: newest versions that were acknowledged, and that the feed reported
	changed      chan struct{}     // guarded by mu: closed when the feed reports something
	resets       int               // guarded by mu: after failovers
	began        int               // guarded by mu: resets before the current write
}

func newWriter(t *testing.T, l *load, u *user, random *rand.Rand) *writer {
	t.Helper()
	w := &writer{
		load: l, user: u, random: random, home: u.via[0].NewConversation(t),
		files: map[string]string{}, want: map[string]int64{}, got: map[string]int64{}, changed: make(chan struct{}), started: make(chan struct{}),
	}
	page := u.via[0].Page(t, w.home)
	w.title, w.draft = page.Conversation.Title, page.Draft.Content
	return w
}

// write performs one write.
func (w *writer) write(ctx context.Context) error {
	own, stop := context.WithTimeout(context.WithoutCancel(ctx), sitetest.HangGuard)
	defer stop()
	err := [...]func(context.Context) error{w.create, w.create, w.create, w.create, w.putTitle, w.putDraft, w.upload}[w.random.IntN(7)](own)
	wait := writePause
	if *chaosFor > 0 {
		wait = shortPause
	}
	_ = clock.Sleep(ctx, wait) // the caller checks ctx
	return err
}

// send sends a write to any node until it has an outcome, which must have the status, and decodes it. One with headers has a key.
func (w *writer) send(ctx context.Context, method, path string, body any, status int, into any, headers ...string) error {
	w.mu.Lock()
	w.began = w.resets
	w.mu.Unlock()
	kind := "write"
	if len(headers) > 0 {
		kind = "create"
	}
	_, err := w.load.try(ctx, kind, w.random, ofOthers, func(attempt context.Context, at int) (bool, error) {
		response, err := w.user.via[at].Request(attempt, method, path, body, headers...)
		if again(response, err) {
			return false, err
		}
		return true, response.Decode(status, into)
	})
	return err
}

func (w *writer) create(ctx context.Context) error {
	var made protocol.Conversation
	title := uuid.NewString()
	if err := w.send(ctx, http.MethodPost, "/conversations", map[string]string{"title": title}, http.StatusCreated, &made, "Idempotency-Key", title); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.created = append(w.created, verify.Write{What: title, ID: made.ConversationID.String(), Outcome: verify.Acknowledged})
	w.acknowledged("conversation "+made.ConversationID.String(), made.Version)
	return nil
}

// acknowledged notes a change that the feed must report. A client that got feed.reset during the write loads the change. The caller holds w.mu.
func (w *writer) acknowledged(resource string, version int64) {
	w.want[resource] = version
	if w.resets > w.began {
		w.got[resource] = max(w.got[resource], version)
	}
}

// reset notes that the reader of the feed has to load everything. It returns false if no failover is the reason.
func (w *writer) reset() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resets++
	for resource, version := range w.want {
		w.got[resource] = max(w.got[resource], version)
	}
	return w.resets <= int(w.load.site.failovers.Load())
}

func (w *writer) putTitle(ctx context.Context) error {
	var changed protocol.Conversation
	title := uuid.NewString()
	if err := w.send(ctx, http.MethodPut, "/conversations/"+w.home+"/title", map[string]any{"title": title}, http.StatusOK, &changed); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.title = title
	w.acknowledged("conversation "+w.home, changed.Version)
	return nil
}

func (w *writer) putDraft(ctx context.Context) error {
	var changed protocol.Draft
	text := uuid.NewString()
	if err := w.send(ctx, http.MethodPut, "/conversations/"+w.home+"/draft", map[string]any{"content": text}, http.StatusOK, &changed); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draft = text
	w.acknowledged("draft "+w.home, changed.Version)
	return nil
}

// upload stores a file. A content whose outcome is unknown, or whose node ended, is sent again from its first byte.
func (w *writer) upload(ctx context.Context) error {
	content := make([]byte, 1+w.random.IntN(largestFile))
	for i := range content {
		content[i] = 'a' + byte(w.random.IntN(26))
	}
	name, sum := uuid.NewString()+".txt", sha256.Sum256(content)
	var one protocol.Upload
	session := map[string]any{"filename": name, "media_type": "text/plain", "size": len(content), "purpose": "library"}
	if err := w.send(ctx, http.MethodPost, "/files/uploads", session, http.StatusCreated, &one, "Idempotency-Key", name); err != nil {
		return err
	}
	_, err := w.load.try(ctx, "upload", w.random, ofOthers, func(attempt context.Context, at int) (bool, error) {
		via := w.user.via[at]
		response, err := via.Request(attempt, http.MethodPut, one.Path()+"/content", client.Content(content), "Content-Type", "text/plain")
		if err == nil && response.Status == http.StatusConflict { // another attempt still sends it, or has stored it
			response, err = via.Request(attempt, http.MethodGet, one.Path(), nil)
		}
		switch {
		case err != nil || response.Status == http.StatusServiceUnavailable:
			return false, err
		case response.Status != http.StatusOK && response.Status != http.StatusAccepted:
			return true, fmt.Errorf("%s: %d %s", response.Request, response.Status, response.Body)
		}
		err = json.Unmarshal(response.Body, &one)
		return err != nil || one.State == protocol.UploadReady, err
	})
	if err != nil {
		return fmt.Errorf("uploading %s (%s): %w", one.UploadID, one.State, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files[name] = hex.EncodeToString(sum[:])
	return nil
}

// follow reads the account feed until the test ends, over any nodes. It returns when the feed has started: changes before that are
// not reported.
func (w *writer) follow(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { stop(); <-ended })
	random := rand.New(rand.NewPCG(w.random.Uint64(), 0))
	go func() {
		defer close(ended)
		var feed verify.Feed
		for ctx.Err() == nil {
			if err := w.read(ctx, &feed, w.load.site.pick(random, -1)); err != nil {
				w.load.fail(fmt.Errorf("the account feed: %w", err))
				return
			}
			_ = clock.Sleep(ctx, pause) // the loop checks ctx
		}
	}()
	select {
	case <-w.started:
	case <-ended:
	case <-time.After(sitetest.HangGuard):
		t.Fatal("the account feed did not start")
	}
}

// read reads the feed on one connection, until it ends or is silent. It returns an error only for a violation.
func (w *writer) read(ctx context.Context, feed *verify.Feed, at int) error {
	began := time.Now()
	attempt, stop := context.WithCancel(ctx)
	defer stop()
	silent := time.AfterFunc(silence, stop)
	defer silent.Stop()
	path := "/events"
	if feed.Cursor != "" {
		path += "?after=" + feed.Cursor
	}
	response, err := w.user.via[at].Open(attempt, http.MethodGet, path, nil)
	if err != nil {
		return nil // the ledger has it
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusServiceUnavailable {
		return nil
	}
	frames := client.NewFrameReader(response.Body)
	for {
		frame, err := frames.Next()
		if err != nil {
			if attempt.Err() == nil {
				w.load.site.nodes[at].others.Count("the account feed", began, 0, err)
			}
			return nil
		}
		silent.Reset(silence)
		hadCursor := feed.Cursor != ""
		item, err := feed.Next(string(frame.ID), string(frame.Event), string(frame.Data))
		switch {
		case err != nil:
			return err
		case item.Type == protocol.FeedReset && hadCursor && w.reset():
			continue
		case item.Type == protocol.FeedReset && hadCursor:
			return fmt.Errorf("the cursor %q is not known to %s", feed.Cursor, w.load.site.nodes[at].name)
		case !hadCursor:
			close(w.started)
			continue
		case item.Version == nil:
			continue
		}
		id := item.ID
		if item.Kind() == "draft" && item.ConversationID != nil {
			id = item.ConversationID.String()
		}
		w.mu.Lock()
		w.got[item.Kind()+" "+id] = max(w.got[item.Kind()+" "+id], *item.Version)
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
	}
}

// checkFeed writes a last conversation and waits until the feed reports it. The feed is in order, so by then it must have reported
// every other acknowledged change.
func (w *writer) checkFeed(t *testing.T) {
	t.Helper()
	ctx := sitetest.Within(t, sitetest.HangGuard)
	if err := w.create(ctx); err != nil {
		t.Error(err)
		return
	}
	w.mu.Lock()
	last := "conversation " + w.created[len(w.created)-1].ID
	w.mu.Unlock()
	for {
		w.mu.Lock()
		reported, changed := w.got[last] > 0, w.changed
		w.mu.Unlock()
		if reported {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Errorf("the account feed did not report %s", last)
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for resource, version := range w.want {
		if w.got[resource] < version {
			t.Errorf("the account feed did not report version %d of %s (the newest one that it reported is %d)", version, resource, w.got[resource])
		}
	}
}
