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
)

// smallDisk holds a cluster, its log and little more.
const smallDisk = "size=200m,mode=0711"

// TestAFullDiskLosesNothing: Postgres finds no room, ends with PANIC and does not come back before there is some. What
// was acknowledged is there afterwards, what was refused is not, and the live turn ends whole.
func TestAFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	folder := openFolder(t)
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, smallDisk); err != nil {
		t.Skipf("this machine gives a test no file system of its own (%v); TestAServerThatSaysThatItsDiskIsFull runs without one", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	server := ownServer(t, folder, map[string]string{"min_wal_size": "32MB", "max_wal_size": "48MB", "shared_buffers": "16MB"})
	site := sitetest.NewSiteOn(t, server)
	site.Up()
	r := newReport()
	t.Cleanup(func() { r.print(t) })
	filler := filepath.Join(folder, "filler")
	w := newRow(t, site, r, "disk", "full")
	inFlight := want{[]int{200, 503}, atDeadline}
	writers := begin(t, w.User, sitetest.Soon, func(a *sitetest.Answer) { w.check(inFlight, a) })
	sitetest.Eventually(t, "something was written", func() bool { kept, _ := writers.acknowledged(); return kept >= stormers })
	planned := w.Ledger.Plan()
	fill(t, filler)
	saved := w.crowdTheDisk()
	gone := server.Done()
	panicForRoom(t, site, gone)
	beside(func() { w.ask(refusedAtOnce, refusedAtOnce) }, func() { w.notice("persistence") })
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(sitetest.Within(t, sitetest.Patience)); err != nil {
		t.Fatal(err)
	}
	w.recover()
	planned()
	w.alive()
	writers.end()
	w.wholeTurn()
	w.settle()
	writers.hold(t, w, superuser(t, site))
	t.Logf("%d drafts were saved on the full disk before one was refused", saved)
}

// fill takes all the room there is.
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

// panicForRoom uses the log up that was made while there was room. The next piece of it cannot be made, and Postgres
// ends.
func panicForRoom(t *testing.T, site *sitetest.Site, gone <-chan struct{}) {
	t.Helper()
	ctx := sitetest.Within(t, sitetest.Patience)
	for {
		select {
		case <-gone:
			return
		case <-ctx.Done():
			t.Fatal("the server does not notice that there is no room for its log")
		default:
		}
		conn, err := pgx.Connect(ctx, superuser(t, site))
		if err != nil {
			if waited := sitetest.Pause(ctx, sitetest.PollEvery); waited != nil {
				t.Fatal(waited)
			}
			continue
		}
		_, _ = conn.Exec(ctx, `select pg_logical_emit_message(true, 'room', 'for more')`) // it may fail: that is the point
		_, _ = conn.Exec(ctx, `select pg_switch_wal()`)
		_ = conn.Close(ctx)
	}
}

// crowdTheDisk writes much until there is no room for it.
func (w *row) crowdTheDisk() (saved int) {
	body := map[string]any{"content": bulk()}
	ctx := sitetest.Within(w.t, sitetest.Patience)
	for {
		a, err := w.Ask(ctx, http.MethodPut, "/conversations/"+w.renamed+"/draft", body)
		if err != nil {
			w.t.Fatal(err)
		}
		w.check(want{[]int{200, 503}, atDeadline}, a)
		if a.Status == http.StatusServiceUnavailable {
			return saved
		}
		saved++
	}
}

// bulk is text that does not become smaller.
func bulk() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ."
	noise := make([]byte, 48<<10)
	for i := range noise {
		noise[i] = letters[rand.IntN(len(letters))]
	}
	return string(noise)
}

// TestAServerThatSaysThatItsDiskIsFull: every session is closed, and whoever comes gets the last words of such a server.
func TestAServerThatSaysThatItsDiskIsFull(t *testing.T) {
	t.Parallel()
	fullDiskByProxy(t)
}

func fullDiskByProxy(t *testing.T) {
	t.Helper()
	site := sitetest.NewSite(t)
	l := viaPostgres(t, site)
	site.Up()
	r := newReport()
	t.Cleanup(func() { r.print(t) })
	w := newRow(t, site, r, "disk", "said to be full")
	panicking := panickingServer(t)
	during(w, refusedAtOnce,
		func() error { l.aim(panicking); return nil },
		func() error { l.aim(l.target); return nil })
	w.settle()
}

// panickingServer answers whoever comes that there is no room, and goes.
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
				_ = server.Flush() // its client may be gone
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return listener.Addr().String()
}
