package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/model/scripted"
)

// How long an answer may take, as the service promises. A machine that is outside its bounds meanwhile makes a miss
// inconclusive (package machine).
const (
	atOnce       = time.Second             // Postgres is away
	withoutRedis = 300 * time.Millisecond  // the limiter cannot decide
	atLock       = 2500 * time.Millisecond // lock_timeout is 2 s
	atDeadline   = 5500 * time.Millisecond // a request has 5 s
)

// want is what a cell allows.
type want struct {
	statuses []int
	within   time.Duration
}

// longTurn is live through the whole of a fault that ends soon.
const longTurn = "[[script tokens=150 ttft=0 interval=20ms]]"

func longText() string {
	script, _ := scripted.Parse(longTurn)
	return script.Text()
}

// row is one fault of one link, with a user of its own.
type row struct {
	*sitetest.User
	t           *testing.T
	site        *sitetest.Site
	report      *report
	link, fault string

	kept    string // a conversation that nobody changes
	before  string // what it looks like
	renamed string // one whose title is written during the fault
	talks   string // the one of a live turn
	turn    string
	ended   []<-chan error // of its readers

	made, said, titled *sitetest.Answer // what came of the writes; nil: nothing came
	begun              string           // the turn of said, if it was begun
}

// newRow prepares a user with a live turn that two clients read.
func newRow(t *testing.T, site *sitetest.Site, r *report, link, fault string) *row {
	t.Helper()
	w := &row{User: sitetest.NewUser(t, site.Base), t: t, site: site, report: r, link: link, fault: fault}
	w.kept, w.renamed, w.talks = w.NewConversation(t), w.NewConversation(t), w.NewConversation(t)
	w.before = string(w.Do(t, http.MethodGet, "/conversations/"+w.kept, nil).Want(t, http.StatusOK, nil).Body)
	w.listen()
	return w
}

// listen begins the live turn and follows it twice.
func (w *row) listen() {
	w.t.Helper()
	first := w.Chat(w.t, sitetest.Saying(longTurn).In(w.talks))
	first.AwaitKind(w.t, "answer.delta")
	w.turn = first.Turn
	second, refused, err := w.Follow(sitetest.Within(w.t, sitetest.Patience), w.turn, 0, "")
	if err != nil || refused != nil {
		w.t.Fatalf("following: %v %+v", err, refused)
	}
	w.ended = []<-chan error{w.Following(w.t, first), w.Following(w.t, second)}
}

func (w *row) key(of string) string {
	return "fault-" + strings.ReplaceAll(w.fault, " ", "-") + "-" + of
}

func (w *row) title() string { return "Made during " + w.fault }

const newTitle = "Renamed"

func (w *row) creation() map[string]string { return map[string]string{"title": w.title()} }

func (w *row) saying() sitetest.ChatBody {
	return sitetest.Saying("[[script tokens=3 ttft=0 interval=0s]]")
}

// ask reads and writes at the same time, as several clients do, and holds every answer against the table.
func (w *row) ask(read, write want) {
	w.report.cell()
	w.report.cell()
	var all sync.WaitGroup
	for _, path := range []string{"/conversations/" + w.kept, "/conversations", "/chat/turns/" + w.turn} {
		all.Go(func() {
			a := w.hold(read, http.MethodGet, path, nil)
			if a != nil && a.Status == http.StatusOK && strings.HasSuffix(path, w.kept) && string(a.Body) != w.before {
				w.t.Errorf("GET %s answers\n%s\nand before the fault\n%s", path, a.Body, w.before)
			}
		})
	}
	all.Go(func() {
		w.made = w.hold(write, http.MethodPost, "/conversations", w.creation(), "Idempotency-Key", w.key("make"))
	})
	all.Go(func() {
		w.titled = w.hold(write, http.MethodPut, "/conversations/"+w.renamed+"/title", map[string]string{"title": newTitle})
	})
	all.Go(func() { w.said = w.say(write) })
	all.Wait()
}

// hold asks and checks. Statuses of success are all the same to the table: 200, 201 and 202 are 200 in it.
func (w *row) hold(allowed want, method, path string, body any, headers ...string) *sitetest.Answer {
	ctx, cancel := context.WithTimeout(w.t.Context(), sitetest.Soon)
	defer cancel()
	a, err := w.Ask(ctx, method, path, body, headers...)
	if err != nil {
		w.t.Errorf("%s %s: no answer: %v", method, path, err)
		return nil
	}
	w.check(allowed, a)
	return a
}

func (w *row) check(allowed want, a *sitetest.Answer) {
	status := a.Status
	if status/100 == 2 {
		status = http.StatusOK
	}
	w.report.answered(w.link, w.fault, pathless(a.Request), status != http.StatusOK, a.Took)
	if !slices.Contains(allowed.statuses, status) {
		w.t.Errorf("%s: %d %s, want one of %v", a.Request, a.Status, a.Body, allowed.statuses)
	}
	limit := allowed.within
	if status == http.StatusOK { // only refusals are promised sooner
		limit = atDeadline
	}
	what := fmt.Sprintf("%s, during %s of %s, answered %d,", a.Request, w.fault, w.link, a.Status)
	sitetest.Meter().Check(w.t, what, time.Now().Add(-a.Took), a.Took, limit)
	if status != http.StatusServiceUnavailable {
		return
	}
	var p sitetest.Problem
	after, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if json.Unmarshal(a.Body, &p) != nil || p.Code != protocol.CodeUnavailable || err != nil || after < 1 {
		w.t.Errorf("%s was refused without a reason or a time to come back: %q %s", a.Request, a.Header.Get("Retry-After"), a.Body)
	}
}

// pathless shortens a request to its route, more or less: identifiers stay out of the table.
func pathless(request string) string {
	parts := strings.Split(request, "/")
	for i, part := range parts {
		if len(part) > 20 {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

// say begins a turn in a new conversation and leaves its stream.
func (w *row) say(allowed want) *sitetest.Answer {
	ctx, cancel := context.WithTimeout(w.t.Context(), sitetest.Soon)
	defer cancel()
	began := time.Now()
	s, refused, err := w.TryChat(ctx, w.saying(), "Idempotency-Key", w.key("say"))
	switch {
	case err != nil:
		w.t.Errorf("POST /chat: no answer: %v", err)
		return nil
	case refused != nil:
		w.check(allowed, refused)
		return refused
	}
	defer s.Close()
	w.begun = s.Turn
	a := &sitetest.Answer{Request: "POST /chat", Status: http.StatusOK, Took: time.Since(began)}
	w.check(allowed, a)
	return a
}

// notice waits until /ready names a check as away; /health is well all the while.
func (w *row) notice(check string) {
	took := sitetest.AwaitDown(w.t, w.site.Internal, check, time.Now())
	w.report.update(w.link, w.fault, func(one *refusal) { one.noticed = took })
	w.healthy()
}

func (w *row) healthy() {
	if status, _, err := sitetest.Fetch(w.t, http.MethodGet, w.site.Base+"/health", ""); status != http.StatusOK || err != nil {
		w.t.Errorf("/health: %d %v", status, err)
	}
}

// recover waits until the service is ready and answers.
func (w *row) recover() {
	took := sitetest.AwaitReady(w.t, w.site.Internal, time.Now())
	w.report.update(w.link, w.fault, func(one *refusal) { one.recovered = took })
	w.insist(http.MethodGet, "/conversations/"+w.kept, nil)
}

// insist asks until the answer is none of 503 and idempotency_busy.
func (w *row) insist(method, path string, body any, headers ...string) *sitetest.Answer {
	w.t.Helper()
	ctx := sitetest.Within(w.t, sitetest.Patience)
	for {
		a, err := w.Ask(ctx, method, path, body, headers...)
		if err != nil {
			w.t.Fatal(err)
		}
		if a.Status != http.StatusServiceUnavailable && !strings.Contains(string(a.Body), string(protocol.CodeIdempotencyBusy)) {
			return a
		}
		if err := sitetest.Pause(ctx, sitetest.PollEvery); err != nil {
			w.t.Fatalf("%s %s goes on to answer %d %s", method, path, a.Status, a.Body)
		}
	}
}

// wholeTurn holds the turn that was live during the fault: it ended, whole, and everybody saw the same bytes.
func (w *row) wholeTurn() {
	w.t.Helper()
	w.report.cell()
	for _, ended := range w.ended {
		sitetest.AwaitEnd(w.t, ended)
	}
	w.WantWhole(w.t, w.turn, w.talks, longText())
}

// settle holds what was written during the fault: there is none of it or all of it, and once it was asked for again with
// the same key there is one of it.
func (w *row) settle() {
	w.t.Helper()
	title := w.Page(w.t, w.renamed).Title
	if told := w.titled != nil && w.titled.Status == http.StatusOK; title != newTitle && (told || !strings.HasPrefix(title, "About")) {
		w.t.Errorf("the title is %q after %+v", title, w.titled)
	}
	w.settleMade()
	w.settleSaid()
}

func (w *row) settleMade() {
	w.t.Helper()
	again := w.insist(http.MethodPost, "/conversations", w.creation(), "Idempotency-Key", w.key("make"))
	var made protocol.Conversation
	again.Want(w.t, http.StatusCreated, &made)
	if w.made != nil && w.made.Status == http.StatusCreated && string(w.made.Body) != string(again.Body) {
		w.t.Errorf("the first answer was\n%s\nand the repeated one is\n%s", w.made.Body, again.Body)
	}
	if n := titles(w.t, superuser(w.t, w.site), w.Email)[w.title()]; n != 1 {
		w.t.Errorf("%d conversations were made with one key", n)
	}
}

func (w *row) settleSaid() {
	w.t.Helper()
	s := w.Chat(w.t, w.saying(), "Idempotency-Key", w.key("say"))
	if w.begun != "" && s.Turn != w.begun {
		w.t.Errorf("one key began the turns %s and %s", w.begun, s.Turn)
	}
	if _, end := s.ToTheEnd(w.t); end.Status != protocol.TurnCompleted {
		w.t.Errorf("the turn that was asked for during the fault ended %s", end.Status)
	}
	var turn protocol.Turn
	w.Get(w.t, "/chat/turns/"+s.Turn, &turn)
	if messages := w.Messages(w.t, turn.ConversationID.String()); len(messages) != 2 {
		w.t.Errorf("one turn made %d messages", len(messages))
	}
}

// beside runs functions at once and waits for all.
func beside(all ...func()) {
	var running sync.WaitGroup
	for _, one := range all {
		running.Go(one)
	}
	running.Wait()
}
