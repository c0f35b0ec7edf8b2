package sitetest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnstone/protocol"
)

// Attempt is a request that is sent during a fault.
type Attempt struct {
	Method, Path string
	Body         any
}

// WantRefused sends the attempts and checks that each one gets a 503 problem with a Retry-After.
func (u *User) WantRefused(t *testing.T, attempts []Attempt) {
	t.Helper()
	slowest := time.Duration(0)
	for _, a := range attempts {
		got := u.Do(t, a.Method, a.Path, a.Body)
		got.WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
		if after, err := strconv.Atoi(got.Header.Get("Retry-After")); err != nil || after < 1 {
			t.Errorf("%s: Retry-After %q", got.Request, got.Header.Get("Retry-After"))
		}
		slowest = max(slowest, got.Took)
	}
	t.Logf("%d refusals, the slowest after %s", len(attempts), slowest.Round(time.Millisecond))
}

// FollowInBackground follows a turn to its end in another goroutine.
func (u *User) FollowInBackground(t *testing.T, s *Stream) (ended <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	ctx := Within(t, HangGuard)
	go func() { done <- u.Watch(ctx, s.Turn, s, nil) }()
	return done
}

// AwaitEnd waits for the result of FollowInBackground.
func AwaitEnd(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(HangGuard):
		t.Fatal("the turn did not end")
	}
}

// WantCompleted checks a turn that completed in spite of a fault, as CheckTurn does, and that its message has the text.
func (u *User) WantCompleted(t *testing.T, turn, conversation, text string) []Event {
	t.Helper()
	read := u.CheckTurn(t, turn)
	if got := strings.Join(Texts(read.Parts), ""); read.End.Status != protocol.TurnCompleted || got != text || read.ConversationID.String() != conversation {
		t.Errorf("the turn of %s ended %s (%+v) with the text %q", read.ConversationID, read.End.Status, read.End.Error, got)
	}
	return eventsOf(read.Events)
}

// Readiness reads /ready on the internal listener.
func Readiness(t *testing.T, internal string) (status int, checks map[string]string) {
	t.Helper()
	status, body, err := Fetch(t, http.MethodGet, "http://"+internal+"/ready", "")
	var verdict struct{ Checks map[string]string }
	if err != nil || json.Unmarshal([]byte(body), &verdict) != nil {
		t.Fatalf("/ready: %v %s", err, body)
	}
	return status, verdict.Checks
}

// AwaitDown waits until /ready reports a check as down. It returns the time since the failure.
func AwaitDown(t *testing.T, internal, check string, failed time.Time) (took time.Duration) {
	t.Helper()
	Eventually(t, "/ready reports that "+check+" is down", func() bool {
		status, checks := Readiness(t, internal)
		return status == http.StatusServiceUnavailable && checks[check] == "down"
	})
	return time.Since(failed)
}

// AwaitReady waits until /ready recovers. It returns the time since the repair.
func AwaitReady(t *testing.T, internal string, repaired time.Time) (took time.Duration) {
	t.Helper()
	Eventually(t, "/ready recovers", func() bool { status, _ := Readiness(t, internal); return status == http.StatusOK })
	return time.Since(repaired)
}

// Fetch sends one request without a session. token is the bearer token of the internal listener; "": none.
func Fetch(t *testing.T, method, address, token string) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}
