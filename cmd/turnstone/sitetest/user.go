package sitetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/verify"
)

// GoodPassword is the password of every user that this package creates.
const GoodPassword = "a long enough pass phrase"

// User is an account with a browser that is signed in to it.
//
// Concurrency: its methods may be called from any goroutine once it is signed in.
type User struct {
	Base    string
	Email   string
	API     *client.Client
	HTTP    *http.Client // of API; its jar holds the session
	Witness *verify.Witness
	Ledger  *Ledger
	csrf    string
}

// NewBrowser returns an HTTP client that stores cookies, follows no redirects, and ends event streams that have a line
// which the contract does not allow.
func NewBrowser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err)
	}
	return &http.Client{
		Jar: jar, Transport: strictTransport{&http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: client.UnusedTimeout}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NewGuest returns a user without a session.
func NewGuest(t *testing.T, base string) *User {
	t.Helper()
	return newGuest(t, base, NewLedger(t))
}

func newGuest(t *testing.T, base string, ledger *Ledger) *User {
	t.Helper()
	u := &User{HTTP: NewBrowser(), Witness: NewWitness(t), Ledger: ledger}
	t.Cleanup(u.HTTP.CloseIdleConnections)
	return u.Via(t, base)
}

// Via returns the same user, with the same session, for another address of the service. The ledger counts every
// attempt. Streams reconnect; no other request is repeated, unless the test asks for it.
func (u *User) Via(t *testing.T, base string) *User {
	t.Helper()
	return u.ViaLedger(t, base, u.Ledger)
}

// ViaLedger is Via with another ledger, for example one of the failures of a single node.
func (u *User) ViaLedger(t *testing.T, base string, ledger *Ledger) *User {
	t.Helper()
	other := *u
	other.Base, other.Ledger = base, ledger
	api, err := client.New(base, client.Options{
		HTTP: u.HTTP, Retry: client.Retry{Wait: PollEvery, MaxWait: PollEvery},
		Observe: func(a client.Attempt) { ledger.Count(a.Request, a.Began, a.Status, a.Err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	api.UseToken(u.csrf)
	other.API = api
	return &other
}

// NewUser creates an account and signs it in.
func NewUser(t *testing.T, base string) *User {
	t.Helper()
	u := NewGuest(t, base)
	u.Email = uuid.NewString() + "@example.org"
	hashSlots <- struct{}{}
	defer func() { <-hashSlots }()
	a := u.Do(t, http.MethodPost, "/auth/register", map[string]string{
		"email": u.Email, "password": GoodPassword, "display_name": "Somebody",
	})
	u.useSession(t, a, http.StatusCreated)
	return u
}

// hashSlots limits the sign-ups and sign-ins of a test process that run at the same time. The service hashes two passwords
// at a time, and refuses a password if more than a few of the same network wait already.
var hashSlots = make(chan struct{}, 2)

// Device signs the same account in from another browser.
func (u *User) Device(t *testing.T) *User {
	t.Helper()
	other := NewGuest(t, u.Base)
	other.Witness, other.Ledger = u.Witness, u.Ledger
	other = other.Via(t, u.Base)
	hashSlots <- struct{}{}
	defer func() { <-hashSlots }()
	if status := other.SignIn(t, u.Email, GoodPassword); status != http.StatusOK {
		t.Fatalf("signing in: %d", status)
	}
	return other
}

// SignIn sends a sign-in and returns its status. After a 200 the user is signed in.
func (u *User) SignIn(t *testing.T, email, password string) (status int) {
	t.Helper()
	a := u.Do(t, http.MethodPost, "/auth/login", map[string]string{"email": email, "password": password})
	if a.Status == http.StatusOK {
		u.Email = email
		u.useSession(t, a, http.StatusOK)
	}
	return a.Status
}

func (u *User) useSession(t *testing.T, a *Response, status int) {
	t.Helper()
	var session protocol.SessionInfo
	a.Want(t, status, &session)
	u.csrf = session.CSRFToken
	u.API.UseToken(u.csrf)
}

// Response is a complete HTTP response.
type Response struct{ *client.Response }

// request describes a request to the API. headers are alternating names and values.
func request(method, path string, body any, headers []string) client.Request {
	r := client.Request{Method: method, Path: path, Body: body, Header: http.Header{}}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Open sends a request and returns the response with an open body. headers are alternating names and values.
func (u *User) Open(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	return u.API.Open(ctx, request(method, path, body, headers))
}

// Request sends a request once and reads the whole response.
func (u *User) Request(ctx context.Context, method, path string, body any, headers ...string) (*Response, error) {
	response, err := u.API.Send(ctx, request(method, path, body, headers))
	if err != nil {
		return nil, err
	}
	if response.Status == http.StatusConflict {
		u.Witness.SawConflict(response.Request, response.Body)
	}
	return &Response{response}, nil
}

// Do is RequestAgain for the goroutine of the test.
func (u *User) Do(t *testing.T, method, path string, body any, headers ...string) *Response {
	t.Helper()
	a, err := u.RequestAgain(Within(t, HangGuard), method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// RequestAgain is Request, but repeats the request after an unplanned refusal. The ledger fails the test for each refusal.
// The test continues, so that it can find other defects.
func (u *User) RequestAgain(ctx context.Context, method, path string, body any, headers ...string) (a *Response, err error) {
	_ = clocktest.Poll(ctx, PollEvery, func() bool { // if ctx ends, the last refusal is returned
		began := time.Now()
		a, err = u.Request(ctx, method, path, body, headers...)
		return err != nil || !u.unplanned(began, a)
	})
	return a, err
}

// unplanned reports whether a response is a refusal that the ledger has counted as a finding and whose request had no
// effect.
func (u *User) unplanned(began time.Time, a *Response) bool {
	return a != nil && a.Status == http.StatusServiceUnavailable && !bytes.Contains(a.Body, []byte(protocol.OutcomeUnknown)) && !u.Ledger.Planned(began)
}

// Get reads a resource, which must exist.
func (u *User) Get(t *testing.T, path string, into any) {
	t.Helper()
	u.Do(t, http.MethodGet, path, nil).Want(t, http.StatusOK, into)
}

// Want fails the test unless the response has the status. It decodes the body into into, which may be nil.
func (a *Response) Want(t *testing.T, status int, into any) *Response {
	t.Helper()
	if err := a.Decode(status, into); err != nil {
		t.Fatal(err)
	}
	return a
}

// Decode is Want for goroutines other than the test's.
func (a *Response) Decode(status int, into any) error {
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

// WantProblem fails the test unless the response is the given problem.
func (a *Response) WantProblem(t *testing.T, status int, code protocol.Code) *client.Problem {
	t.Helper()
	a.Want(t, status, nil)
	p := a.Problem()
	if p == nil || p.Code != code || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") {
		t.Fatalf("%s: %s as %s, want %s", a.Request, a.Body, a.Header.Get("Content-Type"), code)
	}
	return p
}

// ChatBody is the body of POST /chat.
type ChatBody map[string]any

// NewChatBody returns the body that starts a turn with a text.
func NewChatBody(text string) ChatBody {
	return ChatBody{"input": []map[string]string{{"type": "text", "text": Canary + " " + text}}}
}

// In sets the conversation.
func (b ChatBody) In(conversation string) ChatBody { return b.With("conversation_id", conversation) }

// With sets a member of the body.
func (b ChatBody) With(name string, value any) ChatBody {
	b[name] = value
	return b
}

// Chat starts a turn, or fails the test.
func (u *User) Chat(t *testing.T, body ChatBody, headers ...string) *Stream {
	t.Helper()
	s, refused, err := u.ChatAgain(Within(t, HangGuard), body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	if refused != nil {
		t.Fatalf("POST /chat: %d %s", refused.Status, refused.Body)
	}
	t.Cleanup(s.Close)
	return s
}

// ChatAgain is TryChat, but repeats the request after an unplanned refusal, as RequestAgain does.
func (u *User) ChatAgain(ctx context.Context, body ChatBody, headers ...string) (*Stream, *Response, error) {
	return u.openAgain(ctx, func() (*Stream, *Response, error) { return u.TryChat(ctx, body, headers...) })
}

func (u *User) openAgain(ctx context.Context, open func() (*Stream, *Response, error)) (s *Stream, refused *Response, err error) {
	_ = clocktest.Poll(ctx, PollEvery, func() bool { // if ctx ends, the last refusal is returned
		began := time.Now()
		s, refused, err = open()
		return err != nil || !u.unplanned(began, refused)
	})
	return s, refused, err
}

// TryChat starts a turn. It returns the stream, or the response if that is not a stream.
func (u *User) TryChat(ctx context.Context, body ChatBody, headers ...string) (*Stream, *Response, error) {
	return u.OpenStream(ctx, http.MethodPost, "/chat", body, 0, headers...)
}

// Messages reads the active branch, oldest first.
func (u *User) Messages(t *testing.T, conversation string) []protocol.Message {
	t.Helper()
	var page protocol.List[protocol.Message]
	u.Get(t, "/conversations/"+conversation+"/messages?limit=100", &page)
	return page.Data
}

// Page reads everything that a client needs to show a conversation.
func (u *User) Page(t *testing.T, conversation string) protocol.ConversationPage {
	t.Helper()
	var page protocol.ConversationPage
	u.Get(t, "/conversations/"+conversation, &page)
	return page
}

// NewConversation creates a conversation with a title, so that the service does not generate one.
func (u *User) NewConversation(t *testing.T) string {
	t.Helper()
	var made protocol.Conversation
	u.Do(t, http.MethodPost, "/conversations", map[string]string{"title": "About " + Canary}).Want(t, http.StatusCreated, &made)
	return made.ConversationID.String()
}

// SteeringBody returns the body of POST /chat/steering for an input.
func SteeringBody(turn, clientID, text, delivery string) map[string]any {
	return map[string]any{
		"type": "input", "turn_id": turn, "client_steering_id": clientID, "delivery": delivery,
		"input": []map[string]string{{"type": "text", "text": Canary + " " + text}},
	}
}

// ApplyBody returns the body of POST /chat/steering for applying a pending input at once.
func ApplyBody(turn, input string) map[string]any {
	return map[string]any{"type": "apply_now", "turn_id": turn, "steering_id": input}
}

// CancelBody returns the body of POST /chat/steering for a cancel.
func CancelBody(turn string) map[string]any { return map[string]any{"type": "cancel", "turn_id": turn} }

// Receipt is the outcome of a command.
type Receipt struct {
	Sent     bool
	Status   int // 202 or 409
	Sequence int64
}

// Of returns the outcome as that of a command: an input, or a cancel if it is "".
func (r Receipt) Of(input string) verify.Command {
	c := verify.Command{Input: input, Outcome: verify.Closed, Sequence: r.Sequence}
	if r.Status == http.StatusAccepted {
		c.Outcome = verify.Acknowledged
	}
	return c
}

// SendUntilDecided sends a command until it is decided: 202, or 409 steering_closed. The ledger counts refusals outside
// of planned faults.
func SendUntilDecided(ctx context.Context, u *User, body map[string]any) (Receipt, error) {
	var a *Response
	var err error
	waited := clocktest.Poll(ctx, PollEvery, func() bool {
		a, err = u.Request(ctx, http.MethodPost, "/chat/steering", body)
		return err == nil && a.Status != http.StatusServiceUnavailable
	})
	if waited != nil {
		return Receipt{}, errors.Join(waited, err)
	}
	return ReadReceipt(a)
}

// ReadReceipt reads the response to a command: accepted or steering_closed.
func ReadReceipt(a *Response) (Receipt, error) {
	r := Receipt{Sent: true, Status: a.Status}
	if a.Status == http.StatusAccepted {
		var accepted protocol.SteeringReceipt
		err := a.Decode(a.Status, &accepted)
		r.Sequence = accepted.Sequence
		return r, err
	}
	if p := a.Problem(); p == nil || p.Status != http.StatusConflict || p.Code != protocol.CodeSteeringClosed {
		return r, fmt.Errorf("%s: %d, want 202 or 409 steering_closed: %s", a.Request, a.Status, a.Body)
	}
	return r, nil
}

// Live starts a turn and waits for the first text of its answer.
func (u *User) Live(t *testing.T, conversation, text string) *Stream {
	t.Helper()
	s := u.Chat(t, NewChatBody(text).In(conversation))
	s.AwaitKind(t, "answer.delta")
	return s
}

// Cancel cancels a turn and reads the rest of its stream.
func (u *User) Cancel(t *testing.T, s *Stream) {
	t.Helper()
	u.Do(t, http.MethodPost, "/chat/steering", CancelBody(s.Turn)).Want(t, http.StatusAccepted, nil)
	if _, end := s.ReadToEnd(t); end.Status != protocol.TurnCancelled {
		t.Errorf("a cancelled turn ended %s", end.Status)
	}
}

// FollowUps reads the follow-ups of a conversation, in order.
func (u *User) FollowUps(t *testing.T, conversation string) []protocol.FollowUp {
	t.Helper()
	var list protocol.List[protocol.FollowUp]
	u.Get(t, "/conversations/"+conversation+"/follow-ups", &list)
	return list.Data
}
