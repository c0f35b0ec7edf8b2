package sitetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"turnstone/protocol"
)

// GoodPassword is that of every user here.
const GoodPassword = "a long enough pass phrase"

// User is somebody with an account and a browser. It is safe for concurrent use once it is signed in.
type User struct {
	Base   string
	Email  string
	Client *http.Client
	csrf   string
	Saw    *Witness
	Ledger *Ledger
}

// NewBrowser keeps cookies and follows no redirect.
func NewBrowser(base string) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err)
	}
	return &http.Client{
		Jar: jar, Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NewUser makes an account and signs it in.
func NewUser(t *testing.T, base string) *User {
	t.Helper()
	u := &User{Base: base, Client: NewBrowser(base), Saw: NewWitness(t), Ledger: NewLedger(t)}
	t.Cleanup(u.Client.CloseIdleConnections)
	var a *Answer
	over := u.Ledger.Plan() // passwords are hashed a few at a time, and who waits too long for that is refused
	Eventually(t, "an account may be made", func() bool {
		u.Email = uuid.NewString() + "@example.org"
		a = u.Do(t, http.MethodPost, "/auth/register", map[string]string{
			"email": u.Email, "password": GoodPassword, "display_name": "Somebody",
		})
		return a.Status != http.StatusServiceUnavailable
	})
	over()
	var session protocol.SessionInfo
	a.Want(t, http.StatusCreated, &session)
	u.csrf = session.CSRFToken
	return u
}

// Device signs the same account in on another browser.
func (u *User) Device(t *testing.T) *User {
	t.Helper()
	other := &User{Base: u.Base, Email: u.Email, Client: NewBrowser(u.Base), Saw: u.Saw, Ledger: u.Ledger}
	t.Cleanup(other.Client.CloseIdleConnections)
	var session protocol.SessionInfo
	other.Do(t, http.MethodPost, "/auth/login", map[string]string{"email": u.Email, "password": GoodPassword}).
		Want(t, http.StatusOK, &session)
	other.csrf = session.CSRFToken
	return other
}

// Answer is a whole answer.
type Answer struct {
	Request string
	Status  int
	Header  http.Header
	Body    []byte
	Took    time.Duration
}

// Open sends a request and leaves its answer open. headers are names and values in turn.
func (u *User) Open(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, u.Base+path, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
		// Without this, net/http repeats what carries an Idempotency-Key by itself when its connection breaks, and the one
		// answer that is seen says that it was replayed.
		request.GetBody = nil
	}
	if u.csrf != "" {
		request.Header.Set("X-CSRF-Token", u.csrf)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	began := time.Now()
	response, err := u.Client.Do(request)
	switch {
	case err == nil:
		u.Ledger.Count(method+" "+path, began, response.StatusCode, nil)
	case ctx.Err() == nil:
		u.Ledger.Count(method+" "+path, began, 0, err)
	}
	return response, err
}

// Ask sends a request and reads the whole answer.
func (u *User) Ask(ctx context.Context, method, path string, body any, headers ...string) (*Answer, error) {
	began := time.Now()
	response, err := u.Open(ctx, method, path, body, headers...)
	if err != nil {
		return nil, err
	}
	return ReadAnswer(response, began)
}

// ReadAnswer reads the rest of a response; began is when it was asked for.
func ReadAnswer(response *http.Response, began time.Time) (*Answer, error) {
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return &Answer{
		Request: response.Request.Method + " " + response.Request.URL.Path, Status: response.StatusCode, Header: response.Header,
		Body: text, Took: time.Since(began),
	}, nil
}

// Do is AskAgain for the goroutine of the test.
func (u *User) Do(t *testing.T, method, path string, body any, headers ...string) *Answer {
	t.Helper()
	a, err := u.AskAgain(Within(t, Soon), method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// AskAgain is Ask, with the request sent again after an unplanned refusal. The ledger counts and reports each of these, and
// fails the test for it unless the machine was too slow; the rest of the test still finds what there is to find.
func (u *User) AskAgain(ctx context.Context, method, path string, body any, headers ...string) (*Answer, error) {
	for {
		began := time.Now()
		a, err := u.Ask(ctx, method, path, body, headers...)
		if err != nil || !u.unplanned(began, a) || Pause(ctx, PollEvery) != nil {
			return a, err
		}
	}
}

// unplanned reports a refusal that the ledger has counted as a finding, of a request that had no effect.
func (u *User) unplanned(began time.Time, a *Answer) bool {
	return a != nil && a.Status == http.StatusServiceUnavailable && !bytes.Contains(a.Body, []byte("outcome_unknown")) && !u.Ledger.Planned(began)
}

// Get reads what has to be there.
func (u *User) Get(t *testing.T, path string, into any) {
	t.Helper()
	u.Do(t, http.MethodGet, path, nil).Want(t, http.StatusOK, into)
}

// Want fails the test unless the answer has the status; into may be nil.
func (a *Answer) Want(t *testing.T, status int, into any) *Answer {
	t.Helper()
	if err := a.Decode(status, into); err != nil {
		t.Fatal(err)
	}
	return a
}

// Decode is Want for goroutines that are not the test's.
func (a *Answer) Decode(status int, into any) error {
	if a.Status != status {
		return fmt.Errorf("%s: %d, want %d: %s", a.Request, a.Status, status, a.Body)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		return fmt.Errorf("%s: %w: %s", a.Request, err, a.Body)
	}
	return nil
}

// Problem is what a test looks at in a problem document.
type Problem struct {
	Code    protocol.Code   `json:"code"`
	Detail  string          `json:"detail"`
	Current json.RawMessage `json:"current"`
}

// WantProblem fails the test unless the answer is the problem.
func (a *Answer) WantProblem(t *testing.T, status int, code protocol.Code) Problem {
	t.Helper()
	var p Problem
	a.Want(t, status, &p)
	if p.Code != code || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") {
		t.Fatalf("%s: %s as %s, want %s", a.Request, a.Body, a.Header.Get("Content-Type"), code)
	}
	return p
}

// ChatBody is the body of POST /chat.
type ChatBody map[string]any

// Saying is a turn that begins with a text.
func Saying(text string) ChatBody {
	return ChatBody{"input": []map[string]string{{"type": "text", "text": Canary + " " + text}}}
}

// In says it in a conversation.
func (b ChatBody) In(conversation string) ChatBody { return b.With("conversation_id", conversation) }

// With sets a member of the body.
func (b ChatBody) With(name string, value any) ChatBody {
	b[name] = value
	return b
}

// Chat begins a turn, or fails the test.
func (u *User) Chat(t *testing.T, body ChatBody, headers ...string) *Stream {
	t.Helper()
	s, refused, err := u.ChatAgain(Within(t, Patience), body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	if refused != nil {
		t.Fatalf("POST /chat: %d %s", refused.Status, refused.Body)
	}
	t.Cleanup(s.Close)
	return s
}

// ChatAgain is TryChat, with the request sent again after an unplanned refusal, as AskAgain does.
func (u *User) ChatAgain(ctx context.Context, body ChatBody, headers ...string) (*Stream, *Answer, error) {
	for {
		began := time.Now()
		s, refused, err := u.TryChat(ctx, body, headers...)
		if err != nil || !u.unplanned(began, refused) || Pause(ctx, PollEvery) != nil {
			return s, refused, err
		}
	}
}

// TryChat begins a turn; what is no stream is answered as it came.
func (u *User) TryChat(ctx context.Context, body ChatBody, headers ...string) (*Stream, *Answer, error) {
	return u.OpenStream(ctx, http.MethodPost, "/chat", body, 0, headers...)
}

// Messages reads the active branch, oldest first.
func (u *User) Messages(t *testing.T, conversation string) []protocol.Message {
	t.Helper()
	var page protocol.List[protocol.Message]
	u.Get(t, "/conversations/"+conversation+"/messages?limit=100", &page)
	return page.Data
}

// Page is what paints a conversation.
func (u *User) Page(t *testing.T, conversation string) protocol.ConversationPage {
	t.Helper()
	var page protocol.ConversationPage
	u.Get(t, "/conversations/"+conversation, &page)
	return page
}

// NewConversation is one with a title, so that no automatic one is made.
func (u *User) NewConversation(t *testing.T) string {
	t.Helper()
	var made protocol.Conversation
	u.Do(t, http.MethodPost, "/conversations", map[string]string{"title": "About " + Canary}).Want(t, http.StatusCreated, &made)
	return made.ConversationID.String()
}

// Steering is the body of POST /chat/steering for an input.
func Steering(turn, clientID, text, delivery string) map[string]any {
	return map[string]any{
		"type": "input", "turn_id": turn, "client_steering_id": clientID, "delivery": delivery,
		"input": []map[string]string{{"type": "text", "text": Canary + " " + text}},
	}
}

// Cancelling is the body of POST /chat/steering for a cancel.
func Cancelling(turn string) map[string]any { return map[string]any{"type": "cancel", "turn_id": turn} }

// Receipt is what came of a command.
type Receipt struct {
	Sent     bool
	Status   int // 202 or 409
	Sequence int64
}

// Insist sends a command until it is decided: 202 or 409 steering_closed. Refusals outside of planned faults are counted.
func Insist(ctx context.Context, u *User, body map[string]any) (Receipt, error) {
	for {
		a, err := u.Ask(ctx, http.MethodPost, "/chat/steering", body)
		if err == nil && a.Status != http.StatusServiceUnavailable {
			return ReadReceipt(a)
		}
		if waited := Pause(ctx, PollEvery); waited != nil {
			return Receipt{}, errors.Join(waited, err)
		}
	}
}

// ReadReceipt reads an answer to a command: accepted, or steering_closed.
func ReadReceipt(a *Answer) (Receipt, error) {
	r := Receipt{Sent: true, Status: a.Status}
	if a.Status == http.StatusAccepted {
		var accepted protocol.SteeringReceipt
		err := a.Decode(a.Status, &accepted)
		r.Sequence = accepted.Sequence
		return r, err
	}
	var p Problem
	if err := a.Decode(http.StatusConflict, &p); err != nil {
		return r, err
	}
	if p.Code != protocol.CodeSteeringClosed {
		return r, fmt.Errorf("%s: %s", a.Request, a.Body)
	}
	return r, nil
}

// Live begins a turn and waits until it says something.
func (u *User) Live(t *testing.T, conversation, text string) *Stream {
	t.Helper()
	s := u.Chat(t, Saying(text).In(conversation))
	s.AwaitKind(t, "answer.delta")
	return s
}

// Cancel ends a turn and reads the rest of it.
func (u *User) Cancel(t *testing.T, s *Stream) {
	t.Helper()
	u.Do(t, http.MethodPost, "/chat/steering", Cancelling(s.Turn)).Want(t, http.StatusAccepted, nil)
	if _, end := s.ToTheEnd(t); end.Status != protocol.TurnCancelled {
		t.Errorf("a cancelled turn ended %s", end.Status)
	}
}

// FollowUps are those of a conversation, in order.
func (u *User) FollowUps(t *testing.T, conversation string) []protocol.FollowUp {
	t.Helper()
	var list protocol.List[protocol.FollowUp]
	u.Get(t, "/conversations/"+conversation+"/follow-ups", &list)
	return list.Data
}
