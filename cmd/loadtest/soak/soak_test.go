package soak

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

func TestFaultsComeFromTheirSeedAndRestartsComeEarly(t *testing.T) {
	const over, every = time.Hour, 30 * time.Second
	plan := planFaults(7, over, every)
	if want := int(over/every) - 1; len(plan) != want {
		t.Fatalf("%d faults in %s, want %d", len(plan), over, want)
	}
	kinds, restarts := map[string]int{}, 0
	for i, one := range plan {
		if one.at != time.Duration(i+1)*every || one.length < leastFault || one.length > mostFault {
			t.Errorf("fault %d: at %s for %s", i, one.at, one.length)
		}
		kinds[one.kind.name]++
		if one.kind.restart {
			restarts++
			if one.at.Seconds() >= restartShare*over.Seconds() {
				t.Errorf("a %s at %s: no fault may restart the service after the first part of the run", one.kind.name, one.at)
			}
		}
	}
	if restarts == 0 || len(kinds) != len(faultKinds) {
		t.Errorf("the plan of an hour has the faults %v", kinds)
	}
	same := func(a, b plannedFault) bool { return a == b }
	if !slices.EqualFunc(plan, planFaults(7, over, every), same) || slices.EqualFunc(plan, planFaults(8, over, every), same) {
		t.Error("the same seed must draw the same plan, another seed another plan")
	}
}

func TestARefusalBelongsToAFaultForThreeSeconds(t *testing.T) {
	var w faultWindows
	refusing, silent := &faultKind{refuses: true}, &faultKind{}
	if fault, _ := w.overlaps(0, load.Monotonic()); fault || !w.calm(load.Monotonic()) {
		t.Error("a fault is reported before there was one")
	}
	w.open(refusing)
	begin := load.Monotonic()
	if fault, refuses := w.overlaps(begin, begin); !fault || !refuses || w.calm(begin) {
		t.Error("an active fault is not reported")
	}
	w.close()
	end := w.all[0].end
	settled := end + int64(settleAfter)
	for _, each := range []struct {
		name     string
		from, to int64
		want     bool
	}{
		{"before the fault", 0, w.all[0].begin - 1, false},
		{"into the fault", 0, w.all[0].begin, true},
		{"soon after", end + 1, settled, true},
		{"long after", settled + 1, settled + 2, false},
	} {
		if fault, refuses := w.overlaps(each.from, each.to); fault != each.want || refuses != each.want {
			t.Errorf("%s: %v, %v", each.name, fault, refuses)
		}
	}
	if w.calm(settled-1) || !w.calm(settled) {
		t.Error("calm must be false until settleAfter after the fault, and true from then on")
	}
	w.open(silent)
	now := settled + 10
	if fault, refuses := w.overlaps(now, now); !fault || refuses {
		t.Error("a fault that allows no refusals is not reported, or is reported as one that allows them")
	}
}

func TestASlopeIsThatOfTheLine(t *testing.T) {
	x, y := []float64{0, 1, 2, 3, 4}, []float64{5, 7, 9, 11, 13}
	if got := slope(x, y); math.Abs(got-2) > 1e-9 {
		t.Errorf("slope %v, want 2", got)
	}
	if slope(nil, nil) != 0 || slope([]float64{1, 1}, []float64{1, 9}) != 0 {
		t.Error("the slope must be 0 if there is no line")
	}
}

// eventsOf returns a stream of events in the service's format.
func eventsOf(t *testing.T, payloads ...protocol.Payload) string {
	t.Helper()
	var out strings.Builder
	for i, payload := range payloads {
		data, err := protocol.AppendEvent(nil, protocol.TurnID{1}, int64(i)+1, time.Unix(0, 0), payload)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "id: %d\nevent: %s\ndata: %s\n\n: beat\n\n", i+1, payload.EventType(), data)
	}
	return out.String()
}

// wholeTurn returns the events of a turn that has two parts, and an input that was applied.
func wholeTurn() []protocol.Payload {
	id, input := protocol.PartID{1}, protocol.SteeringID{1}
	delta := func(text string) protocol.Payload { return &protocol.AnswerDelta{PartID: id, Delta: text} }
	return []protocol.Payload{
		&protocol.TurnStarted{ConversationID: protocol.ConversationID{1}, BranchID: protocol.BranchID{1}, UserMessageID: protocol.MessageID{1}, AssistantMessageID: protocol.MessageID{2}},
		&protocol.AnswerStarted{PartID: id},
		delta(" @100x10 0001"),
		&protocol.SteeringAccepted{SteeringID: input, ClientSteeringID: "one"},
		&protocol.SteeringApplied{SteeringID: input, PartID: id},
		&protocol.AnswerStarted{PartID: id, Index: 1},
		delta(" @200x10"),
		delta(" 0001 0002 #3"),
		&protocol.TurnFinished{Status: protocol.TurnCompleted, MessageID: protocol.MessageID{2}, LastSequence: 9},
	}
}

func readEvents(t *testing.T, text string) *readerState {
	t.Helper()
	v := newReaderState()
	err := v.read(client.NewFrameReader(strings.NewReader(text)), func(int64) {}, func() bool { return false })
	if err != io.EOF {
		t.Fatal(err)
	}
	return v
}

func TestAReaderThatResumesSeesTheSameTurn(t *testing.T) {
	text := eventsOf(t, wholeTurn()...)
	whole := readEvents(t, text)
	if whole.End == nil || whole.ConversationID.IsZero() || whole.Inputs["one"].Applied != 1 || whole.missing() > 0 || len(whole.Findings) > 0 {
		t.Fatalf("seen: %+v", whole)
	}
	for cut := range text { // wherever the connection breaks, the stream continues after the last complete event
		v := newReaderState()
		none, never := func(int64) {}, func() bool { return false }
		_ = v.read(client.NewFrameReader(strings.NewReader(text[:cut])), none, never) // ends where it was cut
		rest := text
		if v.Last > 0 {
			_, rest, _ = strings.Cut(text, fmt.Sprintf("id: %d\n", v.Last+1))
			rest = fmt.Sprintf("id: %d\n", v.Last+1) + rest
		}
		if !v.Ended {
			_ = v.read(client.NewFrameReader(strings.NewReader(rest)), none, never) // until its end
		}
		if v.Digest != whole.Digest || v.Last != whole.Last || v.missing() > 0 || len(v.Findings) > 0 {
			t.Fatalf("cut at %d: %s, want %s", cut, v, whole)
		}
	}
}

// Package verify checks the events; the soak checks their tokens too.
func TestAReaderSeesThatATokenIsMissing(t *testing.T) {
	lost := wholeTurn()
	lost[6].(*protocol.AnswerDelta).Delta, lost[7].(*protocol.AnswerDelta).Delta = " @200x10 0001", " 0003 #4"
	if v := readEvents(t, eventsOf(t, lost...)); v.missing() != 1 {
		t.Errorf("a lost token: %+v", v)
	}
	if v := readEvents(t, strings.Replace(eventsOf(t, wholeTurn()...), "id: 4\n", "id: 5\n", 1)); len(v.Findings) == 0 {
		t.Error("a gap is not detected")
	}
}

func TestAllConnectionsAreCutAtOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l := connections{all: map[net.Conn]struct{}{}}
	conn, err := l.dial(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l.cut()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a cut connection can still be read")
	}
	l.drop(conn)
	if len(l.all) != 0 {
		t.Error("a dropped connection is still stored")
	}
}

func TestTheVerdictListsBreachesAndIsWritten(t *testing.T) {
	r := newResult(Command{For: time.Hour, FaultEvery: 30 * time.Second, Seed: 7})
	r.started = time.Now()
	r.Turns, r.Capacity = 60, 100
	r.Before, r.After = resources{Goroutines: 50, Descriptors: 30}, resources{Goroutines: 61, Descriptors: 40, Processors: 1.01}
	for i, size := range []int64{100, 100, 100, 100, 106} {
		r.parts[i].samples = []*sample{{At: r.parts[i].from.Seconds(), Vitals: &resources{RSS: size * mega}}, {}}
	}
	for i, delay := range map[int]time.Duration{2: 100 * time.Millisecond, 4: 130 * time.Millisecond} {
		load.Record(r.parts[i].times[firstTime], delay.Nanoseconds())
		load.Record(r.parts[i].times[appendTime], (100 * time.Millisecond).Nanoseconds())
	}
	r.breach(2, gapKind, "two events")
	r.recordFault("kill -9", time.Second)
	r.finish(new(soak))
	want := []string{"gaps: 2", "memory grew by 6.0 %", "the p99 of first event grew to 1.30 times", "61 goroutines at rest, 50 before", "1.01 processors are used at rest"}
	if !slices.Equal(r.Failed, want) {
		t.Errorf("failed: %q, want %q", r.Failed, want)
	}
	if text := r.markdown(); !strings.Contains(text, "60 % of a measured capacity of 100") || !strings.Contains(text, "**not met**") {
		t.Error(text)
	}
	folder := t.TempDir()
	if err := r.write(folder); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	if len(files) != 1 {
		t.Fatalf("files: %v", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !json.Valid(text) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestARouteIsSlowIfMostOfItsRequestsAre(t *testing.T) {
	metrics := map[string]float64{}
	for route, took := range map[string][2]float64{"/quick": {10, 10}, "/mostly": {10, 5}, "/slow": {10, 4}, "/rare": {4, 0}} {
		labels := `method="GET",route="` + route + `",status="2xx"`
		metrics["turnstone_http_request_seconds_count{"+labels+"}"] = took[0]
		metrics["turnstone_http_request_seconds_bucket{"+labels+`,le="1"}`] = took[1]
	}
	want := []string{"GET /slow: 6 of 10 requests took more than 1 s"}
	if got := slowRoutes(metrics); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestARunWithoutBreachesPasses(t *testing.T) {
	r := newResult(Command{For: time.Hour, FaultEvery: 30 * time.Second})
	r.Before, r.After = resources{Goroutines: 50}, resources{Goroutines: 60, Processors: 0.05}
	for _, part := range r.parts {
		part.samples = []*sample{{Vitals: &resources{RSS: 100 * mega}}}
		for _, what := range judgedDrifts {
			load.Record(part.times[what], time.Millisecond.Nanoseconds())
		}
	}
	r.finish(new(soak))
	if len(r.Failed) != 0 {
		t.Errorf("failed: %q", r.Failed)
	}
}

func TestAFailureAwayFromFaultsIsABreach(t *testing.T) {
	k := &soak{Console: &console.Console{Stderr: io.Discard}, result: newResult(Command{For: time.Hour, FaultEvery: 30 * time.Second})}
	now := load.Monotonic()
	k.noteBrokenConnection(now, "reading", io.ErrUnexpectedEOF)
	if !k.shouldRetry(now, "POST /chat", http.StatusServiceUnavailable, "") {
		t.Error("a refused request is not sent again")
	}
	if k.result.Breaches[brokenKind] != 1 || k.result.Breaches[outsideKind] != 1 {
		t.Errorf("breaches: %v", k.result.Breaches)
	}
	k.faultWindows.open(&faultKind{refuses: true})
	now = load.Monotonic()
	k.noteBrokenConnection(now, "reading", io.ErrUnexpectedEOF)
	k.shouldRetry(now, "POST /chat", http.StatusServiceUnavailable, "")
	if k.result.CutsInFaults != 1 || k.result.RefusedInFaults != 1 || k.result.Breaches[brokenKind]+k.result.Breaches[outsideKind] != 2 {
		t.Errorf("during a fault: %d broken, %d refused, breaches: %v", k.result.CutsInFaults, k.result.RefusedInFaults, k.result.Breaches)
	}
}

func TestEnoughAccountsAreUsedToStayBelowTheLimits(t *testing.T) {
	const requests = 32 // of one account at the same time
	for _, turns := range []int{1, load.TurnsPerAccount, load.TurnsPerAccount + 1, 79, mostLevel} {
		if accounts := load.AccountsFor(turns); accounts < 1 || (turns+accounts-1)/accounts > min(load.TurnsPerAccount, requests) {
			t.Errorf("%d turns are spread over %d accounts", turns, accounts)
		}
	}
}
