package crash

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay forwards TCP connections to its current target and can cut them.
type relay struct {
	Address  string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	target string                // guarded by mu; "": none, connections are closed at once
	open   map[net.Conn]struct{} // guarded by mu: both ends
}

func newRelay(t *testing.T, target string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Address: listener.Addr().String(), listener: listener, target: target, open: map[net.Conn]struct{}{}}
	r.running.Go(r.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		r.cut()
		r.running.Wait()
	})
	return r
}

// point sends new connections to another target.
func (r *relay) point(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
}

// cut resets every connection and returns their number.
func (r *relay) cut() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.open {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closes with a reset
		}
		_ = conn.Close()
	}
	return len(r.open) / 2
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		target := r.target
		r.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.mu.Lock()
		r.open[client], r.open[server] = struct{}{}, struct{}{}
		r.mu.Unlock()
		r.running.Go(func() { r.forward(client, server) })
		r.running.Go(func() { r.forward(server, client) })
	}
}

func (r *relay) forward(from, to net.Conn) {
	_, _ = io.Copy(to, from) // either end may close at any time
	_, _ = from.Close(), to.Close()
	r.mu.Lock()
	delete(r.open, from)
	delete(r.open, to)
	r.mu.Unlock()
}
