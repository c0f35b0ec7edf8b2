package browser

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/http/oidctest"
	"turnstone/providers/mail/mailtest"
)

// generous contains limits that only tests of these limits reach.
var generous = []string{
	"TURNSTONE_LIMIT_SIGNIN=6000/1m burst 1000", "TURNSTONE_LIMIT_WRITES=60000/1m burst 10000", "TURNSTONE_LIMIT_UPLOADS=6000/1m burst 1000",
	"TURNSTONE_LIMIT_CHAT=6000/1m burst 1000", "TURNSTONE_LIMIT_READS=60000/1m burst 10000", "TURNSTONE_LIMIT_REPLAYS=60000/1m burst 10000",
}

func TestBrowserSuite(t *testing.T) {
	t.Parallel()
	provider := oidctest.New(t, time.Now)
	provider.RequireConsent()
	runSuite(t, "vitest.browser.config.ts", nil,
		"TURNSTONE_OIDC_HARBOUR_ISSUER="+provider.Issuer,
		"TURNSTONE_OIDC_HARBOUR_CLIENT_ID="+oidctest.ClientID, "TURNSTONE_OIDC_HARBOUR_CLIENT_SECRET="+oidctest.ClientSecret)
}

// TestBrowserSuiteWithOutages runs the tests that kill and freeze the service, with a service of their own.
func TestBrowserSuiteWithOutages(t *testing.T) {
	t.Parallel()
	runSuite(t, "vitest.faults.config.ts", nil)
}

// TestBrowserSuiteWithMail runs the tests that open links of mails, with a service of their own. Without a mail server, the
// service changes addresses at once, as the other tests expect.
func TestBrowserSuiteWithMail(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var mu sync.Mutex
	count := map[string]int{} // by recipient
	server := mailtest.New(t, mailtest.Options{Answer: func(m mailtest.Mail) string {
		mu.Lock()
		defer mu.Unlock()
		count[m.To]++
		file := filepath.Join(folder, fmt.Sprintf("%s.%d", m.To, count[m.To]))
		if err := errors.Join(os.WriteFile(file+".new", []byte(m.Text), 0o600), os.Rename(file+".new", file)); err != nil {
			t.Error(err)
		}
		return ""
	}})
	runSuite(t, "vitest.mail.config.ts", []string{"TURNSTONE_MAILS=" + folder},
		"TURNSTONE_SMTP_URL=smtp://"+server.Address, "TURNSTONE_SMTP_FROM=Turnstone <no-reply@example.org>")
}

// runSuite runs the tests of a vitest configuration, with an environment of theirs, against a service of their own.
func runSuite(t *testing.T, config string, environment []string, settings ...string) {
	t.Helper()
	k := newController(t, append(settings, generous...)...)
	environment = append(environment,
		"TURNSTONE_URL=http://"+k.site.Public, "TURNSTONE_INTERNAL=http://"+k.site.Internal, "TURNSTONE_CONTENT=http://"+k.site.Content,
		"TURNSTONE_CONTROL="+k.listen(), "TURNSTONE_FOLDER="+k.site.Folder,
	)
	run := func(only []string) results {
		tests := start(t, config, only, environment...)
		k.serve(tests.done)
		return tests.results(t)
	}
	first := run(nil)
	if names := first.failed(); secondTries.allow(len(names)) {
		first.replace(t, names, run(names))
	}
	first.report(t)
}

// TestAppUnitTests runs the tests that need neither a service nor a browser.
func TestAppUnitTests(t *testing.T) {
	t.Parallel()
	tests := start(t, "vite.config.ts", nil)
	<-tests.done
	tests.results(t).report(t)
}

// TestOnlyTheGateTriesAgainAndTwiceAtMost checks that at most maxRetries tests of both suites together get a second
// try, and only where CI is set.
func TestOnlyTheGateTriesAgainAndTwiceAtMost(t *testing.T) {
	for _, c := range []struct {
		ci      string
		failed  []int // by suite
		allowed []bool
	}{
		{"", []int{1, 1}, []bool{false, false}},
		{"false", []int{1}, []bool{false}},
		{"0", []int{1}, []bool{false}},
		{"true", []int{0, 1, 1, 1}, []bool{false, true, true, false}},
		{"true", []int{2, 1}, []bool{true, false}},
		{"true", []int{3, 1, 2}, []bool{false, true, false}},
	} {
		budget := newBudget(c.ci)
		for i, failed := range c.failed {
			if got := budget.allow(failed); got != c.allowed[i] {
				t.Errorf("CI=%q, failed %v: suite %d gets a second try: %t", c.ci, c.failed, i+1, got)
			}
		}
	}
}

func TestASecondTryIsNamedAndCountsForItsTestOnly(t *testing.T) {
	first := results{{"a", "passed", nil, 1}, {"b", "failed", []string{"Error: late\n  at node_modules/y.js\n\n  at x.ts"}, 1}, {"c", "failed", []string{"lost"}, 1}}
	second := results{{"a", "skipped", nil, 0}, {"b", "passed", nil, 1}, {"c", "failed", []string{"lost again"}, 1}}
	notices := first.merge(second, first.failed())
	if len(notices) != 1 || notices[0] != "b passed only at its second try; the first failed: Error: late | at x.ts" {
		t.Errorf("noticed %q", notices)
	}
	var statuses []string
	for _, one := range first {
		statuses = append(statuses, one.FullName+" "+one.Status)
	}
	if got := fmt.Sprint(statuses); got != "[a passed b passed c failed]" {
		t.Error(got)
	}
}

func TestATestThatDidNotPassIsAFailure(t *testing.T) {
	for status, failed := range map[string]bool{"passed": false, "failed": true, "skipped": true, "pending": true, "todo": true} {
		if finding := (result{FullName: "a", Status: status}).finding(); (finding != "") != failed {
			t.Errorf("a %s test: %q", status, finding)
		}
	}
	first := results{{"c", "failed", nil, 1}}
	if notices := first.merge(results{{"c", "skipped", nil, 0}}, []string{"c"}); len(notices) > 0 || first[0].Status != "failed" {
		t.Error("a second try that did not start replaced a failure")
	}
}

func TestEveryUnexpectedRefusalIsAFinding(t *testing.T) {
	got := describeRefusals("b: GET /files\na: POST /chat\nb: GET /files\n")
	want := []string{"1 unexpected 503 responses: a: POST /chat", "2 unexpected 503 responses: b: GET /files"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestARunThatHangsIsKilledWithItsChildren checks that a child that keeps the output open does not outlive a run.
func TestARunThatHangsIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", "sleep 1000 & echo $!; wait")
	killWithChildren(command)
	command.WaitDelay = 0 // without it, Wait returns only when the child has ended as well
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(output)
	if _, err := lines.ReadString('\n'); err != nil { // the child has started
		t.Fatal(err)
	}
	cancel()
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil { // ends when no process holds the output
		t.Errorf("read %q: %v", rest, err)
	}
	if command.Wait() == nil {
		t.Error("the run was not killed")
	}
}

// TestAServiceThatEndedIsStartedAgain checks that the next test finds the service running, whatever a test did to it:
// faults.test.ts leaves it killed and frozen on purpose. A service that ended by itself is reported.
func TestAServiceThatEndedIsStartedAgain(t *testing.T) {
	t.Parallel()
	k := newController(t)
	for _, verb := range []string{"down", "freeze"} {
		before := k.process
		k.do(verb)
		k.do("running")
		if status, _ := sitetest.Readiness(t, k.site.Internal); status != 200 {
			t.Errorf("after %s /ready returns %d", verb, status)
		}
		if (k.process != before) != (verb == "down") {
			t.Errorf("after %s another process runs: %t", verb, k.process != before)
		}
	}
	k.process.Kill() // not requested by a test
	k.do("running")
	if len(k.ended) != 1 {
		t.Errorf("want one report of a service that ended by itself, got %q", k.ended)
	}
	k.ended = nil
}
