package sitetest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// findings is a reporter that records what a ledger reports.
type findings []string

func (*findings) Helper()                     {}
func (f *findings) Errorf(s string, a ...any) { *f = append(*f, fmt.Sprintf(s, a...)) }

func TestARefusalThatWasNotPlannedIsAFinding(t *testing.T) {
	var requests atomic.Int64
	status := http.StatusServiceUnavailable
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(service.Close)
	for _, c := range []struct {
		name               string
		status             int
		planned            bool
		response, requests int
		mustName           string
	}{
		{name: "no fault was planned: the request is sent again and counted", status: 503, response: 200, requests: 2, mustName: "GET /here returned 503"},
		{name: "a planned fault", status: 503, planned: true, response: 503, requests: 1},
		{name: "a 500 is a finding even in a planned fault", status: 500, planned: true, response: 500, requests: 1, mustName: "GET /here returned 500"},
		{name: "a client's mistake is not a finding", status: 404, response: 404, requests: 1},
	} {
		requests.Store(0)
		status = c.status
		u := newGuest(t, service.URL, &Ledger{})
		over := func() {}
		if c.planned {
			over = u.Ledger.Plan()
		}
		got := u.Do(t, http.MethodGet, "/here", nil)
		over()
		u.HTTP.CloseIdleConnections()
		var found findings
		u.Ledger.report(&found)
		if got.Status != c.response || int(requests.Load()) != c.requests {
			t.Errorf("%s: the response is %d after %d requests", c.name, got.Status, requests.Load())
		}
		if all := strings.Join(found, "\n"); (len(found) > 0) != (c.mustName != "") || !strings.Contains(all, c.mustName) {
			t.Errorf("%s: found %q", c.name, all)
		}
	}
}

// A refused start is counted and sent again, so that the test continues.
func TestARefusedStartIsAFindingAndIsSentAgain(t *testing.T) {
	var requests atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	t.Cleanup(service.Close)
	u := newGuest(t, service.URL, &Ledger{})
	s, refused, err := u.ChatAgain(t.Context(), NewChatBody("hello"))
	if err != nil || refused != nil || requests.Load() != 2 {
		t.Fatalf("after %d requests: %+v, %v", requests.Load(), refused, err)
	}
	s.Close()
	u.HTTP.CloseIdleConnections()
	var found findings
	u.Ledger.report(&found)
	if len(found) != 1 || !strings.Contains(found[0], "POST /chat returned 503") {
		t.Errorf("found %q", found)
	}
}

func TestAConnectionThatBreaksIsAFinding(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(service.Close)
	u := newGuest(t, service.URL, &Ledger{})
	if _, err := u.Request(t.Context(), http.MethodPut, "/here", "text"); err == nil {
		t.Fatal("the request got a response")
	}
	over := u.Ledger.Plan()
	_, _ = u.Request(t.Context(), http.MethodPut, "/there", "text") // its error is planned
	over()
	var found findings
	u.Ledger.report(&found)
	if len(found) != 1 || !strings.Contains(found[0], "PUT /here broke") {
		t.Errorf("found %q", found)
	}
}
