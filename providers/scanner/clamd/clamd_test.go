package clamd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/protocol"
	"turnstone/providers/scanner/scannertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// daemon is a server that speaks clamd's protocol. With the zero values of its fields it behaves correctly.
type daemon struct {
	t        *testing.T
	listener net.Listener

	// Set before it serves.
	verdict   string // the reply, instead of one that depends on the content
	version   string
	pong      string
	streamMax int64
	hang      bool // reads the command and sends no reply

	newest atomic.Value // replaces version
	scans  atomic.Int64
}

func serve(t *testing.T, d *daemon, network, address string) *Scanner {
	t.Helper()
	var err error
	d.t = t
	if d.listener, err = net.Listen(network, address); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			connection, err := d.listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer func() { _ = connection.Close() }()
				d.respond(connection)
			})
		}
	})
	t.Cleanup(func() {
		_ = d.listener.Close()
		group.Wait()
	})
	s, err := New(d.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serveTCP(t *testing.T, d *daemon) *Scanner { return serve(t, d, "tcp", "127.0.0.1:0") }

func (d *daemon) respond(connection net.Conn) {
	reader := bufio.NewReader(connection)
	command, err := reader.ReadString(0)
	if err != nil {
		return
	}
	if d.hang {
		_, _ = io.Copy(io.Discard, reader) // until the client disconnects
		return
	}
	reply := ""
	switch command {
	case "zPING\x00":
		reply = or(d.pong, "PONG")
	case "zVERSION\x00":
		reply = or(d.currentVersion(), "ClamAV 1.4.6/27800/"+time.Now().Format(databaseDate))
	case "zINSTREAM\x00":
		if reply = d.scan(reader); reply == "" {
			return
		}
	default:
		reply = "UNKNOWN COMMAND"
	}
	_, _ = fmt.Fprintf(connection, "%s\x00", reply) // an error means that the client has disconnected
}

func (d *daemon) currentVersion() string {
	if newest, set := d.newest.Load().(string); set {
		return newest
	}
	return d.version
}

func (d *daemon) scan(reader io.Reader) string {
	d.scans.Add(1)
	var body bytes.Buffer
	for {
		var size uint32
		if err := binary.Read(reader, binary.BigEndian, &size); err != nil {
			return ""
		}
		if size == 0 {
			break
		}
		if d.streamMax > 0 && int64(body.Len())+int64(size) > d.streamMax {
			return "INSTREAM size limit exceeded. ERROR"
		}
		if _, err := io.CopyN(&body, reader, int64(size)); err != nil {
			return ""
		}
	}
	if d.verdict != "" {
		return d.verdict
	}
	if bytes.Contains(body.Bytes(), []byte(scannertest.EICAR)) {
		return "stream: Eicar-Signature FOUND"
	}
	return "stream: OK"
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func TestClamdIsAScanner(t *testing.T) {
	t.Run("tcp", func(t *testing.T) { scannertest.Run(t, serveTCP(t, &daemon{})) })
	t.Run("unix", func(t *testing.T) {
		scannertest.Run(t, serve(t, &daemon{}, "unix", filepath.Join(t.TempDir(), "clamd")))
	})
}

func TestOnlyAnExactOKIsClean(t *testing.T) {
	for _, reply := range []string{
		"OK", "stream: ok", "stream: OK ", "stream:OK", "stream: OK\n", "stream: OK FOUND?", "stream: FOUND", "stream:  FOUND",
		"stream: Can't open file ERROR", "INSTREAM: Error ERROR", "garbage",
	} {
		verdict, err := serveTCP(t, &daemon{verdict: reply}).Scan(t.Context(), strings.NewReader("x"), 1)
		if protocol.CodeOf(err) != protocol.CodeUnavailable || verdict.Clean {
			t.Errorf("%q: %+v, %v", reply, verdict, err)
		}
	}
	for signature, refusal := range map[string]protocol.UploadFailureCode{
		"Win.Test.EICAR_HDB-1":                   protocol.UploadMalware,
		"Heuristics.Limits.Exceeded.MaxFileSize": protocol.UploadUnscannable,
		"Heuristics.Encrypted.Zip":               protocol.UploadEncrypted,
	} {
		verdict, err := serveTCP(t, &daemon{verdict: "stream: " + signature + " FOUND"}).Scan(t.Context(), strings.NewReader("x"), 1)
		if err != nil || verdict.Clean || verdict.Signature != signature || verdict.Refusal != refusal {
			t.Errorf("%s: %+v, %v", signature, verdict, err)
		}
	}
}

func TestABodyOverTheDaemonsLimitIsTooLarge(t *testing.T) {
	s := serveTCP(t, &daemon{streamMax: 100})
	_, err := s.Scan(t.Context(), strings.NewReader(strings.Repeat("x", 101)), 101)
	if protocol.CodeOf(err) != protocol.CodeTooLarge {
		t.Errorf("the error is %v", err)
	}
}

func TestAnUnreachableOrHangingDaemonIsUnavailable(t *testing.T) {
	unreachable, err := New(filepath.Join(t.TempDir(), "nothing"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unreachable.Scan(t.Context(), strings.NewReader("x"), 1); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("unreachable: %v", err)
	}
	if err := unreachable.Ready(t.Context()); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("unreachable, Ready: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	hanging := serveTCP(t, &daemon{hang: true})
	if _, err := hanging.Scan(ctx, strings.NewReader("x"), 1); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("hanging: %v", err)
	}
	cancelled, stop := context.WithCancel(t.Context())
	stop()
	if _, err := hanging.Scan(cancelled, strings.NewReader("x"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestReadinessNeedsRecentSignatures(t *testing.T) {
	dated := func(age time.Duration) string {
		return "ClamAV 1.4.6/27800/" + time.Now().Add(-age).Format(databaseDate)
	}
	for _, c := range []struct {
		daemon *daemon
		ready  bool
	}{
		{&daemon{version: dated(6 * 24 * time.Hour)}, true},
		{&daemon{version: dated(8 * 24 * time.Hour)}, false},
		{&daemon{version: "ClamAV 1.4.6"}, false},
		{&daemon{version: "ClamAV 1.4.6/27800/yesterday"}, false},
		{&daemon{pong: "PANG"}, false},
		{&daemon{verdict: "stream: OK"}, false},
		{&daemon{verdict: "stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND"}, false},
		{&daemon{verdict: "INSTREAM size limit exceeded. ERROR"}, false},
	} {
		err := serveTCP(t, c.daemon).Ready(t.Context())
		if (err == nil) != c.ready || err != nil && protocol.CodeOf(err) != protocol.CodeUnavailable {
			t.Errorf("%q %q: %v", c.daemon.version, c.daemon.pong, err)
		}
	}
}

func TestTheTestFileIsScannedOnceForEachVersionOfTheSignatures(t *testing.T) {
	d := &daemon{}
	s := serveTCP(t, d)
	for _, version := range []string{"27800", "27800", "27801", "27801"} {
		d.newest.Store("ClamAV 1.4.6/" + version + "/" + time.Now().Format(databaseDate))
		if err := s.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := d.scans.Load(); n != 2 {
		t.Errorf("the test file was scanned %d times, want 2", n)
	}
}

func TestAScanTakesBoundedTime(t *testing.T) {
	for size, want := range map[int64]time.Duration{-1: 30 * time.Second, 0: 30 * time.Second, 10 << 20: 40 * time.Second, 1 << 40: 180 * time.Second} {
		if got := scanTime(size); got != want {
			t.Errorf("%d bytes may take %s, want %s", size, got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]*Scanner{
		"127.0.0.1:3310":             {network: "tcp", address: "127.0.0.1:3310"},
		"tcp:clamd:3310":             {network: "tcp", address: "clamd:3310"},
		"/run/clamav/clamd.ctl":      {network: "unix", address: "/run/clamav/clamd.ctl"},
		"unix:/run/clamav/clamd.ctl": {network: "unix", address: "/run/clamav/clamd.ctl"},
	} {
		if got, err := New(address); err != nil || got.network != want.network || got.address != want.address {
			t.Errorf("%s: %+v, %v", address, got, err)
		}
	}
	for _, address := range []string{"", "clamd", "unix:"} {
		if got, err := New(address); err == nil {
			t.Errorf("%q was accepted as %+v", address, got)
		}
	}
}
