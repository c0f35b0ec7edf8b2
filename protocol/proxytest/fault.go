package proxytest

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// Piece is a part of what one side of a connection sends. A fault may change its Data.
type Piece struct {
	Data       []byte
	At         time.Time // when it was received
	FromServer bool

	pair *pair
	over <-chan struct{} // of the fault
}

// Wait waits until a time, the end of the fault or the end of the connection.
func (p *Piece) Wait(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.over:
	case <-p.pair.closed:
	}
}

// Reset resets the connection of the piece.
func (p *Piece) Reset() { p.pair.reset() }

// fault changes pieces until it is over.
type fault struct {
	change func(*Piece)
	kills  func(client net.Addr) bool // whether a connection that is open meanwhile is dead from then on; nil: none is
	over   chan struct{}
}

// Inject calls change for each piece, on all connections, until repair is called.
func (x *Proxy) Inject(change func(*Piece)) (repair func()) { return x.inject(change, nil) }

// Kill keeps all connections open, accepts new ones, and discards everything that is sent on them, until revive is called.
// A connection that was open in the meantime stays dead, as if a router had lost its state.
func (x *Proxy) Kill() (revive func()) { return x.KillFrom(func(net.Addr) bool { return true }) }

// KillFrom is Kill for the connections whose client satisfies from, which is called once for each.
func (x *Proxy) KillFrom(from func(client net.Addr) bool) (revive func()) {
	revive = x.inject(func(*Piece) {}, from)
	x.mu.Lock()
	defer x.mu.Unlock()
	for p := range x.open {
		p.kill(from)
	}
	return revive
}

// kill makes a connection dead if its client satisfies from.
func (p *pair) kill(from func(net.Addr) bool) {
	if !p.dead.Load() && from(p.client.RemoteAddr()) {
		p.dead.Store(true)
	}
}

func (x *Proxy) inject(change func(*Piece), kills func(net.Addr) bool) (repair func()) {
	f := &fault{change, kills, make(chan struct{})}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.faults[f] = struct{}{}
	return sync.OnceFunc(func() {
		close(f.over)
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.faults, f)
	})
}

func (x *Proxy) active() (all []*fault) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for f := range x.faults {
		all = append(all, f)
	}
	return all
}

// The size of a piece, and the number of pieces that wait while a fault delays one of their connection.
const (
	pieceSize = 32 << 10
	waiting   = 64
)

// passAll forwards both directions until one of them ends.
func (x *Proxy) passAll(p *pair) {
	var both sync.WaitGroup
	both.Go(func() { defer p.close(); x.forward(p, p.client, p.server, false) })
	both.Go(func() { defer p.close(); x.forward(p, p.server, p.client, true) })
	both.Wait()
}

func (x *Proxy) forward(p *pair, from, to net.Conn, fromServer bool) {
	pieces := make(chan *Piece, waiting)
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { defer close(pieces); p.read(from, fromServer, pieces) })
	for piece := range pieces {
		for _, f := range x.active() {
			piece.over = f.over
			f.change(piece)
		}
		if p.dead.Load() {
			continue
		}
		if _, err := to.Write(piece.Data); err != nil {
			p.close()
			return
		}
	}
}

// read reads pieces until the connection ends.
func (p *pair) read(from net.Conn, fromServer bool, into chan<- *Piece) {
	buffer := make([]byte, pieceSize)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			select {
			case into <- &Piece{Data: bytes.Clone(buffer[:n]), At: time.Now(), FromServer: fromServer, pair: p}:
			case <-p.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}
