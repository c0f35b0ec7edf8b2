package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
)

// serversOf counts the private servers' processes of a data folder.
func serversOf(t *testing.T, folder string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, entry := range entries {
		cwd, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		if err == nil && strings.HasPrefix(cwd, folder) {
			count++
		}
	}
	return count
}

func TestDevLeadsToAStreamedAnswerAndCtrlCStopsAllOfIt(t *testing.T) {
	d := sitetest.NewDevelopment(t)
	p := d.Up(t)
	password := passwordOf(p)
	c := newClient(t, "http://"+d.Public)
	if status := c.signIn(demoEmail, "not "+password); status != http.StatusUnauthorized {
		t.Errorf("a wrong password: %d", status)
	}
	if status := c.signIn(demoEmail, password); status != http.StatusOK {
		t.Fatalf("the printed sign-in: %d", status)
	}
	_, stream := c.chat("Hello! What can you do?")
	awaitEvent(t, stream, "turn.started")
	awaitEvent(t, stream, "answer.delta")
	awaitEvent(t, stream, "turn.finished")

	var ready struct {
		Status string
		Checks map[string]string
	}
	c.json(c.send(http.MethodGet, "/ready", nil), http.StatusOK, &ready)
	for _, name := range []string{"persistence", "cache", "object_storage", "malware_scanning", "model_access"} {
		if ready.Checks[name] != "ok" && ready.Checks[name] != "slow" { // it answers; when, is the machine's business
			t.Errorf("%s is %q", name, ready.Checks[name])
		}
	}
	if serversOf(t, d.Folder) == 0 {
		t.Error("no private servers run in the data folder")
	}

	p.Signal(syscall.SIGINT)
	if code := p.Exit(); code != 0 {
		t.Errorf("Ctrl-C: exit code %d", code)
	}
	if !strings.Contains(p.Printed(), "Turnstone has stopped.") || p.Complaints() != "" {
		t.Errorf("it says %q and complains %q", p.Printed(), p.Complaints())
	}
	if left := serversOf(t, d.Folder); left != 0 {
		t.Errorf("%d processes of private servers are left", left)
	}

	again := d.Up(t)
	if passwordOf(again) != password {
		t.Error("the second start has another password")
	}
	if status := newClient(t, "http://"+d.Public).signIn(demoEmail, password); status != http.StatusOK {
		t.Errorf("the sign-in after a restart: %d", status)
	}
}

// What was seen before kill -9 is there after it, the turn goes on at once, and its end comes.
func TestATurnGoesOnAfterKillNineAndARestart(t *testing.T) {
	d := sitetest.NewDevelopment(t)
	p := d.Up(t)
	password := passwordOf(p)
	c := newClient(t, "http://"+d.Public)
	if status := c.signIn(demoEmail, password); status != http.StatusOK {
		t.Fatalf("sign-in: %d", status)
	}
	turn, stream := c.chat("[[script tokens=60 ttft=10ms interval=30ms]]")
	awaitEvent(t, stream, "answer.delta")
	p.Kill()

	d.Up(t)
	response := c.send(http.MethodGet, "/chat/turns/"+turn+"/events", nil)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("resuming: %s", response.Status)
	}
	code, events, complaint := sitetest.Finish(t, d.Environment, "turn", "events", turn, "--follow")
	if code != 0 {
		t.Fatalf("turn events: %d %s", code, complaint)
	}
	lines := strings.Split(strings.TrimSpace(events), "\n")
	for i, line := range lines {
		var event struct {
			Sequence int
			Type     string
			Status   string
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if event.Sequence != i+1 {
			t.Fatalf("event %d has sequence %d", i+1, event.Sequence)
		}
		if last := i == len(lines)-1; last != (event.Type == "turn.finished") || last && event.Status != "completed" {
			t.Errorf("event %d of %d is %s %s", i+1, len(lines), event.Type, event.Status)
		}
	}
}

func TestOperatorsSeeAndCancelATurn(t *testing.T) {
	d := sitetest.NewDevelopment(t)
	p := d.Up(t)
	c := newClient(t, "http://"+d.Public)
	if status := c.signIn(demoEmail, passwordOf(p)); status != http.StatusOK {
		t.Fatalf("sign-in: %d", status)
	}
	turn, stream := c.chat("[[script tokens=100000 ttft=10ms interval=50ms]]")
	awaitEvent(t, stream, "answer.delta")
	var shown struct {
		TurnID string `json:"turn_id"`
		State  string
		Node   string
	}
	code, text, complaint := sitetest.Finish(t, d.Environment, "turn", "show", turn)
	if code != 0 || json.Unmarshal([]byte(text), &shown) != nil || shown.TurnID != turn || shown.State != "running" || shown.Node == "" {
		t.Fatalf("turn show: %d %q %q", code, text, complaint)
	}
	if code, _, complaint := sitetest.Finish(t, d.Environment, "turn", "cancel", turn); code != 0 {
		t.Fatalf("turn cancel: %d %s", code, complaint)
	}
	awaitEvent(t, stream, "turn.cancel_requested")
	awaitEvent(t, stream, "turn.finished")
	for _, arguments := range [][]string{{"turn", "cancel", turn}, {"turn", "show", "turn_nothing"}} {
		if code, _, complaint := sitetest.Finish(t, d.Environment, arguments...); code != 1 || strings.Count(complaint, "\n") != 1 {
			t.Errorf("%v: %d %q", arguments, code, complaint)
		}
	}
}

func TestOperatorsMakeAndChangeAccountsWhileTheServiceRuns(t *testing.T) {
	d := sitetest.NewDevelopment(t)
	d.Up(t)
	c := newClient(t, "http://"+d.Public)
	const email = "ada@example.org"
	run := func(want int, arguments ...string) string {
		t.Helper()
		code, text, complaint := sitetest.Finish(t, d.Environment, append([]string{"user"}, arguments...)...)
		if code != want || want != 0 && strings.Count(complaint, "\n") != 1 {
			t.Fatalf("user %v: %d %q %q", arguments, code, text, complaint)
		}
		return lastWord(text)
	}
	first := run(0, "add", email, "--name", "Ada")
	if status := c.signIn(email, first); status != http.StatusOK {
		t.Errorf("the new account: %d", status)
	}
	run(1, "add", email)
	second := run(0, "password", email)
	if status := newClient(t, c.base).signIn(email, first); status != http.StatusUnauthorized {
		t.Errorf("the old password: %d", status)
	}
	if status := newClient(t, c.base).signIn(email, second); status != http.StatusOK {
		t.Errorf("the new password: %d", status)
	}
	run(0, "disable", email)
	if status := newClient(t, c.base).signIn(email, second); status == http.StatusOK {
		t.Error("a disabled account signs in")
	}
	response := c.send(http.MethodGet, "/conversations", nil)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session of a disabled account: %s", response.Status)
	}
	run(1, "disable", "nobody@example.org")
	run(1, "add", "no address")
}

func lastWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// Whatever is wrong at the start is one line and exit code 1, soon.
func TestABadStartIsOneLineAndExitCodeOne(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := sitetest.FreeAddress(t)
	dev := sitetest.NewDevelopment(t).Environment
	serve := slices.Clip(append(sitetest.NewDevelopment(t).Environment, "TURNSTONE_SECRET="+goodSecret))
	for _, c := range []struct {
		command     string
		environment []string
		want        string
	}{
		{"dev", append(dev, "TURNSTONE_LISTEN="+taken.Addr().String()), "in use"},
		{"dev", append(dev, "TURNSTONE_INTERNAL_LISTEN="+taken.Addr().String()), "in use"},
		{"dev", append(dev, "TURNSTONE_DATA_DIR="+file), "TURNSTONE_DATA_DIR"},
		{"dev", append(dev, "TURNSTONE_DRAIN_GRACE=soon"), "TURNSTONE_DRAIN_GRACE"},
		{"serve", append(serve, "REDIS_URL=redis://"+gone), "DATABASE_URL"},
		{"serve", append(serve, "REDIS_URL=redis://"+gone, "DATABASE_URL=http://"+gone), "DATABASE_URL"},
		{"serve", append(serve, "REDIS_URL=redis://"+gone, "DATABASE_URL=postgres://u@"+gone+"/d"), "Postgres"},
	} {
		began := time.Now()
		code, _, complaint := sitetest.Finish(t, c.environment, c.command)
		lines := strings.Split(strings.TrimSpace(complaint), "\n")
		last := lines[len(lines)-1]
		if code != 1 || !strings.HasPrefix(last, "turnstone: ") || !strings.Contains(last, c.want) {
			t.Errorf("%s %v: exit code %d after %s: %s", c.command, c.environment, code, time.Since(began), complaint)
		}
	}
}

func TestTwoProcessesDoNotShareADataFolder(t *testing.T) {
	d := sitetest.NewDevelopment(t)
	d.Up(t)
	second := *d
	second.Environment = append(d.Environment, "TURNSTONE_LISTEN="+sitetest.FreeAddress(t), "TURNSTONE_INTERNAL_LISTEN="+sitetest.FreeAddress(t))
	if code, _, complaint := sitetest.Finish(t, second.Environment, "dev"); code != 1 || !strings.Contains(complaint, "another turnstone") {
		t.Errorf("%d %q", code, complaint)
	}
}

func TestTheProgramPrintsTheDocumentsThatArePublished(t *testing.T) {
	for path, arguments := range map[string][]string{
		"../../protocol/openapi.json":       {"openapi"},
		"../../protocol/events.schema.json": {"openapi", "--events"},
	} {
		published, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if code, printed, complaint := sitetest.Finish(t, nil, arguments...); code != 0 || printed != string(published) {
			t.Errorf("%v is not %s: run make generate (%d %s)", arguments, path, code, complaint)
		}
	}
}

// A newcomer finds a conversation in which a steered answer, a tool and code can be seen.
func TestAFirstLookHasSomethingToLookAt(t *testing.T) {
	d := sitetest.NewDevelopment(t, "TURNSTONE_LIMIT_READS=60000/1m burst 10000") // it asks again and again
	p := d.Up(t)
	c := newClient(t, "http://"+d.Public)
	if status := c.signIn(demoEmail, passwordOf(p)); status != http.StatusOK {
		t.Fatalf("sign-in: %d", status)
	}
	var list struct {
		Data []struct {
			ConversationID string `json:"conversation_id"`
			Title          string
		}
	}
	c.json(c.send(http.MethodGet, "/conversations", nil), http.StatusOK, &list)
	if len(list.Data) != 1 || list.Data[0].Title != demoTitle {
		t.Fatalf("a first look has %+v", list.Data)
	}
	var page struct {
		Data []struct {
			Role, Status string
			Parts        []struct{ Type, Kind string }
		}
	}
	sitetest.Eventually(t, "every prompt is answered", func() bool {
		c.json(c.send(http.MethodGet, "/conversations/"+list.Data[0].ConversationID+"/messages", nil), http.StatusOK, &page)
		answered := 0
		for _, m := range page.Data {
			if m.Role == "assistant" && m.Status == "complete" {
				answered++
			}
		}
		return answered == len(demoPrompts)
	})
	seen := map[string]bool{}
	for _, m := range page.Data {
		for _, part := range m.Parts {
			seen[part.Type+" "+part.Kind] = true
		}
	}
	for _, want := range []string{"tool compute", "code ", "notice steering", "text ", "reasoning_summary "} {
		if !seen[want] {
			t.Errorf("the demonstration shows no %s: %v", want, seen)
		}
	}
}
