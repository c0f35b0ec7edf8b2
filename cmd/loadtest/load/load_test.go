package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"turnstone/protocol/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const timeout = 20 * time.Second

// A slow call delays later ones, but no call is skipped and none is made before it is due.
func TestPaceSkipsNoCallAndMakesNoneEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, over = 5, 100 * time.Millisecond
		start := time.Now()
		var at []time.Duration
		err := pace(t.Context(), n, over, func(i int) {
			if i == 0 { // delays the loop beyond the due time of the third call
				if err := clock.Sleep(t.Context(), 50*time.Millisecond); err != nil {
					t.Error(err)
				}
			}
			at = append(at, time.Since(start).Round(time.Millisecond))
		})
		if want := []time.Duration{50 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond, 60 * time.Millisecond, 80 * time.Millisecond}; err != nil || !slices.Equal(at, want) {
			t.Errorf("the calls were made after %v, want %v: %v", at, want, err)
		}
	})
}

func TestThePaceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := pace(ctx, 10, time.Hour, func(int) { calls++; cancel() })
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%d calls were made, want 1: %v", calls, err)
	}
}

func TestAScriptIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Script{
			Tokens:   rapid.IntRange(1, 1<<30).Draw(t, "tokens"),
			First:    time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "first")),
			Interval: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "interval")),
			Words:    rapid.Bool().Draw(t, "words"),
		}
		earlier := Script{Tokens: 7}.String()
		if read, ok := LastScript([]byte(`{"messages":[{"content":"` + earlier + `"},{"content":"` + s.String() + ` hello"}]}`)); !ok || read != s {
			t.Fatalf("%s is parsed as %v, %v", s, read, ok)
		}
	})
	for _, text := range []string{"", "[[script tokens=3", "[[script tokens=x]]", "[[script tokens=0]]", "[[script ttft=-1s]]"} {
		if s, ok := LastScript([]byte(text)); ok {
			t.Errorf("%q is parsed as %v", text, s)
		}
	}
}

// Wherever a text is cut between tokens, each token is counted once, and its due time follows from its index.
func TestATallyCountsAndTimesEveryToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const start, interval = 1_000_000, 33
		n := rapid.IntRange(1, 12_000).Draw(t, "tokens")
		seen, next := NewTally(), int64(start)
		var piece []byte
		flush := func() {
			seen.Read(piece, func(at int64) {
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
				piece = AppendFirstToken(piece, start, interval)
			} else {
				piece = AppendToken(piece, i)
			}
			if i%each == 0 {
				flush()
			}
		}
		piece = AppendCount(piece, n)
		flush()
		if seen.Tokens != n || seen.Count != n || seen.Broken != 0 {
			t.Fatalf("%d tokens are counted as %d of %d, %d broken", n, seen.Tokens, seen.Count, seen.Broken)
		}
	})
}

func TestATallySeesWhatIsMissing(t *testing.T) {
	for name, text := range map[string]string{
		"a token left out": " @5x1 0001 0003", "a token twice": " @5x1 0001 0001", "half a token": " @5x1 00", "noise": " @5x1x", "no interval": " @5",
	} {
		seen := NewTally()
		seen.Read([]byte(text), func(int64) {})
		if seen.Broken == 0 {
			t.Errorf("%s is not detected", name)
		}
	}
}

// Sum merges the histograms and counts of all shards, and Reset empties all of them.
func TestTheSumOfARecorderHoldsAllOfItsShards(t *testing.T) {
	rec := NewRecorder()
	for i := range 1000 {
		s := rec.shard(i)
		Record(s.delay, int64(i+1)*int64(time.Millisecond))
		s.tokens++
	}
	Record(rec.shard(3).first, int64(2*time.Hour)) // out of range: recorded as the slowest
	Record(rec.shard(3).begin, -5)                 // clocks that differ slightly
	w := rec.Sum()
	near := func(got, want float64) bool { return math.Abs(got-want) <= want/500 }
	if w.Tokens != 1000 || w.Delay.N != 1000 || !near(w.Delay.P50, 500) || !near(w.Delay.P99, 990) || !near(w.Delay.Max, 1000) {
		t.Errorf("%+v", w)
	}
	if w.First.N != 1 || !near(w.First.Max, 60_000) || w.Begin.N != 1 || w.Begin.Max > 0.01 {
		t.Errorf("%+v %+v", w.First, w.Begin)
	}
	rec.Reset()
	if w := rec.Sum(); w.Tokens != 0 || w.Delay.N != 0 || w.First.N != 0 {
		t.Errorf("after a reset: %+v", w)
	}
}

// A prose answer repeats no passage of 40 bytes, and answers with different seeds differ.
func TestProseDoesNotRepeatItself(t *testing.T) {
	prose := func(seed uint64) (text []byte) {
		for i := range 2000 {
			text = AppendWord(text, seed, i)
		}
		return text
	}
	text, other, passage := prose(1), prose(2), 40
	if bytes.Equal(text, other) || !json.Valid([]byte(`"`+string(text)+`"`)) {
		t.Error("two answers are equal, or not valid JSON")
	}
	seen := map[string]bool{}
	for at := 0; at+passage <= len(text); at++ {
		part := string(text[at : at+passage])
		if seen[part] {
			t.Fatalf("%q occurs twice", part)
		}
		seen[part] = true
	}
}

// A load that a limit has reduced, or of which the service refused a part, is an error, so that its figures are not
// published. No request is sent again.
func TestALoadThatWasReducedIsAnError(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		var requests atomic.Int64
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.WriteHeader(status)
		}))
		address := service.Listener.Addr().String()
		f, err := Launch(t.Context(), address, 3, 0, NewRecorder(), func(int) []byte { return fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", address) })
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Await(t.Context(), timeout); err != nil {
			t.Fatal(err)
		}
		service.Close()
		err = f.Check()
		if err == nil || errors.Is(err, ErrRefused) != (status == http.StatusServiceUnavailable) || requests.Load() != 3 {
			t.Errorf("%d: %d requests: %v", status, requests.Load(), err)
		}
		if err := f.AwaitFirst(t.Context(), timeout); err == nil {
			t.Errorf("%d: a stream that failed has begun", status)
		}
	}
}

// A stream of the service that is cut, failed, has a gap or misses tokens is an error.
func TestAStreamOfTheServiceIsHeldToItsOrder(t *testing.T) {
	frame := func(n int, kind, data string) string {
		return fmt.Sprintf("id: %d\nevent: %s\ndata: {%s}\n\n", n, kind, data)
	}
	first := string(AppendFirstToken(nil, 1, 1))
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
		"long lines":  {whole + frame(3, "message", `"text":"`+strings.Repeat("x", 3*LineBuffer)+`"`) + frame(4, "turn.finished", good), true},
	} {
		near, far := net.Pipe()
		go func() {
			_, _ = http.ReadRequest(bufio.NewReader(far))
			_, _ = fmt.Fprintf(far, "HTTP/1.1 200 OK\r\nX-Turn-Id: t\r\nContent-Length: %d\r\n\r\n%s", len(each.body), each.body)
			_ = far.Close()
		}()
		s := &Stream{Rec: NewRecorder(), Conn: near, Request: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")}
		if err := s.Follow(); (err == nil) != each.good {
			t.Errorf("%s: %v", name, err)
		}
		_ = near.Close()
	}
}
