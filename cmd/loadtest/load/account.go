package load

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"turnstone/protocol/client"
)

const (
	// CallTimeout limits one request that is not a stream.
	CallTimeout = 30 * time.Second
	// signUpsAtOnce limits concurrent sign-ups, because each computes a password hash and the host computer may be small.
	signUpsAtOnce = 2
)

// Transport has the connections of all calls that are not streams.
var Transport = &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: client.UnusedTimeout}

// Account is a signed-in account. Its streams have connections of their own (stream.go), so their requests are rendered
// here; everything else goes through API.
type Account struct {
	ID   string
	csrf string
	jar  http.CookieJar

	// Set by MoveTo.
	API          *client.Client
	host, cookie string

	mu   sync.Mutex
	sent int // guarded by mu: the number of idempotency keys used
}

// SignUp creates n accounts. Hashing passwords is deliberately slow, so callers sign up before they measure.
func SignUp(ctx context.Context, base string, n int) ([]*Account, error) {
	accounts := make([]*Account, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(signUpsAtOnce)
	for i := range accounts {
		group.Go(func() (err error) {
			accounts[i], err = newAccount(ctx, base)
			return err
		})
	}
	return accounts, group.Wait()
}

func newAccount(ctx context.Context, base string) (*Account, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	a := &Account{jar: jar}
	if err := a.MoveTo(base); err != nil {
		return nil, err
	}
	session, err := a.API.Register(ctx, uuid.NewString()+"@example.org", "a long enough pass phrase", "Load")
	if err != nil {
		return nil, fmt.Errorf("signing up: %w", err)
	}
	a.ID, a.csrf = session.Account.AccountID.String(), session.CSRFToken
	return a, a.MoveTo(base)
}

// MoveTo uses the account's session at another address of the service.
func (a *Account) MoveTo(base string) error {
	address, err := url.Parse(base)
	if err != nil {
		return err
	}
	if a.API, err = a.At(base, CallTimeout); err != nil {
		return err
	}
	var cookies []string
	for _, cookie := range a.jar.Cookies(address) {
		cookies = append(cookies, cookie.Name+"="+cookie.Value)
	}
	a.host, a.cookie = address.Host, strings.Join(cookies, "; ")
	return nil
}

// At returns a client with the account's session at an address of the service, for example that of another node. timeout
// limits each response, streams included; 0: no limit.
func (a *Account) At(base string, timeout time.Duration) (*client.Client, error) {
	api, err := client.New(base, client.Options{HTTP: &http.Client{Jar: a.jar, Transport: Transport, Timeout: timeout}})
	if err == nil {
		api.UseToken(a.csrf)
	}
	return api, err
}

// TurnsPerAccount is the number of live turns per account. All may start at once, since an account may have 32 requests
// in flight.
const TurnsPerAccount = 20

// AccountsFor returns the number of accounts that a number of live turns needs, so that none exceeds the limits of an
// account.
func AccountsFor(turns int) int { return (turns + TurnsPerAccount - 1) / TurnsPerAccount }

// ChatRequest renders a POST /chat of an account.
func (a *Account) ChatRequest(text, conversation string) []byte {
	body := `{"input":[{"type":"text","text":` + strconv.Quote(text) + `}]`
	if conversation != "" {
		body += `,"conversation_id":"` + conversation + `"`
	}
	return a.chat(body + "}")
}

// chat renders a POST /chat with a new idempotency key.
func (a *Account) chat(body string) []byte {
	a.mu.Lock()
	a.sent++
	key := a.sent
	a.mu.Unlock()
	return fmt.Appendf(nil, "POST /chat HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nX-CSRF-Token: %s\r\nIdempotency-Key: load-%d\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", a.host, a.cookie, a.csrf, key, len(body), body)
}

// EventsRequest renders a request for the events of a turn after a sequence number.
func (a *Account) EventsRequest(turn string, after int64) []byte {
	return fmt.Appendf(nil, "GET /chat/turns/%s/events HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nLast-Event-ID: %d\r\n\r\n", turn, a.host, a.cookie, after)
}

// CompletionRequest renders a request to the model itself, or to a proxy in front of it.
func CompletionRequest(host, text string) []byte {
	body := `{"model":"load","stream":true,"max_tokens":8192,"messages":[{"role":"user","content":` + strconv.Quote(text) + `}]}`
	return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		host, len(body), body)
}

// QueueRequest renders a POST /chat that is queued as a follow-up if the conversation has a live turn.
func (a *Account) QueueRequest(text, conversation string) []byte {
	return a.chat(fmt.Sprintf(`{"input":[{"type":"text","text":%q}],"conversation_id":%q,"if_busy":"queue"}`, text, conversation))
}
