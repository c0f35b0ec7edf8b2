package http

import (
	"context"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/persistence/accounts"
	"turnstone/persistence/limits"
	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

// slowBody sends one byte of a text at a time, with a pause before each.
type slowBody struct {
	text  *strings.Reader
	pause time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	<-time.After(b.pause) // virtual time: the test runs in a synctest bubble
	return b.text.Read(p[:1])
}

func TestReadingTheBodyDoesNotCountTowardsTheTimeout(t *testing.T) {
	t.Parallel()
	type input struct {
		Body struct {
			Text string `json:"text"`
		}
	}
	left := make(chan time.Duration, 1)
	s := frameServer(t, Config{}, route.Call("POST", "/echo", "echo", "Returns the text.", route.Policy{Public: true},
		func(ctx context.Context, in *input) (*resource.Body[string], error) {
			deadline, _ := ctx.Deadline()
			left <- time.Until(deadline)
			return resource.OK(in.Body.Text), ctx.Err()
		}))
	synctest.Test(t, func(t *testing.T) {
		text := `{"text":"` + strings.Repeat("x", 9) + `"}`
		pause := timelimit.Of(time.Second) // of each byte: more than the timeout for all of them
		request := httptest.NewRequestWithContext(t.Context(), stdhttp.MethodPost, "http://localhost/echo",
			io.NopCloser(&slowBody{strings.NewReader(text), pause}))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, request)
		if recorder.Code != stdhttp.StatusOK {
			t.Fatalf("%d %s", recorder.Code, recorder.Body)
		}
		timeout := timelimit.Of(10 * time.Second) // of a public route
		if remaining := <-left; remaining != timeout {
			t.Errorf("after the body %s were left, want %s", remaining, timeout)
		}
	})
}

// never is the duration of what does not respond.
const never = time.Hour

// respondAfter waits for d on the fake clock, and returns the error of ctx if that ends before.
func respondAfter(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// slowLimiter allows every request after some time.
type slowLimiter time.Duration

func (l slowLimiter) Take(ctx context.Context, _, _ string) (limits.Decision, error) {
	return limits.Decision{Allowed: true}, respondAfter(ctx, time.Duration(l))
}

// slowSessions finds a valid session after some time.
type slowSessions struct {
	Sessions
	lookup time.Duration
}

func (s slowSessions) FindSession(ctx context.Context, hashes [][]byte) (*accounts.Session, error) {
	now := time.Now()
	return &accounts.Session{
		Account: protocol.Account{AccountID: protocol.NewAccountID()}, TokenHash: hashes[0], SessionID: protocol.NewSessionID(),
		LastUsedAt: now, RotatedAt: now, ExpiresAt: now.Add(2 * never),
	}, respondAfter(ctx, s.lookup)
}

// The promised limits of a refusal. The clock is a fake one, so they are checked exactly.
var (
	limiterRefusal = timelimit.OfShort(300 * time.Millisecond)
	requestRefusal = timelimit.Of(5 * time.Second)
)

func TestARequestIsRefusedInTimeWhateverDoesNotRespond(t *testing.T) {
	for what, c := range map[string]struct {
		path                     string
		lookup, limiter, handler time.Duration
		limit                    time.Duration
	}{
		"the limiter":                                {"/call", 0, never, 0, limiterRefusal},
		"the limiter, after a slow look-up":          {"/call", limiterRefusal * 2 / 3, never, 0, limiterRefusal},
		"the store of the sessions":                  {"/call", never, 0, 0, requestRefusal},
		"the store of a call":                        {"/call", 0, 0, never, requestRefusal},
		"the store, after a slow look-up":            {"/call", requestRefusal - time.Millisecond, 0, never, requestRefusal},
		"the store of the sessions, before a stream": {"/stream", never, 0, 0, requestRefusal},
		"the store of a stream":                      {"/stream", 0, 0, never, requestRefusal},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policy := route.Writes
				s := frameServer(t, Config{Sessions: slowSessions{lookup: c.lookup}, Limiter: slowLimiter(c.limiter)},
					route.Call("GET", "/call", "call", "Calls a store.", policy, func(ctx context.Context, _ *resource.Nothing) (*resource.Body[string], error) {
						return resource.OK(""), respondAfter(ctx, c.handler)
					}),
					route.Stream("GET", "/stream", "stream", "Calls a store.", policy, func(_ stdhttp.ResponseWriter, r *stdhttp.Request, _ *resource.Nothing) error {
						ctx, cancel := exchange.UntilFirstByte(r.Context())
						defer cancel()
						return respondAfter(ctx, c.handler)
					}))
				request := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+c.path, nil)
				request.Header.Set("Cookie", "session=s1_token")
				recorder, began := httptest.NewRecorder(), time.Now()
				s.ServeHTTP(recorder, request)
				if took := time.Since(began); recorder.Code != stdhttp.StatusServiceUnavailable || recorder.Header().Get("Retry-After") == "" || took > c.limit {
					t.Errorf("%d %s after %s, want 503 within %s", recorder.Code, recorder.Body, took, c.limit)
				}
			})
		})
	}
}
