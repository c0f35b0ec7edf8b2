package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/http/oidctest"
)

const (
	webFolder = "../../../web"
	// whole is how long all tests of the browser may take; each has its own limit in web/vitest.bad-days.config.ts.
	whole = 9 * time.Minute
	// mostAgain is how many tests of a run may pass at their second try only, where CI is set; elsewhere there is none.
	mostAgain = 2
	// warnings gets a line for each of them: `make test` prints it above its summary.
	warnings = "../../../tmp/second-tries"
)

// report is what vitest writes down.
type report struct {
	TestResults []struct {
		Name             string
		Message          string
		Status           string
		AssertionResults []struct {
			FullName        string
			Status          string
			Duration        float64 // in milliseconds
			FailureMessages []string
		}
	}
}

// errand is what a test of the browser asks of the program: down is kill -9, up is a start; between freeze and thaw it
// stands still, with its connections open.
type errand struct {
	verb string
	done chan struct{}
}

func TestInTheBrowser(t *testing.T) {
	t.Parallel()
	provider := oidctest.New(t, time.Now)
	provider.Ask()
	inTheBrowser(t, "vitest.browser.config.ts",
		"TURNSTONE_OIDC_HARBOUR_ISSUER="+provider.Issuer,
		"TURNSTONE_OIDC_HARBOUR_CLIENT_ID="+oidctest.ClientID, "TURNSTONE_OIDC_HARBOUR_CLIENT_SECRET="+oidctest.ClientSecret)
}

// The tests that kill and freeze the service have one of their own.
func TestBadDaysInTheBrowser(t *testing.T) {
	t.Parallel()
	inTheBrowser(t, "vitest.bad-days.config.ts")
}

// inTheBrowser runs the tests of a configuration against a service of their own.
func inTheBrowser(t *testing.T, config string, settings ...string) {
	t.Helper()
	site := sitetest.NewDevelopment(t, append(settings,
		"TURNSTONE_LIMIT_SIGNIN=6000/1m burst 1000", "TURNSTONE_LIMIT_WRITES=60000/1m burst 10000",
		"TURNSTONE_LIMIT_CHAT=6000/1m burst 1000", "TURNSTONE_LIMIT_READS=60000/1m burst 10000")...)
	process := site.Up(t)
	errands := make(chan errand)
	control := listen(t, errands)

	tests := start(t, config, "TURNSTONE_URL=http://"+site.Public, "TURNSTONE_CONTROL="+control, "TURNSTONE_FOLDER="+site.Folder)
	for {
		select {
		case e := <-errands:
			switch e.verb {
			case "down":
				process.Kill()
			case "up":
				process = site.Up(t)
			case "freeze":
				process.Signal(syscall.SIGSTOP)
			case "thaw":
				process.Signal(syscall.SIGCONT)
			}
			close(e.done)
		case <-tests.done:
			tests.tell(t)
			return
		}
	}
}

// What needs neither service nor browser: folding, following, words.
func TestTheAppByItself(t *testing.T) {
	t.Parallel()
	tests := start(t, "vite.config.ts")
	<-tests.done
	tests.tell(t)
}

// vitest is a run of the app's own tests.
type vitest struct {
	results string // a file
	// Set before done is closed.
	output  []byte
	failure error
	done    chan struct{}
}

func start(t *testing.T, config string, environment ...string) *vitest {
	t.Helper()
	v := &vitest{results: filepath.Join(t.TempDir(), "results.json"), done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), whole)
	// The service goes first: it is to answer within its own limits while browsers keep every processor busy.
	command := exec.CommandContext(ctx, "nice", "npx", "vitest", "run", "--config", config, "--reporter=json", "--outputFile="+v.results)
	command.Dir = webFolder
	command.Env = append(os.Environ(), environment...)
	go func() {
		defer close(v.done)
		defer cancel()
		v.output, v.failure = command.CombinedOutput()
	}()
	return v
}

// listen lets the browser's tests send errands: POST /down, /up, /freeze, /thaw.
func listen(t *testing.T, errands chan<- errand) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := errand{strings.TrimPrefix(r.URL.Path, "/"), make(chan struct{})}
		select {
		case errands <- e:
			<-e.done
		case <-r.Context().Done():
		}
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return "http://" + listener.Addr().String()
}

// tell makes a test of each that ran.
func (v *vitest) tell(t *testing.T) {
	t.Helper()
	written, err := os.ReadFile(v.results)
	if err != nil {
		t.Fatalf("vitest wrote no results: %v\n%s", v.failure, v.output)
	}
	var all report
	if err := json.Unmarshal(written, &all); err != nil {
		t.Fatal(err)
	}
	ran, again := 0, 0
	for _, file := range all.TestResults {
		if len(file.AssertionResults) == 0 {
			t.Errorf("%s: %s %s", filepath.Base(file.Name), file.Status, file.Message)
		}
		for _, one := range file.AssertionResults {
			ran++
			t.Run(one.FullName, func(t *testing.T) {
				t.Logf("%s: %.1f s", filepath.Base(file.Name), one.Duration/1000)
				messages := strings.Join(one.FailureMessages, "\n")
				switch {
				case one.Status != "passed":
					t.Errorf("%s: %s", one.Status, messages)
				case len(one.FailureMessages) > 0:
					again++
					warn(t, fmt.Sprintf("%s passed at its second try only: %s", t.Name(), messages))
				}
			})
		}
	}
	if again > mostAgain {
		t.Errorf("%d tests passed at their second try only", again)
	}
	if ran == 0 || v.failure != nil && !t.Failed() {
		t.Fatalf("%d tests ran: %v\n%s", ran, v.failure, v.output)
	}
}

// warn tells what deserves a look and is no failure.
func warn(t *testing.T, text string) {
	t.Helper()
	t.Log(text)
	if err := os.MkdirAll(filepath.Dir(warnings), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(warnings, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// The prefix keeps gotestsum from taking it for an error of the build.
	if _, err := fmt.Fprintf(file, "warning: %s\n", strings.ReplaceAll(text, "\n", "\nwarning:   ")); err != nil {
		t.Fatal(err)
	}
}
