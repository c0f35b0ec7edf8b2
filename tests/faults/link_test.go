package faults

import (
	"math/rand/v2"
	"testing"
	"time"

	"turnstone/protocol/proxytest"
	"turnstone/protocol/timelimit"
)

// slowness is the delay of every response on a slow link.
var slowness = timelimit.Of(3 * time.Second)

const (
	flapEvery = time.Second // a flapping link is alternately up and down for this long
	trickle   = 2           // KB/s of a narrow link
)

// link is a connection that can be broken: a proxy in front of one address.
type link struct {
	*proxytest.Proxy
	target string
}

// newLink starts a proxy in front of target: a TCP address, or the path of a Unix socket.
func newLink(t *testing.T, target string) *link {
	t.Helper()
	return &link{proxytest.New(t, target, proxytest.Options{}), target}
}

// redirect closes all connections and sends new ones to another address.
func (l *link) redirect(target string) {
	l.Stop()
	l.Point(target)
	l.Start()
}

// fault is a way in which a link breaks. inject starts the fault and returns a function that ends it.
type fault struct {
	name   string
	inject func(l *link) (repair func())
}

var faultList = []fault{
	{"down", down},
	{"refused", refused},
	{"slow", slow},
	{"reset", reset},
	{"half-open", halfOpen},
	{"flapping", flapping},
	{"bandwidth", narrow},
	{"garbage", garbled},
}

// faultNamed returns the fault with a name.
func faultNamed(name string) fault {
	for _, f := range faultList {
		if f.name == name {
			return f
		}
	}
	panic("no fault is called " + name)
}

// down simulates a process that has ended: open connections are closed, and nothing listens.
func down(l *link) (repair func()) {
	l.Stop()
	return l.Start
}

// refused simulates a gateway whose backend is down: it accepts connections and closes them.
func refused(l *link) (repair func()) {
	l.redirect("")
	return func() { l.redirect(l.target) }
}

// slow delays every response; no byte is lost.
func slow(l *link) (repair func()) {
	return l.Inject(func(p *proxytest.Piece) {
		if p.FromServer {
			p.Wait(p.At.Add(slowness))
		}
	})
}

// reset breaks open and new connections by RST when the next byte is sent.
func reset(l *link) (repair func()) { return l.Inject((*proxytest.Piece).Reset) }

// narrow limits the bandwidth in both directions.
func narrow(l *link) (repair func()) {
	return l.Inject(func(p *proxytest.Piece) {
		p.Wait(time.Now().Add(time.Duration(len(p.Data)) * time.Millisecond / trickle))
	})
}

// garbled replaces the bytes of responses by random ones. Requests are not changed, because only TLS can protect
// against a changed request.
func garbled(l *link) (repair func()) {
	return l.Inject(func(p *proxytest.Piece) {
		if p.FromServer {
			garble(p)
		}
	})
}

func garble(p *proxytest.Piece) {
	for i := range p.Data {
		p.Data[i] = byte(rand.IntN(1 << 8))
	}
}

// halfOpen keeps connections open, accepts new ones, and discards everything that is sent on them. A connection that
// was open during the fault stays dead after it, as if a router in between had lost its state.
func halfOpen(l *link) (repair func()) { return l.Kill() }

// flapping alternates between down and up.
func flapping(l *link) (repair func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	l.Stop()
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(flapEvery)
		defer ticker.Stop()
		for up := false; ; up = !up {
			select {
			case <-stop:
				if !up {
					l.Start()
				}
				return
			case <-ticker.C:
			}
			if up {
				l.Stop()
			} else {
				l.Start()
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
