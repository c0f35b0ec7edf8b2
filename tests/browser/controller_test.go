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

// maxCommand bounds the body of a request, in bytes.
const maxCommand = 64 << 10

// command is a request of a browser test to change the state of the service. down kills it with kill -9, up starts it,
// freeze stops the process with its connections open, thaw continues it, and running makes it run whatever was done to
// it. refused reports unexpected 503s, one per line of the body.
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
	k.site.Build = sitetest.Failpoints // a test can hold an answer
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
			if c.verb == "refused" {
				for _, finding := range describeRefusals(c.body) { // they fail the suite even if their test passes at a second try
					k.t.Error(finding)
				}
			} else {
				k.do(c.verb)
			}
			close(c.done)
		case <-done:
			return
		}
	}
}

// describeRefusals returns a finding for each different request in the lines of refused.
func describeRefusals(refused string) (findings []string) {
	counts := map[string]int{}
	for request := range strings.SplitSeq(strings.TrimSpace(refused), "\n") {
		counts[request]++
	}
	for _, request := range slices.Sorted(maps.Keys(counts)) {
		findings = append(findings, fmt.Sprintf("%d unexpected 503 responses: %s", counts[request], request))
	}
	return findings
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

// listen starts an HTTP server for commands (POST /down, /up, /freeze, /thaw, /running and /refused) and returns its URL.
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
