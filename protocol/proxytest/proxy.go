// Package proxytest is the proxy that tests put between a client and a server to break their connections. Only tests
// import it.
package proxytest

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/protocol/clocktest"
)

// Proxy forwards connections to a target. Its methods may be called from any goroutine.
type Proxy struct {
	Address string // where it listens: host:port, or the path of a Unix socket

	t       testing.TB
	pass    func(client, server net.Conn)
	running sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener        // guarded by mu; nil while nothing listens
	target   string              // guarded by mu; "": connections are closed at once
	skip     func(n int) bool    // guarded by mu: whether the nth new connection is closed at once; nil: none
	accepted int                 // guarded by mu: new connections since skip was set
	open     map[*pair]struct{}  // guarded by mu
	faults   map[*fault]struct{} // guarded by mu
}

// pair is a connection of a client and the one to the server that belongs to it.
type pair struct {
	client, server net.Conn
	dead           atomic.Bool   // everything that is sent on it is lost
	closed         chan struct{} // closed by close
	closing        sync.Once
}

// Options configure a Proxy. Zero values mean the defaults.
type Options struct {
	Listen string // host:port, or the path of a Unix socket. Default: a free port
	// Pass forwards what two connections send to each other, until one of them ends. Then the proxy closes both. Default:
	// all bytes, subject to the faults.
	Pass func(client, server net.Conn)
}

// New starts a proxy for a target: host:port, or the path of a Unix socket. It stops when the test ends.
func New(t testing.TB, target string, o Options) *Proxy {
	t.Helper()
	x := &Proxy{Address: o.Listen, t: t, pass: o.Pass, target: target, open: map[*pair]struct{}{}, faults: map[*fault]struct{}{}}
	if x.Address == "" {
		x.Address = "127.0.0.1:0"
	}
	x.Start()
	t.Cleanup(func() { x.Stop(); x.running.Wait() })
	return x
}

// network returns the network of an address.
func network(address string) string {
	if strings.HasPrefix(address, "/") {
		return "unix"
	}
	return "tcp"
}

// pollEvery is the interval at which Start tries to listen.
const pollEvery = 10 * time.Millisecond

// Start makes the proxy listen again after Stop, at the same address. Another program may use the port for a moment.
func (x *Proxy) Start() {
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
	defer cancel()
	var listener net.Listener
	var err error
	if clocktest.Poll(ctx, pollEvery, func() bool { listener, err = net.Listen(network(x.Address), x.Address); return err == nil }) != nil {
		x.t.Errorf("the proxy does not listen: %v", err)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Address, x.listener = listener.Addr().String(), listener
	x.running.Go(func() { x.accept(listener) })
}

// Stop closes all connections, and nothing listens any more.
func (x *Proxy) Stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.listener != nil {
		_ = x.listener.Close()
		if network(x.Address) == "unix" {
			_ = os.Remove(x.Address) // Close has removed it, unless it failed
		}
	}
	x.listener = nil
	for p := range x.open {
		p.close()
	}
}

// Point sends new connections to another target. "" closes them at once.
func (x *Proxy) Point(target string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.target = target
}

// Skip closes each new connection at once for which skip returns true; they are counted from 0. nil ends that.
func (x *Proxy) Skip(skip func(n int) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.skip, x.accepted = skip, 0
}

// Cut resets all connections and returns their number.
func (x *Proxy) Cut() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	for p := range x.open {
		p.reset()
	}
	return len(x.open)
}

func (x *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		x.mu.Lock()
		target := x.target
		if x.skip != nil && x.skip(x.accepted) {
			target = ""
		}
		x.accepted++
		x.mu.Unlock()
		var server net.Conn
		if target != "" {
			server, err = net.Dial(network(target), target)
		}
		if target == "" || err != nil {
			_ = client.Close()
			continue
		}
		x.add(&pair{client: client, server: server, closed: make(chan struct{})}, listener)
	}
}

// add forwards a new connection, unless the proxy was stopped in the meantime.
func (x *Proxy) add(p *pair, from net.Listener) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.listener != from {
		p.close()
		return
	}
	for f := range x.faults {
		if f.kills != nil {
			p.kill(f.kills)
		}
	}
	x.open[p] = struct{}{}
	x.running.Go(func() {
		defer func() {
			p.close()
			x.mu.Lock()
			defer x.mu.Unlock()
			delete(x.open, p)
		}()
		if x.pass != nil {
			x.pass(p.client, p.server)
			return
		}
		x.passAll(p)
	})
}

func (p *pair) close() {
	p.closing.Do(func() {
		close(p.closed)
		_, _ = p.client.Close(), p.server.Close()
	})
}

func (p *pair) reset() {
	for _, conn := range []net.Conn{p.client, p.server} {
		if tcp, is := conn.(*net.TCPConn); is {
			_ = tcp.SetLinger(0) // closes with a reset
		}
	}
	p.close()
}
