package sitetest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// findings is a test that keeps what a ledger reports.
type findings []string

func (*findings) Helper()                     {}
func (*findings) Name() string                { return "TestOfAClient" }
func (f *findings) Errorf(s string, a ...any) { *f = append(*f, fmt.Sprintf(s, a...)) }
func (f *findings) Logf(s string, a ...any)   { *f = append(*f, fmt.Sprintf(s, a...)) }

func TestARefusalThatWasNotPlannedIsAFinding(t *testing.T) {
	var asked atomic.Int64
	status := http.StatusServiceUnavailable
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(service.Close)
	for _, c := range []struct {
		name          string
		status        int
		planned       bool
		answer, asked int
		mustName      string
	}{
		{name: "no fault was planned: it is sent again and counted", status: 503, answer: 200, asked: 2, mustName: "GET /here was answered 503"},
		{name: "a planned fault", status: 503, planned: true, answer: 503, asked: 1},
		{name: "no plan allows a 500", status: 500, planned: true, answer: 500, asked: 1, mustName: "GET /here was answered 500"},
		{name: "a client's mistake is none of the service", status: 404, answer: 404, asked: 1},
	} {
		asked.Store(0)
		status = c.status
		u := &User{Base: service.URL, Client: NewBrowser(service.URL), Ledger: &Ledger{}}
		over := func() {}
		if c.planned {
			over = u.Ledger.Plan()
		}
		got := u.Do(t, http.MethodGet, "/here", nil)
		over()
		u.Client.CloseIdleConnections()
		var found findings
		u.Ledger.report(&found)
		if got.Status != c.answer || int(asked.Load()) != c.asked {
			t.Errorf("%s: answered %d after %d requests", c.name, got.Status, asked.Load())
		}
		if all := strings.Join(found, "\n"); (len(found) > 0) != (c.mustName != "") || !strings.Contains(all, c.mustName) {
			t.Errorf("%s: found %q", c.name, all)
		}
	}
}

// A refusal that hides what a race would find is counted, and the race goes on.
func TestARefusedStartIsAFindingAndIsSentAgain(t *testing.T) {
	var asked atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	t.Cleanup(service.Close)
	u := &User{Base: service.URL, Client: NewBrowser(service.URL), Ledger: &Ledger{}}
	s, refused, err := u.ChatAgain(t.Context(), Saying("hello"))
	if err != nil || refused != nil || asked.Load() != 2 {
		t.Fatalf("after %d requests: %+v, %v", asked.Load(), refused, err)
	}
	s.Close()
	u.Client.CloseIdleConnections()
	var found findings
	u.Ledger.report(&found)
	if len(found) != 1 || !strings.Contains(found[0], "POST /chat was answered 503") {
		t.Errorf("found %q", found)
	}
}

func TestAConnectionThatBreaksIsAFinding(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(service.Close)
	u := &User{Base: service.URL, Client: NewBrowser(service.URL), Ledger: &Ledger{}}
	if _, err := u.Ask(t.Context(), http.MethodPut, "/here", "text"); err == nil {
		t.Fatal("there was an answer")
	}
	over := u.Ledger.Plan()
	_, _ = u.Ask(t.Context(), http.MethodPut, "/there", "text") // its error is planned
	over()
	var found findings
	u.Ledger.report(&found)
	if len(found) != 1 || !strings.Contains(found[0], "PUT /here broke") {
		t.Errorf("found %q", found)
	}
}
