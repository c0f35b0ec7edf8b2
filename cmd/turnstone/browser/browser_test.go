package browser

import (
	"fmt"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/http/oidctest"
)

// generous are limits that no test of the browser meets unless it is about them.
var generous = []string{
	"TURNSTONE_LIMIT_SIGNIN=6000/1m burst 1000", "TURNSTONE_LIMIT_WRITES=60000/1m burst 10000",
	"TURNSTONE_LIMIT_CHAT=6000/1m burst 1000", "TURNSTONE_LIMIT_READS=60000/1m burst 10000", "TURNSTONE_LIMIT_REPLAYS=60000/1m burst 10000",
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
	k := newKeeper(t, append(settings, generous...)...)
	environment := []string{
		"TURNSTONE_URL=http://" + k.site.Public, "TURNSTONE_INTERNAL=http://" + k.site.Internal,
		"TURNSTONE_CONTROL=" + k.listen(), "TURNSTONE_FOLDER=" + k.site.Folder,
	}
	run := func(only []string) results {
		tests := start(t, config, only, environment...)
		k.serve(tests.done)
		return tests.results(t)
	}
	first := run(nil)
	if names := first.failed(); secondTries.allow(len(names)) {
		first.replace(t, names, run(names))
	}
	first.tell(t)
}

// What needs neither service nor browser: folding, following, words.
func TestTheAppByItself(t *testing.T) {
	t.Parallel()
	tests := start(t, "vite.config.ts", nil)
	<-tests.done
	tests.results(t).tell(t)
}

// Of a run with both suites, at most mostAgain tests get a second try, and only in the gate.
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
	if len(notices) != 1 || notices[0] != "b passed at its second try only; the first: Error: late | at x.ts" {
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

// Whatever a test does to the service, the next one finds it running: hard-days.test.ts leaves it killed and frozen on
// purpose. That it ended by itself is told.
func TestAServiceThatEndedIsStartedAgain(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	for _, verb := range []string{"down", "freeze"} {
		before := k.process
		k.do(verb)
		k.do("running")
		if status, _ := sitetest.Readiness(t, k.site.Internal); status != 200 {
			t.Errorf("after %s /ready answers %d", verb, status)
		}
		if (k.process != before) != (verb == "down") {
			t.Errorf("after %s it is another process: %t", verb, k.process != before)
		}
	}
	k.process.Kill() // nobody asked for it
	k.do("running")
	if len(k.ended) != 1 {
		t.Errorf("it ended by itself, told: %q", k.ended)
	}
	k.ended = nil
}
