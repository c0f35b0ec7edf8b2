package proxytest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"turnstone/protocol/clocktest"
)

// echo starts a server that sends back what it gets, and returns its address.
func echo(t *testing.T, network, address string) string {
	t.Helper()
	listener, err := net.Listen(network, address)
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
			running.Go(func() { defer func() { _ = conn.Close() }(); _, _ = io.Copy(conn, conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return listener.Addr().String()
}

func dial(t *testing.T, x *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial(network(x.Address), x.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(clocktest.HangGuard)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// exchange sends a word and reads its echo.
func exchange(conn net.Conn) (string, error) {
	if _, err := io.WriteString(conn, "word"); err != nil {
		return "", err
	}
	got := make([]byte, 4)
	_, err := io.ReadFull(conn, got)
	return string(got), err
}

func wantEcho(t *testing.T, conn net.Conn) {
	t.Helper()
	if got, err := exchange(conn); got != "word" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAProxyForwardsToItsTarget(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "echo")
	x := New(t, echo(t, "unix", socket), Options{})
	wantEcho(t, dial(t, x))
	x.Point("")
	if got, err := exchange(dial(t, x)); err == nil {
		t.Errorf("without a target: %q", got)
	}
	x.Point(echo(t, "tcp", "127.0.0.1:0"))
	wantEcho(t, dial(t, x))
	behind := New(t, x.Address, Options{Listen: filepath.Join(t.TempDir(), "proxy")})
	wantEcho(t, dial(t, behind))
}

func TestAProxyClosesAndResetsConnections(t *testing.T) {
	x := New(t, echo(t, "tcp", "127.0.0.1:0"), Options{})
	conn := dial(t, x)
	wantEcho(t, conn)
	if n := x.Cut(); n != 1 {
		t.Errorf("%d connections were cut", n)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a cut: %v", err)
	}
	conn = dial(t, x)
	wantEcho(t, conn)
	x.Stop()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after a stop: %v", err)
	}
	if _, err := net.Dial("tcp", x.Address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a stopped proxy: %v", err)
	}
	x.Start()
	wantEcho(t, dial(t, x))
	x.Skip(func(n int) bool { return n%2 == 0 })
	if got, err := exchange(dial(t, x)); err == nil {
		t.Errorf("a connection that is skipped: %q", got)
	}
	wantEcho(t, dial(t, x))
}

func TestAFaultChangesPiecesUntilItIsRepaired(t *testing.T) {
	x := New(t, echo(t, "tcp", "127.0.0.1:0"), Options{})
	conn := dial(t, x)
	repair := x.Inject(func(p *Piece) {
		if p.FromServer {
			p.Data = bytes.ToUpper(p.Data)
		}
	})
	if got, err := exchange(conn); got != "WORD" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	repair()
	wantEcho(t, conn)
	met := make(chan struct{})
	var once sync.Once
	repair = x.Inject(func(p *Piece) {
		once.Do(func() { close(met) })
		p.Wait(p.At.Add(time.Hour))
	})
	go func() { <-met; repair() }()
	wantEcho(t, conn)
	x.Inject(func(p *Piece) { p.Reset() })
	if got, err := exchange(conn); err == nil {
		t.Errorf("after a reset: %q", got)
	}
}

func TestAKilledConnectionStaysDead(t *testing.T) {
	x := New(t, echo(t, "tcp", "127.0.0.1:0"), Options{})
	before := dial(t, x)
	wantEcho(t, before)
	revive := x.Kill()
	meanwhile := dial(t, x)
	silent := func(conn net.Conn) {
		t.Helper()
		_ = conn.SetDeadline(time.Now().Add(50 * time.Millisecond))
		var timeout net.Error
		if got, err := exchange(conn); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%q, %v", got, err)
		}
	}
	silent(meanwhile)
	revive()
	silent(before)
	silent(meanwhile)
	wantEcho(t, dial(t, x))
}

func TestTheConnectionsOfOneClientAreKilled(t *testing.T) {
	x := New(t, echo(t, "tcp", "127.0.0.1:0"), Options{})
	one, other := dial(t, x), dial(t, x)
	wantEcho(t, one)
	wantEcho(t, other)
	revive := x.KillFrom(func(client net.Addr) bool { return client.String() == one.LocalAddr().String() })
	defer revive()
	wantEcho(t, other)
	wantEcho(t, dial(t, x))
	_ = one.SetDeadline(time.Now().Add(50 * time.Millisecond))
	if got, err := exchange(one); err == nil {
		t.Errorf("the killed connection returned %q", got)
	}
}

func TestAProxyUsesItsOwnPass(t *testing.T) {
	x := New(t, echo(t, "tcp", "127.0.0.1:0"), Options{Pass: func(client, _ net.Conn) { _, _ = io.WriteString(client, "none") }})
	if got, err := exchange(dial(t, x)); got != "none" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
