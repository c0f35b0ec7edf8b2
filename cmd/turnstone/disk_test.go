package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// TestDevRefusesNewTurnsWhileTheDiskIsNearlyFull makes the disk nearly full, and then frees it again, by resizing its
// file system. It writes no large file.
func TestDevRefusesNewTurnsWhileTheDiskIsNearlyFull(t *testing.T) {
	t.Parallel()
	const roomy, tight = "size=4g,mode=0711", "size=900m,mode=0711"
	d := sitetest.NewDevelopment(t)
	mounted := filepath.Dir(d.Folder)
	if err := syscall.Mount("tmpfs", mounted, "tmpfs", 0, roomy); err != nil {
		t.Skipf("this host computer does not allow a test to mount a file system (%v); another test covers the decisions of the guard", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mounted, syscall.MNT_DETACH) })
	resize := func(size string) {
		t.Helper()
		if err := syscall.Mount("tmpfs", mounted, "tmpfs", syscall.MS_REMOUNT, size); err != nil {
			t.Fatal(err)
		}
	}
	p := d.Start(t)
	u := signInToDemo(t, d, p)
	live := u.Chat(t, sitetest.NewChatBody("[[script tokens=100000 ttft=10ms interval=50ms]]"))
	live.AwaitKind(t, "answer.delta")
	wantDisk(t, d, http.StatusOK, "ok", "0")
	runDoctor := func() string {
		_, printed, _ := sitetest.Finish(t, d.Environment, "doctor")
		return printed
	}

	resize(tight)
	sitetest.Eventually(t, "/ready reports the full disk", func() bool { status, _ := sitetest.Readiness(t, d.Internal); return status != http.StatusOK })
	wantDisk(t, d, http.StatusServiceUnavailable, "down", "1")
	if printed := runDoctor(); !strings.Contains(printed, "WRONG space on the disk") || !strings.Contains(printed, "starts no turns") {
		t.Errorf("doctor printed:\n%s", printed)
	}
	over := u.Ledger.Plan()
	refused := u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("one more")).WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	if refused.RetryAfter != 30*time.Second || !strings.Contains(refused.Detail, "disk") {
		t.Errorf("a start on a full disk: %v, retry after %s", refused, refused.RetryAfter)
	}
	file := map[string]any{"filename": "a.txt", "media_type": "text/plain", "size": 1, "purpose": "library"}
	refused = u.Do(t, http.MethodPost, "/files/uploads", file).WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	importing := u.Do(t, http.MethodPost, "/account/imports", json.RawMessage(`[{"uuid":"1","name":"Tides","chat_messages":[]}]`)).
		WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	over()
	if !strings.Contains(importing.Detail, "New files are refused") {
		t.Errorf("an import on a full disk: %v", importing)
	}
	if refused.RetryAfter != 30*time.Second || !strings.Contains(refused.Detail, "New files are refused") {
		t.Errorf("a file on a full disk: %v, retry after %s", refused, refused.RetryAfter)
	}
	var conversations protocol.List[protocol.Conversation]
	u.Get(t, "/conversations", &conversations)
	if len(conversations.Data) != 2 { // the demonstration and the one of the live turn
		t.Errorf("%d conversations", len(conversations.Data))
	}
	live.AwaitKind(t, "answer.delta") // live turns continue
	u.Cancel(t, live)

	resize(roomy)
	sitetest.Eventually(t, "the service is ready again", func() bool { status, _ := sitetest.Readiness(t, d.Internal); return status == http.StatusOK })
	wantDisk(t, d, http.StatusOK, "ok", "0")
	u.Chat(t, sitetest.NewChatBody("Hello again.")).ReadToEnd(t)
	u.Do(t, http.MethodPost, "/files/uploads", file).Want(t, http.StatusCreated, nil)
	for _, what := range []string{"new turns", "new files"} {
		if n := strings.Count(p.Stderr(), "\tdisk\tthe disk is nearly full: "+what+" are refused"); n != 1 {
			t.Errorf("the log has %d lines about %s, want 1:\n%s", n, what, p.Stderr())
		}
	}
}

// wantDisk checks what /ready and /metrics report about the disk.
func wantDisk(t *testing.T, d *sitetest.DevInstallation, status int, check, full string) {
	t.Helper()
	if got, checks := sitetest.Readiness(t, d.Internal); got != status || checks["disk"] != check {
		t.Errorf("ready: %d %v, want %d and the disk %s", got, checks, status, check)
	}
	_, metrics, err := sitetest.Fetch(t, http.MethodGet, "http://"+d.Internal+"/metrics", "")
	if err != nil || !strings.Contains(metrics, "turnstone_disk_full "+full) || !strings.Contains(metrics, "turnstone_disk_free_bytes ") {
		t.Errorf("want turnstone_disk_full %s and turnstone_disk_free_bytes in the metrics (%v)", full, err)
	}
}
