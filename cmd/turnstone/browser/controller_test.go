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

// program is the variant with failpoints, in which a test can hold an answer; see package protocol/failpoint.
var program = sitetest.NewBuild("turnstone-failpoint", "-tags=failpoint")

const (
	// maxCommand bounds the body of a request, in bytes.
	maxCommand = 64 << 10
	// refusedWithin is the time before the end of a test in which a refusal or a delay is assumed to have happened: about
	// as long as a test takes.
	refusedWithin = time.Minute
)

// command is a request of a browser test to change the state of the service. down kills it with kill -9, up starts it,
// freeze stops the process with its connections open, thaw continues it, and running makes it run whatever was done to
// it. refused reports unexpected 503s, one per line of the body, and late what took longer than its limit, as well.
type command struct {
	verb, body string
	done       chan struct{}
}

// controller runs the service of a suite. All of its methods run in the test's goroutine, except the handler of listen.
type controller struct {
	t        *testing.T
	site     *sitetest.DevInstallation
	process  *sitetest.Process
	commands chan command
	killed   bool     // a command killed the last process
	ended    []string // the log of each process that ended by itself
}

func newController(t *testing.T, settings ...string) *controller {
	t.Helper()
	k := &controller{t: t, site: sitetest.NewDevelopment(t, settings...), commands: make(chan command)}
	k.site.Build = program
	sitetest.Meter() // starts measuring
	k.process = k.site.Start(t)
	t.Cleanup(func() {
		for _, log := range k.ended {
			t.Errorf("the service ended by itself:\n%s", log)
		}
	})
	return k
}

// serve executes commands until done is closed.
func (k *controller) serve(done <-chan struct{}) {
	k.t.Helper()
	for {
		select {
		case c := <-k.commands:
			switch c.verb {
			case "refused":
				k.checkRefusals(c.body)
			case "late":
				k.checkDelays(c.body)
			default:
				k.do(c.verb)
			}
			close(c.done)
		case <-done:
			return
		}
	}
}

// checkRefusals fails the suite for each unexpected 503, unless the machine was too slow for the service.
func (k *controller) checkRefusals(refused string) {
	k.t.Helper()
	now := time.Now()
	counts := map[string]int{}
	for request := range strings.SplitSeq(strings.TrimSpace(refused), "\n") {
		counts[request]++
	}
	for _, request := range slices.Sorted(maps.Keys(counts)) {
		finding := fmt.Sprintf("%d unexpected 503 responses: %s", counts[request], request)
		sitetest.Meter().Between(now.Add(-refusedWithin), now).Report(k.t, finding)
	}
}

// checkDelays fails the suite for each delay, unless the machine was too slow. The delays happened shortly before.
func (k *controller) checkDelays(late string) {
	k.t.Helper()
	now := time.Now()
	for line := range strings.SplitSeq(strings.TrimSpace(late), "\n") {
		sitetest.Meter().Between(now.Add(-refusedWithin), now).Report(k.t, line)
	}
}

func (k *controller) do(verb string) {
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
			k.ended = append(k.ended, k.process.Stderr())
		}
		k.killed = false
		k.process = k.site.Start(k.t)
	case "freeze":
		k.process.Signal(syscall.SIGSTOP)
	case "thaw":
		k.process.Signal(syscall.SIGCONT)
	default:
		k.t.Errorf("unknown command %q", verb)
	}
}

// listen starts an HTTP server for commands (POST /down, /up, /freeze, /thaw, /running, /refused and /late) and returns its
// URL.
func (k *controller) listen() string {
	k.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		k.t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxCommand))
		if err != nil {
			return // the test closed the connection
		}
		c := command{strings.TrimPrefix(r.URL.Path, "/"), string(body), make(chan struct{})}
		select {
		case k.commands <- c:
			<-c.done
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
