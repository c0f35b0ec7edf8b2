package browser

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
)

// program has places where a test can hold an answer; see protocol/failpoint.
var program = sitetest.NewBuild("turnstone-failpoint", "-tags=failpoint")

const (
	// maxErrand bounds what a test says.
	maxErrand = 64 << 10
	// refusedWithin is how long ago, at the end of its test, something was refused: as long as a test takes.
	refusedWithin = time.Minute
)

// errand is what a test of the browser asks: down is kill -9, up is a start; between freeze and thaw the program stands
// still, with its connections open. running makes it run, whatever was done to it. refused tells of unexpected 503s, one
// in each line of the body.
type errand struct {
	verb, body string
	done       chan struct{}
}

// keeper keeps the service of a suite. All but listen's handler runs in the test's goroutine.
type keeper struct {
	t       *testing.T
	site    *sitetest.Development
	process *sitetest.Process
	errands chan errand
	killed  bool     // on purpose
	ended   []string // the log of each process that ended by itself
}

func newKeeper(t *testing.T, settings ...string) *keeper {
	t.Helper()
	k := &keeper{t: t, site: sitetest.NewDevelopment(t, settings...), errands: make(chan errand)}
	k.site.Build = program
	sitetest.Meter() // it measures from now on
	k.process = k.site.Up(t)
	t.Cleanup(func() {
		for _, log := range k.ended {
			t.Errorf("the service ended by itself:\n%s", log)
		}
	})
	return k
}

// serve does errands until done is closed.
func (k *keeper) serve(done <-chan struct{}) {
	k.t.Helper()
	for {
		select {
		case e := <-k.errands:
			if e.verb == "refused" {
				k.blame(e.body)
			} else {
				k.do(e.verb)
			}
			close(e.done)
		case <-done:
			return
		}
	}
}

// blame fails the suite for each unexpected 503: none is the service's right, unless the machine was too slow for it.
func (k *keeper) blame(refused string) {
	k.t.Helper()
	now := time.Now()
	times := map[string]int{}
	for one := range strings.SplitSeq(strings.TrimSpace(refused), "\n") {
		times[one]++
	}
	for _, one := range slices.Sorted(maps.Keys(times)) {
		sitetest.Meter().Between(now.Add(-refusedWithin), now).Judge(k.t, fmt.Sprintf("unexpectedly answered 503 %d times: %s", times[one], one))
	}
}

func (k *keeper) do(verb string) {
	k.t.Helper()
	switch verb {
	case "down":
		k.killed = true
		k.process.Kill()
	case "up", "running":
		if !k.process.HasEnded() {
			k.process.Signal(syscall.SIGCONT)
			return
		}
		if !k.killed {
			k.ended = append(k.ended, k.process.Complaints())
		}
		k.killed = false
		k.process = k.site.Up(k.t)
	case "freeze":
		k.process.Signal(syscall.SIGSTOP)
	case "thaw":
		k.process.Signal(syscall.SIGCONT)
	default:
		k.t.Errorf("no such errand: %q", verb)
	}
}

// listen takes errands: POST /down, /up, /freeze, /thaw, /running, /refused.
func (k *keeper) listen() string {
	k.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		k.t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxErrand))
		if err != nil {
			return // the test is gone
		}
		e := errand{strings.TrimPrefix(r.URL.Path, "/"), string(body), make(chan struct{})}
		select {
		case k.errands <- e:
			<-e.done
		case <-r.Context().Done():
		}
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	k.t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return "http://" + listener.Addr().String()
}
