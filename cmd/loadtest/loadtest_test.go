package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const patience = 20 * time.Second

// Whatever holds it up, nothing is left out and nothing begins before it is due.
func TestThePaceLeavesNothingOut(t *testing.T) {
	const n, over = 5, 100 * time.Millisecond
	begun := time.Now()
	var at []time.Duration
	err := pace(t.Context(), n, over, func(i int) {
		if i == 0 { // holds everything up beyond the time of the third
			if err := wait(t.Context(), 50*time.Millisecond); err != nil {
				t.Error(err)
			}
		}
		at = append(at, time.Since(begun))
	})
	if err != nil || len(at) != n {
		t.Fatalf("%d of %d began: %v", len(at), n, err)
	}
	for i, begun := range at {
		if due := over * time.Duration(i) / n; begun < due {
			t.Errorf("%d began after %s, before it was due after %s", i, begun, due)
		}
	}
}

func TestThePaceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun := 0
	err := pace(ctx, 10, time.Hour, func(int) { begun++; cancel() })
	if !errors.Is(err, context.Canceled) || begun != 1 {
		t.Errorf("%d began: %v", begun, err)
	}
}

func TestAScriptIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := script{
			Tokens:   rapid.IntRange(1, 1<<30).Draw(t, "tokens"),
			First:    time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "first")),
			Interval: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "interval")),
			Words:    rapid.Bool().Draw(t, "words"),
		}
		earlier := script{Tokens: 7}.String()
		if read, ok := lastScript([]byte(`{"messages":[{"content":"` + earlier + `"},{"content":"` + s.String() + ` hello"}]}`)); !ok || read != s {
			t.Fatalf("%s is read as %v, %v", s, read, ok)
		}
	})
	for _, text := range []string{"", "[[script tokens=3", "[[script tokens=x]]", "[[script tokens=0]]", "[[script ttft=-1s]]"} {
		if s, ok := lastScript([]byte(text)); ok {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}

// However a text is cut between tokens, each is counted once and timed by its place.
func TestATallyCountsAndTimesEveryToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const start, interval = 1_000_000, 33
		n := rapid.IntRange(1, 12_000).Draw(t, "tokens")
		seen, next := newTally(), int64(start)
		var piece []byte
		flush := func() {
			seen.read(piece, func(at int64) {
				if at != next {
					t.Fatalf("a token is due at %d, want %d", at, next)
				}
				next += interval
			})
			piece = piece[:0]
		}
		each := rapid.IntRange(1, 50).Draw(t, "tokens a piece")
		for i := range n {
			if i == 0 {
				piece = appendFirstToken(piece, start, interval)
			} else {
				piece = appendToken(piece, i)
			}
			if i%each == 0 {
				flush()
			}
		}
		piece = appendCount(piece, n)
		flush()
		if seen.tokens != n || seen.count != n || seen.broken != 0 {
			t.Fatalf("%d tokens are read as %d of %d, %d broken", n, seen.tokens, seen.count, seen.broken)
		}
	})
}

func TestATallySeesWhatIsMissing(t *testing.T) {
	for name, text := range map[string]string{
		"a token left out": " @5x1 0001 0003", "a token twice": " @5x1 0001 0001", "half a token": " @5x1 00", "noise": " @5x1x", "no interval": " @5",
	} {
		seen := newTally()
		seen.read([]byte(text), func(int64) {})
		if seen.broken == 0 {
			t.Errorf("%s is not seen", name)
		}
	}
}

// A shard's histogram is part of the whole, whichever shard it is.
func TestTheSumOfARecorderHoldsAllOfItsShards(t *testing.T) {
	rec := newRecorder()
	for i := range 1000 {
		s := rec.shard(i)
		record(s.delay, int64(i+1)*int64(time.Millisecond))
		s.tokens++
	}
	record(rec.shard(3).first, int64(2*time.Hour)) // beyond what is kept: counts as the slowest
	record(rec.shard(3).begin, -5)                 // clocks that disagree by a moment
	w := rec.sum()
	near := func(got, want float64) bool { return math.Abs(got-want) <= want/500 }
	if w.Tokens != 1000 || w.Delay.N != 1000 || !near(w.Delay.P50, 500) || !near(w.Delay.P99, 990) || !near(w.Delay.Max, 1000) {
		t.Errorf("%+v", w)
	}
	if w.First.N != 1 || !near(w.First.Max, 60_000) || w.Begin.N != 1 || w.Begin.Max > 0.01 {
		t.Errorf("%+v %+v", w.First, w.Begin)
	}
	rec.reset()
	if w := rec.sum(); w.Tokens != 0 || w.Delay.N != 0 || w.First.N != 0 {
		t.Errorf("after a reset: %+v", w)
	}
}

func TestAStatLineIsReadBehindItsName(t *testing.T) {
	line := `4711 (a ) name (x) S 17 4711 4711 0 -1 4194560 1 2 3 4 150 50 7 3 20 0 9 0 100 1 1`
	stat, err := parseStat([]byte(line))
	if err != nil || stat.parent != 17 || stat.own != 2*time.Second || stat.reaped != 100*time.Millisecond {
		t.Errorf("%+v %v", stat, err)
	}
	for _, bad := range []string{"", "1 (x", "1 (x) S 1 2 3", "1 (x) S p 1 1 0 -1 4 1 2 3 4 150 50 7 3"} {
		if stat, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q is read as %+v", bad, stat)
		}
	}
}

func TestTheMachineIsBusyWithWhatIsNotIdle(t *testing.T) {
	total, err := parseBusy([]byte("cpu  100 10 50 9999 999 5 6 7 1000 1000\ncpu0 1 1 1 1\n"))
	if want := (100 + 10 + 50 + 5 + 6 + 7) * tick; err != nil || total != want {
		t.Errorf("%s, want %s: %v", total, want, err)
	}
	if _, err := parseBusy([]byte("intr 1 2 3")); err == nil {
		t.Error("a line that is no cpu was read")
	}
}

func TestMemoryIsReadByItsName(t *testing.T) {
	text := []byte("0-1 ---p 0 00:00 0 [rollup]\nRss:   900 kB\nPss:   321 kB\nPss_Dirty: 5 kB\n")
	if n, err := parseMemory(text, "Pss:"); err != nil || n != 321<<10 {
		t.Errorf("%d %v", n, err)
	}
	if _, err := parseMemory(text, "Swap:"); err == nil {
		t.Error("what is not there was read")
	}
}

// The process table of this machine has what we read from it.
func TestOurOwnProcessIsMeasured(t *testing.T) {
	own, err := cpuOf(os.Getpid())
	family, errs := cpuOfFamily(os.Getpid())
	if err != nil || errs != nil || own > family {
		t.Errorf("%s of %s: %v %v", own, family, err, errs)
	}
	if n, err := memoryOf(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("%d bytes: %v", n, err)
	}
}

func TestMediansAndRatiosGoRoundByRound(t *testing.T) {
	ours, theirs := samples{30, 10, 20}, samples{10, 10, 40}
	if m := ours.median(); m != 20 {
		t.Errorf("median %v", m)
	}
	if m := (samples{1, 2, 3, 10}).median(); m != 2.5 {
		t.Errorf("median of four %v", m)
	}
	if r := ours.by(theirs); fmt.Sprint(r) != "[3 1 0.5]" {
		t.Errorf("ratios %v", r)
	}
	if d := ours.minus(theirs); fmt.Sprint(d) != "[20 0 -20]" {
		t.Errorf("differences %v", d)
	}
	if !math.IsNaN(samples{}.median()) || atMost(5, "").met(math.NaN()) || atLeast(5, "").met(math.NaN()) {
		t.Error("what was not measured has met a bound")
	}
}

func TestNumbersAreShort(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 5: "5", 1234567: "1,234,567", 123.4: "123", -1234.5: "-1,234", 12.34: "12.3", 1.234: "1.23", 0.0123: "0.012", math.NaN(): "–",
	} {
		if got := number(value); got != want {
			t.Errorf("%v is shown as %s, want %s", value, got, want)
		}
	}
}

// The document shows every figure with its verdict, and keeps what people wrote below the line.
func TestTheDocumentKeepsWhatWasWrittenByHand(t *testing.T) {
	var r report
	r.add(figure{Goal: "P1 (a)", Ours: samples{15, 14, 16}, Baseline: samples{10, 10, 10}, Unit: "µs", Score: samples{1.5, 1.4, 1.6}})
	r.add(figure{Goal: "P2 (a)", Ours: samples{40}, Baseline: samples{10}, Unit: "µs", Score: samples{4}})
	r.detail("P1", "a table", newTable("round", "µs"))
	r.failed("P9", errors.New("no readers"))
	text := string(r.markdown([]byte("# Old\n" + byHand + "\n\n## What was tried\n\nNothing yet.\n")))
	for _, want := range []string{
		"| P1 (a) |", "15 (14–16) µs", "1.50 (1.40–1.60) ×", "| met |", "| **not met** |", "### P1: a table", "P9 was not measured: no readers",
		byHand + "\n\n## What was tried\n\nNothing yet.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "# Old") {
		t.Error("the old document is still there")
	}
}

func TestEveryGoalOfTheListIsMeasuredByOne(t *testing.T) {
	for _, g := range goals {
		id, _, _ := strings.Cut(g.id, " ")
		found := 0
		for _, m := range measurements {
			for _, goal := range m.goals {
				if goal == id {
					found++
				}
			}
		}
		if found != 1 {
			t.Errorf("%s is measured by %d", g.id, found)
		}
	}
}

func TestWhatPgbenchAndGoPrintIsRead(t *testing.T) {
	rate, latency, err := parsePgbench([]byte("latency average = 4.097 ms\ninitial connection time = 9.1 ms\ntps = 3905.25 (without initial connection time)\n"))
	if err != nil || rate != 3905.25 || latency != 4.097 {
		t.Errorf("%v %v %v", rate, latency, err)
	}
	if _, _, err := parsePgbench([]byte("nothing")); err == nil {
		t.Error("no rate was read as one")
	}
	rows := parseBenchmark("goos: linux\nBenchmarkJournal-2  \t 5\t 1234 ns/op\t 7575 alone/s\t 36652 grouped/s\nPASS\n")
	if len(rows) != 1 || rows[0]["grouped/s"] != 36652 || rows[0]["alone/s"] != 7575 {
		t.Errorf("%v", rows)
	}
}

// serving runs a command of ours that announces its address.
func serving(t *testing.T, command func(ctx context.Context, p *program) error) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- command(ctx, &program{stdout: write, stderr: io.Discard}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, announcement))
}

func upstreamForTest(t *testing.T) string {
	t.Helper()
	return serving(t, upstreamCommand{Listen: "127.0.0.1:0"}.Run)
}

// Streams come whole, in order and not before they are due, from the model itself and through the proxy.
func TestTheModelStreamsWhatItWasAskedForWhenItIsDue(t *testing.T) {
	model := upstreamForTest(t)
	proxy := serving(t, proxyCommand{To: "http://" + model, Listen: "127.0.0.1:0"}.Run)
	const n, tokens, interval = 20, 30, 2 * time.Millisecond
	for _, address := range []string{model, proxy} {
		rec := newRecorder()
		rec.open.Store(true)
		text := script{Tokens: tokens, Interval: interval}.String()
		f, err := launch(t.Context(), address, n, 10*time.Millisecond, rec, func(int) []byte { return completionRequest(address, text) })
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.awaitFirst(t.Context(), patience), f.await(t.Context(), patience), f.check()); err != nil {
			t.Fatal(err)
		}
		w := rec.sum()
		if w.Tokens != n*tokens || w.Delay.N != n*tokens || w.First.N != n || w.Begin.N != n || f.gaps() != 0 {
			t.Errorf("%+v, %d gaps", w, f.gaps())
		}
	}
}

// A crowd gathers though some of it are refused at first; once it is measured, a refusal is a failure.
func TestACrowdGathersThoughItIsRefusedAtFirst(t *testing.T) {
	var asked atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "id: 1\nevent: answer.delta\ndata: {\"delta\":\"0 \"}\n\nid: 2\nevent: turn.finished\ndata: {\"status\":\"completed\"}\n\n")
	}))
	defer service.Close()
	address := service.Listener.Addr().String()
	for _, measured := range []bool{false, true} {
		asked.Store(0)
		rec := newRecorder()
		rec.open.Store(measured)
		f, err := launch(t.Context(), address, 1, 0, rec, func(int) []byte { return fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", address) })
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.await(t.Context(), patience), f.check()); (err != nil) != measured || (asked.Load() == 1) != measured {
			t.Errorf("measured %t: asked %d times: %v", measured, asked.Load(), err)
		}
	}
}

// A load that a limit keeps small is no load: what came of it must not be published.
func TestACrowdThatMeetsALimitIsAnError(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	defer service.Close()
	address := service.Listener.Addr().String()
	f, err := launch(t.Context(), address, 3, 0, newRecorder(), func(int) []byte { return fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", address) })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.await(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"unlimited": f.unlimited(), "check": f.check()} {
		if err == nil || !strings.Contains(err.Error(), "3 of 3 requests met a limit") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheAccountsOfACrowdMeetNoLimit(t *testing.T) {
	const requests = 32 // of an account at once
	for _, turns := range []int{1, turnsEach, turnsEach + 1, 79, leastCrowd, mostLevel} {
		if accounts := accountsOf(turns); accounts < 1 || (turns+accounts-1)/accounts > min(turnsEach, requests) {
			t.Errorf("%d turns have %d accounts", turns, accounts)
		}
	}
}

func TestTheModelEndsItsAnswersWhenItIsTold(t *testing.T) {
	model := upstreamForTest(t)
	text := script{Tokens: endless, Interval: time.Millisecond}.String()
	f, err := launch(t.Context(), model, 3, 0, newRecorder(), func(int) []byte { return completionRequest(model, text) })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.awaitFirst(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	s := &site{model: &child{address: model}}
	if err := errors.Join(s.endTurns(t.Context()), f.await(t.Context(), patience), f.check()); err != nil {
		t.Fatal(err)
	}
	for _, s := range f.streams {
		if s.tally.count != s.tally.tokens || s.tally.count < 1 {
			t.Errorf("%d of %d tokens came", s.tally.tokens, s.tally.count)
		}
	}
	browser.CloseIdleConnections()
}

// A reader that does not read holds nobody else up, and gets all of it later.
func TestASlowReaderOfTheModelHoldsNobodyUp(t *testing.T) {
	model := upstreamForTest(t)
	conn, err := dial(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	const tokens = 100_000 // more than any socket takes
	slow := &stream{rec: newRecorder(), conn: conn, request: completionRequest(model, script{Tokens: tokens}.String())}
	if _, err := conn.Write(slow.request); err != nil {
		t.Fatal(err)
	}
	text := script{Tokens: 20, Interval: time.Millisecond}.String()
	f, err := launch(t.Context(), model, 2, 0, newRecorder(), func(int) []byte { return completionRequest(model, text) })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.await(t.Context(), patience), f.check()); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	slow.tally = newTally()
	if err := slow.read(bufio.NewReaderSize(response.Body, lineBuffer)); err != nil || slow.tally.tokens != tokens {
		t.Errorf("%d of %d tokens came: %v", slow.tally.tokens, tokens, err)
	}
	_ = conn.Close()
}

// The bare server's readers get every event after their cursor.
func TestTheBareServerResumes(t *testing.T) {
	address := serving(t, sseCommand{Listen: "127.0.0.1:0"}.Run)
	url := "http://" + address + "/events/0"
	if _, err := call(t.Context(), http.MethodPost, url+"?interval=2ms", nil, nil, http.StatusOK, nil); err != nil {
		t.Fatal(err)
	}
	request := func(after int64) []byte {
		return fmt.Appendf(nil, "GET /events/0 HTTP/1.1\r\nHost: %s\r\nLast-Event-ID: %d\r\n\r\n", address, after)
	}
	f, err := launch(t.Context(), address, 5, 0, newRecorder(), func(int) []byte { return request(0) })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.awaitFirst(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	f.close()
	for _, old := range f.streams {
		s := &stream{rec: newRecorder(), request: request(old.sequence), after: old.sequence, tally: old.tally, resumes: true}
		if err := s.resume(t.Context(), address); err != nil || s.gaps+s.tally.broken > 0 || s.sequence <= old.sequence {
			t.Errorf("after %d: %+v, %v", old.sequence, s.tally, err)
		}
		_ = s.conn.Close()
	}
	if _, err := call(t.Context(), http.MethodDelete, url, nil, nil, http.StatusOK, nil); err != nil {
		t.Error(err)
	}
	browser.CloseIdleConnections()
}

// A stream of the service tells what is wrong with it.
func TestAStreamOfTheServiceIsHeldToItsOrder(t *testing.T) {
	frame := func(n int, kind, data string) string {
		return fmt.Sprintf("id: %d\nevent: %s\ndata: {%s}\n\n", n, kind, data)
	}
	first := string(appendFirstToken(nil, 1, 1))
	const good = `"status":"completed"`
	whole := "retry: 2000\n\n" + frame(1, "turn.started", "") + frame(2, "answer.delta", `"delta":"`+first+` 0001"`) + ": \n\n"
	for name, each := range map[string]struct {
		body string
		good bool
	}{
		"whole":       {whole + frame(3, "answer.delta", `"delta":" 0002 #3"`) + frame(4, "turn.finished", good), true},
		"cut":         {whole, false},
		"failed":      {whole + frame(3, "turn.finished", `"status":"failed"`), false},
		"a gap":       {whole + frame(4, "turn.finished", good), false},
		"lost tokens": {whole + frame(3, "answer.delta", `"delta":" 0003"`) + frame(4, "turn.finished", good), false},
		"lost last":   {whole + frame(3, "answer.delta", `"delta":" #9"`) + frame(4, "turn.finished", good), false},
		"long lines":  {whole + frame(3, "message", `"text":"`+strings.Repeat("x", 3*lineBuffer)+`"`) + frame(4, "turn.finished", good), true},
	} {
		client, server := net.Pipe()
		go func() {
			_, _ = http.ReadRequest(bufio.NewReader(server))
			_, _ = fmt.Fprintf(server, "HTTP/1.1 200 OK\r\nX-Turn-Id: t\r\nContent-Length: %d\r\n\r\n%s", len(each.body), each.body)
			_ = server.Close()
		}()
		s := &stream{rec: newRecorder(), conn: client, request: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")}
		if err := s.follow(); (err == nil) != each.good {
			t.Errorf("%s: %v", name, err)
		}
		_ = client.Close()
	}
}

func TestTheCommandLineSaysWhatIsWrong(t *testing.T) {
	for _, arguments := range [][]string{{"bench", "--only", "P99"}, {"bench", "--rounds", "0"}, {"run"}, {"run", "ftp://x"}, {"nothing"}} {
		var out bytes.Buffer
		if code := run(t.Context(), arguments, io.Discard, &out); code == 0 || !strings.Contains(out.String(), "loadtest:") {
			t.Errorf("%v: %d %q", arguments, code, out.String())
		}
	}
	var help bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &help, io.Discard); code != 0 || !strings.Contains(help.String(), "bench") {
		t.Errorf("%d %q", code, help.String())
	}
}
