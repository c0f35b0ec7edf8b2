package faults

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/clocktest"
)

// want lists the statuses that a cell allows.
type want []int

// row is one fault of one link, tested with a user of its own.
type row struct {
	*sitetest.User
	t           *testing.T
	site        *sitetest.Site
	report      *report
	link, fault string

	idle             string // a conversation that has no live turn when the fault starts
	before           string // the response for idle before the fault
	renamed          string // a conversation whose title is written during the fault
	liveConversation string // the conversation of the live turn
	turn             string
	ended            []<-chan error // the results of the turn's readers

	made, started, titled *sitetest.Response // responses to the writes; nil: none
	startedTurn           string             // the turn that the response started refers to; "": none
}

// newRow creates a user with a live turn that two clients read.
func newRow(t *testing.T, site *sitetest.Site, r *report, link, fault string) *row {
	t.Helper()
	w := &row{User: sitetest.NewUser(t, site.Base), t: t, site: site, report: r, link: link, fault: fault}
	w.idle, w.renamed, w.liveConversation = w.NewConversation(t), w.NewConversation(t), w.NewConversation(t)
	w.before = string(w.Do(t, http.MethodGet, "/conversations/"+w.idle, nil).Want(t, http.StatusOK, nil).Body)
	w.startLiveTurn()
	return w
}

// startLiveTurn starts the live turn and follows it twice.
func (w *row) startLiveTurn() {
	w.t.Helper()
	first := w.Chat(w.t, sitetest.NewChatBody(sitetest.LongTurn).In(w.liveConversation))
	first.AwaitKind(w.t, "answer.delta")
	w.turn = first.Turn
	second, refused, err := w.FollowAgain(sitetest.Within(w.t, sitetest.HangGuard), w.turn, 0, "")
	if err != nil || refused != nil {
		w.t.Fatalf("following: %v %+v", err, refused)
	}
	w.ended = []<-chan error{w.FollowInBackground(w.t, first), w.FollowInBackground(w.t, second)}
}

func (w *row) key(of string) string {
	return "fault-" + strings.ReplaceAll(w.fault, " ", "-") + "-" + of
}

func (w *row) title() string { return "Made during " + w.fault }

const newTitle = "Renamed"

func (w *row) createBody() map[string]string { return map[string]string{"title": w.title()} }

func (w *row) startBody() sitetest.ChatBody {
	return sitetest.NewChatBody("[[script tokens=3 ttft=0 interval=0s]]")
}

// sendAll sends reads and writes concurrently, as several clients do, and checks every response against the table.
func (w *row) sendAll(read, write want) {
	w.report.cell()
	w.report.cell()
	var all sync.WaitGroup
	for _, path := range []string{"/conversations/" + w.idle, "/conversations", "/chat/turns/" + w.turn} {
		all.Go(func() {
			a := w.requestAndCheck(read, http.MethodGet, path, nil)
			if a != nil && a.Status == http.StatusOK && strings.HasSuffix(path, w.idle) && string(a.Body) != w.before {
				w.t.Errorf("GET %s returns\n%s\nand before the fault it returned\n%s", path, a.Body, w.before)
			}
		})
	}
	all.Go(func() {
		w.made = w.requestAndCheck(write, http.MethodPost, "/conversations", w.createBody(), "Idempotency-Key", w.key("make"))
	})
	all.Go(func() {
		w.titled = w.requestAndCheck(write, http.MethodPut, "/conversations/"+w.renamed+"/title", map[string]string{"title": newTitle})
	})
	all.Go(func() { w.started = w.startDuringFault(write) })
	all.Wait()
}

// requestAndCheck sends a request and checks its response. The table does not distinguish between statuses of success:
// it contains 200 for 200, 201 and 202.
func (w *row) requestAndCheck(allowed want, method, path string, body any, headers ...string) *sitetest.Response {
	ctx, cancel := context.WithTimeout(w.t.Context(), sitetest.HangGuard)
	defer cancel()
	a, err := w.Request(ctx, method, path, body, headers...)
	if err != nil {
		w.t.Errorf("%s %s: no response: %v", method, path, err)
		return nil
	}
	w.check(allowed, a)
	return a
}

func (w *row) check(allowed want, a *sitetest.Response) {
	status := a.Status
	if status/100 == 2 {
		status = http.StatusOK
	}
	w.report.addResponse(w.link, w.fault, pathless(a.Request), status != http.StatusOK, a.Took)
	if !slices.Contains(allowed, status) {
		w.t.Errorf("%s during %s of %s: %d %s, want one of %v", a.Request, w.fault, w.link, a.Status, a.Body, allowed)
	}
	if status != http.StatusServiceUnavailable {
		return
	}
	if p := a.Problem(); p.Code != protocol.CodeUnavailable || p.RetryAfter < time.Second {
		w.t.Errorf("%s was refused without a code or a Retry-After: %q %s", a.Request, a.Header.Get("Retry-After"), a.Body)
	}
}

// pathless shortens a request to roughly its route, so that no identifiers are in the report.
func pathless(request string) string {
	parts := strings.Split(request, "/")
	for i, part := range parts {
		if len(part) > 20 {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

// startDuringFault starts a turn in a new conversation and closes its stream.
func (w *row) startDuringFault(allowed want) *sitetest.Response {
	ctx, cancel := context.WithTimeout(w.t.Context(), sitetest.HangGuard)
	defer cancel()
	began := time.Now()
	s, refused, err := w.TryChat(ctx, w.startBody(), "Idempotency-Key", w.key("start"))
	switch {
	case err != nil:
		w.t.Errorf("POST /chat: no response: %v", err)
		return nil
	case refused != nil:
		w.check(allowed, refused)
		return refused
	}
	defer s.Close()
	w.startedTurn = s.Turn
	a := &sitetest.Response{Response: &client.Response{Request: "POST /chat", Status: http.StatusOK, Took: time.Since(began)}}
	w.check(allowed, a)
	return a
}

// awaitDown waits until /ready reports a check as down. /health must return 200 then.
func (w *row) awaitDown(check string) {
	took := sitetest.AwaitDown(w.t, w.site.Internal, check, time.Now())
	w.report.update(w.link, w.fault, func(one *refusal) { one.noticed = took })
	w.healthy()
}

func (w *row) healthy() {
	if status, _, err := sitetest.Fetch(w.t, http.MethodGet, w.site.Base+"/health", ""); status != http.StatusOK || err != nil {
		w.t.Errorf("/health: %d %v", status, err)
	}
}

// recover waits until the service is ready and responds to concurrent requests.
func (w *row) recover() {
	took := sitetest.AwaitReady(w.t, w.site.Internal, time.Now())
	w.report.update(w.link, w.fault, func(one *refusal) { one.recovered = took })
	// As many at once as there are writers, because each needs a connection of its own.
	var reads []func()
	for range stormWriters {
		reads = append(reads, func() { w.requestUntilDecided(http.MethodGet, "/conversations/"+w.idle, nil) })
	}
	runConcurrently(reads...)
}

// requestUntilDecided repeats a request until the response is neither 503 nor idempotency_busy.
func (w *row) requestUntilDecided(method, path string, body any, headers ...string) *sitetest.Response {
	w.t.Helper()
	ctx := sitetest.Within(w.t, sitetest.HangGuard)
	var a *sitetest.Response
	waited := clocktest.Poll(ctx, sitetest.PollEvery, func() bool {
		var err error
		if a, err = w.Request(ctx, method, path, body, headers...); err != nil {
			w.t.Fatal(err)
		}
		return !undecided(a)
	})
	if waited != nil {
		w.t.Fatalf("%s %s still returns %d %s", method, path, a.Status, a.Body)
	}
	return a
}

// wholeTurn checks the turn that was live during the fault: it ended, it is complete, and every reader saw the same
// bytes.
func (w *row) wholeTurn() {
	w.t.Helper()
	w.report.cell()
	for _, ended := range w.ended {
		sitetest.AwaitEnd(w.t, ended)
	}
	w.WantCompleted(w.t, w.turn, w.liveConversation, sitetest.ScriptedText(sitetest.LongTurn))
}

// checkWrites checks the writes during the fault: each was stored completely or not at all, and is stored exactly once
// after a repeat with the same key.
func (w *row) checkWrites() {
	w.t.Helper()
	title := w.Page(w.t, w.renamed).Title
	if confirmed := w.titled != nil && w.titled.Status == http.StatusOK; title != newTitle && (confirmed || !strings.HasPrefix(title, "About")) {
		w.t.Errorf("the title is %q after %+v", title, w.titled)
	}
	w.checkCreated()
	w.checkStarted()
}

func (w *row) checkCreated() {
	w.t.Helper()
	again := w.requestUntilDecided(http.MethodPost, "/conversations", w.createBody(), "Idempotency-Key", w.key("make"))
	var made protocol.Conversation
	again.Want(w.t, http.StatusCreated, &made)
	if w.made != nil && w.made.Status == http.StatusCreated && string(w.made.Body) != string(again.Body) {
		w.t.Errorf("the first response was\n%s\nand the repeated one is\n%s", w.made.Body, again.Body)
	}
	if n := len(titles(w.t, superuser(w.t, w.site), w.Email)[w.title()]); n != 1 {
		w.t.Errorf("%d conversations were created with one key", n)
	}
}

func (w *row) checkStarted() {
	w.t.Helper()
	s := w.startUntilDecided()
	if w.startedTurn != "" && s.Turn != w.startedTurn {
		w.t.Errorf("one key started the turns %s and %s", w.startedTurn, s.Turn)
	}
	if _, end := s.ReadToEnd(w.t); end.Status != protocol.TurnCompleted {
		w.t.Errorf("the turn that was started during the fault ended %s", end.Status)
	}
	var turn protocol.Turn
	w.Get(w.t, "/chat/turns/"+s.Turn, &turn)
	if messages := w.Messages(w.t, turn.ConversationID.String()); len(messages) != 2 {
		w.t.Errorf("one turn produced %d messages", len(messages))
	}
}

// startUntilDecided repeats the start of the turn until the response is neither 503 nor idempotency_busy.
func (w *row) startUntilDecided() *sitetest.Stream {
	w.t.Helper()
	ctx := sitetest.Within(w.t, sitetest.HangGuard)
	var s *sitetest.Stream
	var refused *sitetest.Response
	_ = clocktest.Poll(ctx, sitetest.PollEvery, func() bool { // if ctx ends, the last response is a refusal
		var err error
		if s, refused, err = w.ChatAgain(ctx, w.startBody(), "Idempotency-Key", w.key("start")); err != nil {
			w.t.Fatal(err)
		}
		return refused == nil || !undecided(refused)
	})
	if refused != nil {
		w.t.Fatalf("POST /chat: %d %s", refused.Status, refused.Body)
	}
	w.t.Cleanup(s.Close)
	return s
}

// undecided reports whether a response leaves open what a request does: a refusal, or another request with the same key
// that is still being processed.
func undecided(a *sitetest.Response) bool {
	return a.Status == http.StatusServiceUnavailable || strings.Contains(string(a.Body), string(protocol.CodeIdempotencyBusy))
}

// runConcurrently runs functions concurrently and waits for all of them.
func runConcurrently(all ...func()) {
	var running sync.WaitGroup
	for _, one := range all {
		running.Go(one)
	}
	running.Wait()
}
