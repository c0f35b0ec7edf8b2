package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnstone/cmd/turnstone/dev"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// serversOf counts the processes of the private servers of a data folder.
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
	t.Parallel()
	d := sitetest.NewDevelopment(t)
	p := d.Start(t)
	password := passwordOf(p)
	u := sitetest.NewGuest(t, "http://"+d.Public)
	if status := u.SignIn(t, dev.DemoEmail, "not "+password); status != http.StatusUnauthorized {
		t.Errorf("a wrong password: %d", status)
	}
	if status := u.SignIn(t, dev.DemoEmail, password); status != http.StatusOK {
		t.Fatalf("the printed sign-in: %d", status)
	}
	answer, _ := u.Chat(t, sitetest.NewChatBody("Hello! What can you do?")).ReadToEnd(t)
	if answer[0].Type != "turn.started" || sitetest.CountKind(answer, "answer.delta") == 0 {
		t.Errorf("the answer has %d events, the first is %s", len(answer), answer[0].Type)
	}

	var ready struct {
		Status string
		Checks map[string]string
	}
	u.Get(t, "/ready", &ready)
	for _, name := range []string{"persistence", "cache", "object_storage", "malware_scanning", "model_access"} {
		if ready.Checks[name] != "ok" && ready.Checks[name] != "slow" { // it responds; how fast depends on the host computer
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
	if !strings.Contains(p.Stdout(), "Turnstone has stopped.") || p.Stderr() != "" {
		t.Errorf("stdout %q, stderr %q", p.Stdout(), p.Stderr())
	}
	if left := serversOf(t, d.Folder); left != 0 {
		t.Errorf("%d processes of private servers are left", left)
	}

	again := d.Start(t)
	if passwordOf(again) != password {
		t.Error("the second start has another password")
	}
	signIn(t, "http://"+d.Public, dev.DemoEmail, password)
}

// TestATurnGoesOnAfterKillNineAndARestart checks that the events from before kill -9 are still there after it, and that
// the turn continues at once and ends.
func TestATurnGoesOnAfterKillNineAndARestart(t *testing.T) {
	t.Parallel()
	d := sitetest.NewDevelopment(t)
	p := d.Start(t)
	u := signInToDemo(t, d, p)
	stream := u.Chat(t, sitetest.NewChatBody("[[script tokens=60 ttft=10ms interval=30ms]]"))
	stream.AwaitKind(t, "answer.delta")
	turn := stream.Turn
	p.Kill()

	d.Start(t)
	resumed, refused, err := u.Follow(sitetest.Within(t, sitetest.HangGuard), turn, 0, "")
	if err != nil || refused != nil {
		t.Fatalf("resuming: %v %+v", err, refused)
	}
	defer resumed.Close()
	code, events, stderr := sitetest.Finish(t, d.Environment, "turn", "events", turn, "--follow")
	if code != 0 {
		t.Fatalf("turn events: %d %s", code, stderr)
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
	t.Parallel()
	d := sitetest.NewDevelopment(t)
	p := d.Start(t)
	stream := signInToDemo(t, d, p).Chat(t, sitetest.NewChatBody("[[script tokens=100000 ttft=10ms interval=50ms]]"))
	stream.AwaitKind(t, "answer.delta")
	turn := stream.Turn
	var shown struct {
		TurnID string `json:"turn_id"`
		State  string
		Node   string
	}
	code, text, stderr := sitetest.Finish(t, d.Environment, "turn", "show", turn)
	if code != 0 || json.Unmarshal([]byte(text), &shown) != nil || shown.TurnID != turn || shown.State != "running" || shown.Node == "" {
		t.Fatalf("turn show: %d %q %q", code, text, stderr)
	}
	if code, _, stderr := sitetest.Finish(t, d.Environment, "turn", "cancel", turn); code != 0 {
		t.Fatalf("turn cancel: %d %s", code, stderr)
	}
	stream.AwaitKind(t, "turn.cancel_requested")
	stream.AwaitKind(t, "turn.finished")
	for _, arguments := range [][]string{{"turn", "cancel", turn}, {"turn", "show", "turn_nothing"}} {
		if code, _, stderr := sitetest.Finish(t, d.Environment, arguments...); code != 1 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: %d %q", arguments, code, stderr)
		}
	}
}

func TestOperatorsMakeAndChangeAccountsWhileTheServiceRuns(t *testing.T) {
	t.Parallel()
	d := sitetest.NewDevelopment(t)
	d.Start(t)
	guest := func() *sitetest.User { return sitetest.NewGuest(t, "http://"+d.Public) }
	const email = "ada@example.org"
	run := func(want int, arguments ...string) string {
		t.Helper()
		code, text, stderr := sitetest.Finish(t, d.Environment, append([]string{"user"}, arguments...)...)
		if code != want || want != 0 && strings.Count(stderr, "\n") != 1 {
			t.Fatalf("user %v: %d %q %q", arguments, code, text, stderr)
		}
		return lastWord(text)
	}
	first := run(0, "add", email, "--name", "Ada")
	u := signIn(t, "http://"+d.Public, email, first)
	run(1, "add", email)
	second := run(0, "password", email)
	if status := guest().SignIn(t, email, first); status != http.StatusUnauthorized {
		t.Errorf("the old password: %d", status)
	}
	if status := guest().SignIn(t, email, second); status != http.StatusOK {
		t.Errorf("the new password: %d", status)
	}
	run(0, "disable", email)
	if status := guest().SignIn(t, email, second); status == http.StatusOK {
		t.Error("a disabled account signs in")
	}
	u.Do(t, http.MethodGet, "/conversations", nil).WantProblem(t, http.StatusUnauthorized, protocol.CodeUnauthenticated)
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

// TestABadStartIsOneLineAndExitCodeOne checks that each error at startup causes exit code 1 and a last line on stderr
// that names the cause.
func TestABadStartIsOneLineAndExitCodeOne(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unused := sitetest.FreeAddress(t)
	dev := sitetest.NewDevelopment(t).Environment
	serve := slices.Clip(append(sitetest.NewDevelopment(t).Environment, "TURNSTONE_SECRET=vG3x0fQ9l2Zt7bYc5RkMw8aJpH4nUeSd"))
	for _, c := range []struct {
		command     string
		environment []string
		want        string
	}{
		{"dev", append(dev, "TURNSTONE_LISTEN="+taken.Addr().String()), "in use"},
		{"dev", append(dev, "TURNSTONE_INTERNAL_LISTEN="+taken.Addr().String()), "in use"},
		{"dev", append(dev, "TURNSTONE_DATA_DIR="+file), "TURNSTONE_DATA_DIR"},
		{"dev", append(dev, "TURNSTONE_DRAIN_GRACE=soon"), "TURNSTONE_DRAIN_GRACE"},
		{"serve", append(serve, "REDIS_URL=redis://"+unused), "DATABASE_URL"},
		{"serve", append(serve, "REDIS_URL=redis://"+unused, "DATABASE_URL=http://"+unused), "DATABASE_URL"},
		{"serve", append(serve, "REDIS_URL=redis://"+unused, "DATABASE_URL=postgres://u@"+unused+"/d"), "Postgres"},
	} {
		began := time.Now()
		code, _, stderr := sitetest.Finish(t, c.environment, c.command)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		last := lines[len(lines)-1]
		if code != 1 || !strings.HasPrefix(last, "turnstone: ") || !strings.Contains(last, c.want) {
			t.Errorf("%s %v: exit code %d after %s: %s", c.command, c.environment, code, time.Since(began), stderr)
		}
	}
}

func TestTwoProcessesDoNotShareADataFolder(t *testing.T) {
	t.Parallel()
	d := sitetest.NewDevelopment(t)
	d.Start(t)
	second := *d
	second.Environment = append(d.Environment, "TURNSTONE_LISTEN="+sitetest.FreeAddress(t), "TURNSTONE_INTERNAL_LISTEN="+sitetest.FreeAddress(t))
	if code, _, stderr := sitetest.Finish(t, second.Environment, "dev"); code != 1 || !strings.Contains(stderr, "another turnstone") {
		t.Errorf("%d %q", code, stderr)
	}
}

func TestTheProgramPrintsTheDocumentsThatArePublished(t *testing.T) {
	t.Parallel()
	for path, arguments := range map[string][]string{
		"../../protocol/openapi.json":       {"openapi"},
		"../../protocol/events.schema.json": {"openapi", "--events"},
	} {
		published, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if code, stdout, stderr := sitetest.Finish(t, nil, arguments...); code != 0 || stdout != string(published) {
			t.Errorf("the output of %v differs from %s: run make generate (%d %s)", arguments, path, code, stderr)
		}
	}
}

// TestDevSeedsADemonstrationConversation checks that the demonstration conversation shows a steered answer, a tool and
// code.
func TestDevServesTheDocumentation(t *testing.T) {
	t.Parallel()
	address := sitetest.FreeAddress(t)
	p := sitetest.NewDevelopment(t, "TURNSTONE_DOCS_LISTEN="+address).Start(t)
	p.AwaitStdout("http://" + address)
	for path, text := range map[string]string{
		"/": "Configuration", "/configuration": "TURNSTONE_DOCS_LISTEN", "/deprecations": "There are no deprecations", "/openapi.json": "/conversations", "/events.schema.json": "turn.started",
	} {
		resp, err := (&http.Client{Timeout: time.Minute}).Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.Body.Close() != nil || resp.StatusCode != 200 || !strings.Contains(string(body), text) {
			t.Errorf("%s: %d %v %s", path, resp.StatusCode, err, body)
		}
	}
}

func TestDevSeedsADemonstrationConversation(t *testing.T) {
	t.Parallel()
	d := sitetest.NewDevelopment(t, "TURNSTONE_LIMIT_READS=60000/1m burst 10000") // the test polls
	p := d.Start(t)
	u := signInToDemo(t, d, p)
	var list struct {
		Data []struct {
			ConversationID string `json:"conversation_id"`
			Title          string
		}
	}
	u.Get(t, "/conversations", &list)
	if len(list.Data) != 1 || list.Data[0].Title != dev.DemoTitle {
		t.Fatalf("the seeded account has the conversations %+v", list.Data)
	}
	var page struct {
		Data []struct {
			Role, Status string
			Parts        []struct{ Type, Kind string }
		}
	}
	sitetest.Eventually(t, "every prompt is answered", func() bool {
		u.Get(t, "/conversations/"+list.Data[0].ConversationID+"/messages", &page)
		answered := 0
		for _, m := range page.Data {
			if m.Role == "assistant" && m.Status == "complete" {
				answered++
			}
		}
		return answered == len(dev.DemoPrompts)
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
