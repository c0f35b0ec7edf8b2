package promises

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"turnstone/cmd/loadtest/goals"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

// One event that is too late misses a goal, except that of takeovers, whose 99th percentile counts.
func TestEveryEventKeepsItsPromise(t *testing.T) {
	r := newRun(nil, false)
	for _, id := range promises {
		for i := range 2 * leastEvents {
			took := 100 * time.Millisecond
			if i == 7 && (id == goals.RedisLimit || id == goals.TakeoverLimit) {
				took = 6 * time.Second
			}
			r.add(id, "kill -9", took)
		}
	}
	var report goals.Report
	if err := r.publish(&report); err != nil {
		t.Fatal(err)
	}
	if missed := report.Unmet(); len(missed) != 1 || !strings.Contains(missed[0], goals.RedisLimit+": 6,000 ms, must be ≤ 300 ms") {
		t.Errorf("missed: %q", missed)
	}
}

func TestTooFewEventsAreNoMeasurement(t *testing.T) {
	r := newRun(nil, false)
	for _, id := range promises {
		for range leastEvents {
			r.add(id, "SIGTERM", time.Millisecond)
		}
	}
	r.events[goals.DrainLimit].all = r.events[goals.DrainLimit].all[1:]
	if err := r.publish(new(goals.Report)); err == nil || err.Error() != "limits drain: 49 events" {
		t.Errorf("the error is %v", err)
	}
}

// A takeover is reported once, with the time from the last text before it to the first text after it.
func TestAPauseIsTheTimeWithoutText(t *testing.T) {
	turn := protocol.NewTurnID().String()
	var body strings.Builder
	body.WriteString("retry: 2000\n\n")
	for i, kind := range []string{"turn.started", "answer.delta", "answer.delta", "turn.recovering", "turn.state", "answer.delta", "answer.delta", "turn.finished"} {
		fmt.Fprintf(&body, "id: %d\nevent: %s\ndata: {\"protocol_version\":1,\"turn_id\":%q,\"sequence\":%d,\"type\":%q}\n\n", i+1, kind, turn, i+1, kind)
	}
	response := &http.Response{Header: http.Header{"X-Turn-Id": {turn}}, Body: io.NopCloser(strings.NewReader(body.String()))}
	followed := &followedTurn{turn: turn, first: make(chan struct{}), paused: make(chan time.Duration, maxTakeovers)}
	recovering := false
	stream := client.NewStream(response, 0, func() {})
	if after, err := followed.read(stream, &recovering); err != nil || after != 8 || !stream.Finished() {
		t.Fatalf("read up to %d: %v", after, err)
	}
	if err := followed.await(t.Context(), followed.first); err != nil {
		t.Error(err)
	}
	if len(followed.paused) != 1 || recovering {
		t.Errorf("%d takeovers, one more begun: %t", len(followed.paused), recovering)
	}
}
