package http

import (
	"bufio"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnstone/http/route"
	"turnstone/persistence/limits"
	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

// drawn returns the buckets that requests drew from since the last call.
func (w *world) drawn() []string {
	var buckets []string
	for _, drawn := range w.limiter.Drawn() {
		name, _, _ := strings.Cut(drawn, " ")
		buckets = append(buckets, name)
	}
	return buckets
}

// localBucket gives one bucket a real limit that is counted in this process. The test limiter decides on the other
// buckets.
func (w *world) localBucket(name route.Bucket, limit limits.Limit) {
	w.t.Helper()
	limiter, err := limits.NewLimiter(limits.LimiterConfig{
		URL: "unix:///nowhere", Local: map[string]limits.Limit{string(name): limit},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = limiter.Close() })
	w.limiter.real, w.limiter.buckets = limiter, []string{string(name)}
}

// follow opens a stream over a real connection, reads the first event, and returns the rest of the body.
func (c *client) follow(path string) *bufio.Reader {
	c.t.Helper()
	server := httptest.NewServer(c)
	c.t.Cleanup(server.Close)
	request, err := stdhttp.NewRequestWithContext(c.t.Context(), stdhttp.MethodGet, server.URL+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	request.Host = c.BaseURL.Host
	request.AddCookie(&stdhttp.Cookie{Name: c.cookieName(), Value: c.token()})
	response, err := server.Client().Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = response.Body.Close() })
	body := bufio.NewReader(response.Body)
	for line := ""; !strings.HasPrefix(line, "data: "); {
		if line, err = body.ReadString('\n'); err != nil || response.StatusCode != 200 {
			c.t.Fatalf("GET %s: %d %v", path, response.StatusCode, err)
		}
	}
	return body
}

// A request that gets no slot uses up nothing of the limit of replays, and does not report it.
func TestARefusalOfAnotherLimitDoesNotReportThatOfReplays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *testConfig) {
		liveOn(t, c)
		c.MaxStreams = 1
	})
	c := w.client().register("a@example.com")
	turn := c.expect(200, "POST", "/chat", asking("x", nil)).header.Get("X-Turn-Id")
	c.follow("/events")
	w.drawn()
	for _, query := range []string{"", "?mode=snapshot"} {
		refused := c.expect(429, "GET", "/chat/turns/"+turn+"/events"+query, nil)
		if refused.Code != protocol.CodeTooManyStreams || refused.header.Get("RateLimit") != "" || refused.header.Get("RateLimit-Policy") != "" {
			t.Errorf("%s %s %v", query, refused.Code, refused.header)
		}
	}
	if drawn := w.drawn(); len(drawn) != 0 {
		t.Errorf("the refusals drew from %v", drawn)
	}
}

// A response without a stream needs no slot. One about a turn that has ended draws from the limit of replays.
func TestAResponseWithoutEventsNeedsNoSlot(t *testing.T) {
	t.Parallel()
	s := startStreamingTurn(t, nil)
	for s.streams.Acquire(s.account.AccountID) == nil { // all slots of the account
	}
	events := "/chat/turns/" + s.turn.String() + "/events?after=99999999"
	s.drawn()
	if ahead := s.expect(409, "GET", events, nil); ahead.Code != protocol.CodeSequenceAhead {
		t.Errorf("a sequence ahead of the turn: %s", ahead.body)
	}
	s.stop()
	s.expect(204, "GET", events, nil)
	s.expect(204, "GET", events+"&mode=snapshot", nil)
	if drawn := s.drawn(); !slices.Equal(drawn, []string{"replays", "replays"}) {
		t.Errorf("the responses drew from %v", drawn)
	}
}

func TestResumingALiveTurnIsFreeAndReplayingAFinishedOneHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	const burst = 4
	s := startStreamingTurn(t, nil)
	s.localBucket(route.BucketReplays, limits.Limit{Rate: 1, Period: time.Hour, Burst: burst})
	s.limiter.BreakDown()
	events := "/chat/turns/" + s.turn.String() + "/events"
	s.drawn()
	var live []*bufio.Reader
	for _, query := range []string{"", "?after=1", "?mode=snapshot"} {
		live = append(live, s.follow(events+query))
	}
	if ahead := s.expect(409, "GET", events+"?after=99999999", nil); ahead.Code != protocol.CodeSequenceAhead {
		t.Errorf("a sequence ahead of the turn: %s", ahead.body)
	}
	s.stop()
	for _, body := range live {
		if rest, err := io.ReadAll(body); err != nil || !strings.Contains(string(rest), "turn.finished") {
			t.Errorf("a stream ended with %q, %v", rest, err)
		}
	}
	if drawn := s.drawn(); len(drawn) != 0 {
		t.Errorf("resuming a live turn drew from %v", drawn)
	}

	for n := range burst {
		query := []string{"", "?mode=snapshot", "?after=1", "?mode=snapshot&after=1"}[n]
		resp := s.expect(200, "GET", events+query, nil)
		if want := `"replays";r=` + strconv.Itoa(burst-n-1) + `;t=`; !strings.HasPrefix(resp.header.Get("RateLimit"), want) {
			t.Errorf("%s: RateLimit %s, want %s…", query, resp.header.Get("RateLimit"), want)
		}
	}
	over := s.expect(429, "GET", events, nil)
	wait, err := strconv.Atoi(over.header.Get("Retry-After"))
	if over.Code != protocol.CodeRateLimited || err != nil || wait < 1 || over.header.Get("RateLimit-Policy") != `"replays";q=1;w=3600` {
		t.Errorf("over the limit: %s %v", over.body, over.header)
	}
	s.limiter.Allow()
	s.expect(200, "GET", "/conversations/"+s.conversation, nil) // other reads are not limited
}

func TestARepeatOfAKeyedRequestCostsNoQuota(t *testing.T) {
	t.Parallel()
	s := startStreamingTurn(t, nil)
	start := route.Object{"input": []route.Object{{"type": "text", "text": "Hello"}}}
	create := route.Object{"title": "Once"}
	s.expect(200, "POST", "/chat", start, "Idempotency-Key", "start")
	s.expect(201, "POST", "/conversations", create, "Idempotency-Key", "create")
	s.drawn()
	s.limiter.Refuse()
	for _, again := range []*reply{
		s.expect(200, "POST", "/chat", start, "Idempotency-Key", "start"),
		s.expect(201, "POST", "/conversations", create, "Idempotency-Key", "create"),
	} {
		if again.header.Get(replayedField) != "true" || again.header.Get("RateLimit") != "" {
			t.Errorf("headers of the repeat: %v", again.header)
		}
	}
	if drawn := s.drawn(); len(drawn) != 0 {
		t.Errorf("repeats drew from %v", drawn)
	}
	s.expect(429, "POST", "/conversations", create, "Idempotency-Key", "other")
	s.stop()
}

func TestADeviceCookieIsNoBucketOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var devices []*client
	for range 3 {
		devices = append(devices, signUp(t, w).client)
	}
	const burst = 2
	w.localBucket("writes", limits.Limit{Rate: 1, Period: time.Hour, Burst: burst})
	for n, device := range devices {
		browser := w.client()
		browser.cookies["__Host-device"] = device.cookies["__Host-device"]
		want := 200
		if n >= burst {
			want = 429
		}
		if browser.cookies["__Host-device"] == "" {
			t.Fatalf("no device cookie: %v", device.cookies)
		}
		browser.expect(want, "POST", "/auth/passkeys/sign-in/start", nil)
	}
	w.client().expect(200, "POST", "/auth/passkeys/sign-in/start", nil) // strangers have their own bucket
}

func TestEveryLimitedRouteReportsItsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *testConfig) { liveOn(t, c) })
	c := w.client().register("ada@example.com")
	parameter := regexp.MustCompile(`\{[a-z_]+\}`)
	for _, r := range w.table().Routes {
		if r.Policy.Bucket == "" || r.Policy.Public || r.Policy.Sudo || r.Path == "/auth/logout" {
			continue
		}
		resp := c.do(r.Method, parameter.ReplaceAllString(r.Path, "none"), nil)
		bucket := `"` + string(r.Policy.Bucket) + `"`
		if resp.header.Get("RateLimit-Policy") != bucket+";q=30;w=60" || resp.header.Get("RateLimit") != bucket+";r=59;t=2" {
			t.Errorf("%s %s: %d, %q and %q", r.Method, r.Path, resp.status, resp.header.Get("RateLimit-Policy"), resp.header.Get("RateLimit"))
		}
	}
}

func TestTheLimiterHasABoundedTimeToDecide(t *testing.T) {
	t.Parallel()
	s := startStreamingTurn(t, nil)
	s.limiter.Waits()
	s.expect(201, "POST", "/conversations", route.Object{"title": "One"})
	if waits := s.limiter.Waits(); len(waits) != 1 || waits[0] > timelimit.OfShort(250*time.Millisecond) {
		t.Errorf("the limiter had %v to decide", waits)
	}
}

// Requests that draw from a limit have its headers, also when they are refused for another reason.
func TestRefusalsNameTheirLimits(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	s.localBucket(route.BucketReads, limits.Limit{Rate: 1, Period: time.Hour, Burst: 1})
	u.do(200, "GET", "/conversations", nil)
	refused := u.do(429, "GET", "/conversations", nil)
	s.localBucket(route.Bucket("signin"), limits.Limit{Rate: 1, Period: time.Hour, Burst: 5})
	malformed := u.do(400, "POST", "/auth/login", rawBody("{"))
	for _, one := range []*decodedReply{&refused, &malformed} {
		if one.header.Get("RateLimit") == "" || one.header.Get("RateLimit-Policy") == "" {
			t.Errorf("%d %v", one.status, one.header)
		}
	}
}
