package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnstone/cmd/turnstone/sitetest"
	ourhttp "turnstone/http"
	"turnstone/protocol"
)

// startedTurns counts the starts that come through.
type startedTurns struct {
	ourhttp.Turns
	count int
}

func (s *startedTurns) StartTurn(context.Context, *protocol.TurnStart) (*protocol.TurnStartResult, error) {
	s.count++
	return nil, nil //nolint:nilnil // nobody looks at it
}

func TestNoTurnBeginsWhileTheDiskIsNearlyFull(t *testing.T) {
	const gib = 1 << 30
	log, lines := observer.New(zap.InfoLevel)
	found, failure, looks, now := space{}, error(nil), 0, time.Unix(0, 0)
	guard := newDiskGuard("", zap.New(log))
	guard.look = func() (space, error) { looks++; return found, failure }
	guard.now = func() time.Time { return now }
	begun := &startedTurns{}
	turns := guardedTurns{begun, guard}
	for i, c := range []struct {
		found   space
		failure error
		begins  bool
		logged  int // lines until then
	}{
		{space{5 * gib, 10 * gib}, nil, true, 0},
		{space{leastSpace, 2 * gib}, nil, true, 0},
		{space{leastSpace - 1, 2 * gib}, nil, false, 1},
		{space{0, 2 * gib}, nil, false, 1},
		{space{2 * gib, 30 * gib}, nil, false, 1}, // a tenth
		{space{3 * gib, 30 * gib}, nil, true, 2},
		{space{4 * gib, 1000 * gib}, nil, true, 2}, // ample: a laptop with a few GiB left can be used
		{space{}, errors.New("no such folder"), false, 3},
		{space{5 * gib, 10 * gib}, nil, true, 4},
	} {
		found, failure, begun.count = c.found, c.failure, 0
		now = now.Add(diskLookFor)
		before := looks
		for range 3 { // within the second nobody looks again
			_, err := turns.StartTurn(t.Context(), nil)
			if c.begins != (err == nil) || !c.begins && protocol.CodeOf(err) != protocol.CodeUnavailable {
				t.Errorf("%d: answered %v", i, err)
			}
			if ready := guard.probe(t.Context()); c.begins != (ready == nil) {
				t.Errorf("%d: the probe says %v", i, ready)
			}
		}
		if looks != before+1 || c.begins != (begun.count == 3) || !c.begins && begun.count != 0 {
			t.Errorf("%d: looked %d times, began %d turns", i, looks-before, begun.count)
		}
		if lines.Len() != c.logged {
			t.Errorf("%d: %d lines in the log, want %d: %v", i, lines.Len(), c.logged, lines.All())
		}
	}
}

// A disk that gets full and has room again, without a file written: its file system shrinks and grows.
func TestAPrivateInstallationOutlivesADiskThatIsNearlyFull(t *testing.T) {
	const roomy, tight = "size=4g,mode=0711", "size=900m,mode=0711"
	d := sitetest.NewDevelopment(t)
	disk := filepath.Dir(d.Folder)
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, roomy); err != nil {
		t.Skipf("this machine gives a test no file system of its own (%v); what the guard decides is tested without one", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	resize := func(size string) {
		t.Helper()
		if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, size); err != nil {
			t.Fatal(err)
		}
	}
	p := d.Up(t)
	c := newClient(t, "http://"+d.Public)
	if status := c.signIn(demoEmail, passwordOf(p)); status != http.StatusOK {
		t.Fatalf("sign-in: %d", status)
	}
	live, stream := c.chat("[[script tokens=100000 ttft=10ms interval=50ms]]")
	awaitEvent(t, stream, "answer.delta")
	wantDisk(t, d, http.StatusOK, "ok", "0")
	doctored := func() string {
		_, told, _ := sitetest.Finish(t, d.Environment, "doctor")
		return told
	}

	resize(tight)
	sitetest.Eventually(t, "the guard notices", func() bool { status, _ := sitetest.Readiness(t, d.Internal); return status != http.StatusOK })
	wantDisk(t, d, http.StatusServiceUnavailable, "down", "1")
	if told := doctored(); !strings.Contains(told, "WRONG space on the disk") || !strings.Contains(told, "begins no turn") {
		t.Errorf("the doctor says:\n%s", told)
	}
	over := c.ledger.Plan()
	refused := c.send(http.MethodPost, "/chat", map[string]any{"input": []map[string]string{{"type": "text", "text": "one more"}}})
	text, _ := io.ReadAll(refused.Body) // it is held against what is wanted
	_ = refused.Body.Close()
	over()
	if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") != "30" ||
		!strings.Contains(string(text), `"code":"unavailable"`) || !strings.Contains(string(text), "disk") {
		t.Errorf("a start on a full disk: %s %s", refused.Status, text)
	}
	var conversations protocol.List[protocol.Conversation]
	c.json(c.send(http.MethodGet, "/conversations", nil), http.StatusOK, &conversations)
	if len(conversations.Data) != 2 { // the demonstration and the live one
		t.Errorf("%d conversations", len(conversations.Data))
	}
	awaitEvent(t, stream, "answer.delta") // what lives goes on
	c.json(c.send(http.MethodPost, "/chat/steering", sitetest.Cancelling(live)), http.StatusAccepted, &struct{}{})
	awaitEvent(t, stream, "turn.finished")

	resize(roomy)
	sitetest.Eventually(t, "there is room again", func() bool { status, _ := sitetest.Readiness(t, d.Internal); return status == http.StatusOK })
	wantDisk(t, d, http.StatusOK, "ok", "0")
	_, after := c.chat("Hello again.")
	awaitEvent(t, after, "turn.finished")
	if n := strings.Count(p.Complaints(), "\tdisk\t"); n != 1 {
		t.Errorf("it was logged %d times:\n%s", n, p.Complaints())
	}
}

// wantDisk holds what operators are shown of the disk.
func wantDisk(t *testing.T, d *sitetest.Development, status int, check, full string) {
	t.Helper()
	if got, checks := sitetest.Readiness(t, d.Internal); got != status || checks["disk"] != check {
		t.Errorf("ready: %d %v, want %d and the disk %s", got, checks, status, check)
	}
	_, metrics, err := sitetest.Fetch(t, http.MethodGet, "http://"+d.Internal+"/metrics", "")
	if err != nil || !strings.Contains(metrics, "turnstone_disk_full "+full) || !strings.Contains(metrics, "turnstone_disk_free_bytes ") {
		t.Errorf("metrics do not show that the disk is full: %s (%v)", full, err)
	}
}
