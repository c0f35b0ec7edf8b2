package faults

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol/clocktest"
)

// smallDisk has space for a cluster, its log and little more.
const smallDisk = "size=200m,mode=0711"

// TestAFullDiskLosesNothing fills the disk. Postgres ends with PANIC and cannot start again until there is free space.
// Afterwards every acknowledged write is stored, no refused one is, and the live turn ends complete.
func TestAFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	folder := openFolder(t)
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, smallDisk); err != nil {
		t.Skipf("this host computer does not allow a test to mount a file system (%v); TestAPostgresThatReportsAFullDiskCausesRefusals does not need one", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	server := ownServer(t, folder, map[string]string{"min_wal_size": "32MB", "max_wal_size": "48MB", "shared_buffers": "16MB"})
	site := sitetest.NewSiteOn(t, server)
	site.Start()
	r := newReport()
	t.Cleanup(func() { r.print(t) })
	filler := filepath.Join(folder, "filler")
	w := newRow(t, site, r, "disk", "full")
	writers := startWriters(t, w.User, sitetest.HangGuard, func(a *sitetest.Response) { w.check(mixed, a) })
	sitetest.Eventually(t, "something was written", func() bool { n, _ := writers.acknowledged(); return n >= stormWriters })
	planned := w.Ledger.Plan()
	fill(t, filler)
	saved := w.fillWithDrafts()
	ended := server.Done()
	exhaustLog(t, site, ended)
	runConcurrently(func() { w.sendAll(refuses, refuses) }, func() { w.awaitDown("persistence") })
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(sitetest.Within(t, sitetest.HangGuard)); err != nil {
		t.Fatal(err)
	}
	w.recover()
	planned()
	w.wantNoRefusals()
	writers.end()
	w.wholeTurn()
	w.checkWrites()
	writers.checkStored(t, w, superuser(t, site))
	t.Logf("%d drafts were saved on the full disk before one was refused", saved)
}

// fill uses up the free space.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	block := make([]byte, 1<<16)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, io.ErrShortWrite) {
		t.Fatal(err)
	}
}

// exhaustLog uses up the log segments that were allocated while there was space. Postgres cannot allocate the next
// one and ends.
func exhaustLog(t *testing.T, site *sitetest.Site, ended <-chan struct{}) {
	t.Helper()
	ctx := sitetest.Within(t, sitetest.HangGuard)
	waited := clocktest.Poll(ctx, sitetest.PollEvery, func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		if conn, err := pgx.Connect(ctx, superuser(t, site)); err == nil {
			_, _ = conn.Exec(ctx, `select pg_logical_emit_message(true, 'room', 'for more')`) // it is expected to fail at some point
			_, _ = conn.Exec(ctx, `select pg_switch_wal()`)
			_ = conn.Close(ctx)
		}
		return false
	})
	if waited != nil {
		t.Fatal("the server did not end although it has no space for its log")
	}
}

// fillWithDrafts writes large drafts until one is refused. It returns the number of saved drafts.
func (w *row) fillWithDrafts() (saved int) {
	body := map[string]any{"content": bulk()}
	ctx := sitetest.Within(w.t, sitetest.HangGuard)
	for {
		a, err := w.Request(ctx, http.MethodPut, "/conversations/"+w.renamed+"/draft", body)
		if err != nil {
			w.t.Fatal(err)
		}
		w.check(mixed, a)
		if a.Status == http.StatusServiceUnavailable {
			return saved
		}
		saved++
	}
}

// bulk returns text that does not compress.
func bulk() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ."
	noise := make([]byte, 48<<10)
	for i := range noise {
		noise[i] = letters[rand.IntN(len(letters))]
	}
	return string(noise)
}

// TestAPostgresThatReportsAFullDiskCausesRefusals closes every session and replaces the server by one that responds to
// every connection as Postgres does when its disk is full.
func TestAPostgresThatReportsAFullDiskCausesRefusals(t *testing.T) {
	t.Parallel()
	fullDiskByProxy(t)
}

func fullDiskByProxy(t *testing.T) {
	t.Helper()
	site := sitetest.NewSite(t)
	l := viaPostgres(t, site)
	site.Start()
	r := newReport()
	t.Cleanup(func() { r.print(t) })
	w := newRow(t, site, r, "disk", "reported as full")
	panicking := panickingServer(t)
	during(w, refuses,
		func() error { l.redirect(panicking); return nil },
		func() error { l.redirect(l.target); return nil })
	w.checkWrites()
}

// panickingServer starts a server that responds to every connection with the error of a full disk and closes it. It
// returns its address.
func panickingServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				server := pgproto3.NewBackend(conn, conn)
				if _, err := server.ReceiveStartupMessage(); err != nil {
					return
				}
				server.Send(&pgproto3.ErrorResponse{
					Severity: "PANIC", SeverityUnlocalized: "PANIC", Code: "53100", Message: "could not write to file: No space left on device",
				})
				_ = server.Flush() // the client may be gone
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return listener.Addr().String()
}
