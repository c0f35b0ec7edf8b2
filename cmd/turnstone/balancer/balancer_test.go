package balancer

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"turnstone/protocol"
)

// browser sends the requests of the tests.
var browser = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}

// backend is a node whose internal listener is the same server.
type backend struct {
	*httptest.Server
	ready atomic.Bool
	seen  atomic.Int64
}

func newBackend(t *testing.T, name string) *backend {
	t.Helper()
	b := new(backend)
	b.ready.Store(true)
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ready":
			if !b.ready.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		case "/stream":
			fmt.Fprintln(w, "first")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/abort":
			panic(http.ErrAbortHandler)
		default:
			b.seen.Add(1)
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s %s", name, r.Host, r.Header.Get("X-Forwarded-For"), body)
		}
	}))
	t.Cleanup(b.Close)
	return b
}

func balance(t *testing.T, nodes ...*backend) (*Balancer, *httptest.Server) {
	t.Helper()
	var list []Node
	for _, n := range nodes {
		address := strings.TrimPrefix(n.URL, "http://")
		list = append(list, Node{Public: address, Internal: address})
	}
	b := New(list, zaptest.NewLogger(t))
	b.checkAll(t.Context())
	front := httptest.NewServer(b)
	t.Cleanup(front.Close)
	return b, front
}

func post(t *testing.T, address, body string) (int, string) {
	t.Helper()
	response, err := browser.Post(address, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestRequestsGoToTheNodesThatAreReady(t *testing.T) {
	one, two := newBackend(t, "one"), newBackend(t, "two")
	b, front := balance(t, one, two)
	for range 4 {
		if status, text := post(t, front.URL, "hello"); status != http.StatusOK || !strings.HasSuffix(text, strings.TrimPrefix(front.URL, "http://")+" 127.0.0.1 hello") {
			t.Errorf("%d %q", status, text)
		}
	}
	if one.seen.Load() != 2 || two.seen.Load() != 2 {
		t.Errorf("the nodes got %d and %d requests, want 2 each", one.seen.Load(), two.seen.Load())
	}
	one.ready.Store(false)
	b.checkAll(t.Context())
	for range 2 {
		post(t, front.URL, "")
	}
	if one.seen.Load() != 2 || b.Ready() != 1 {
		t.Errorf("a node that is not ready got a request")
	}
	two.Close() // without a check: the balancer finds out by connecting
	one.ready.Store(true)
	b.checkAll(t.Context())
	b.nodes[1].ready.Store(true)
	for range 3 {
		if status, text := post(t, front.URL, "again"); status != http.StatusOK || !strings.HasSuffix(text, " again") {
			t.Errorf("a request while a node is gone: %d %q", status, text)
		}
	}
	one.Close()
	b.checkAll(t.Context())
	if status, text := post(t, front.URL, ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "No node is ready.") {
		t.Errorf("without a node: %d %q", status, text)
	}
}

func TestARequestThatANodeMayHaveReceivedIsNotSentAgain(t *testing.T) {
	one := newBackend(t, "one")
	_, front := balance(t, one)
	if status, text := post(t, front.URL+"/abort", "effect"); status != http.StatusServiceUnavailable || !strings.Contains(text, protocol.OutcomeUnknown) {
		t.Errorf("%d %q", status, text)
	}
}

func TestEventsAreNotBuffered(t *testing.T) {
	_, front := balance(t, newBackend(t, "one"))
	response, err := browser.Get(front.URL + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(response.Body).ReadString('\n') // the node sends no more than this line
	if err != nil || line != "first\n" {
		t.Errorf("%q, %v", line, err)
	}
	_ = response.Body.Close()
}
