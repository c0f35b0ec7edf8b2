package faults

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"

	"turnstone/cmd/turnstone/sitetest"
)

const (
	slowness  = 3 * time.Second // of every answer on a slow link
	flapEvery = time.Second     // a flapping link is there so long, and away so long
	trickle   = 2               // KB/s of a narrow link
)

// link is a connection that can be broken: a proxy in front of one address.
type link struct {
	t      *testing.T
	proxy  *toxiproxy.Proxy
	target string
	fresh  atomic.Int64 // numbers the toxics that are never taken off again
}

// hub is what toxiproxy's proxies need to exist; its HTTP interface is not started.
var hub = toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())

// newLink stands in front of target, an address of TCP.
func newLink(t *testing.T, target string) *link {
	t.Helper()
	l := &link{t: t, proxy: toxiproxy.NewProxy(hub, t.Name(), "127.0.0.1:0", target), target: target}
	l.start()
	t.Cleanup(l.proxy.Stop)
	return l
}

func (l *link) address() string { return l.proxy.Listen }

// start listens, again on the same address after a stop. Another program may sit on the port for a moment.
func (l *link) start() {
	sitetest.Eventually(l.t, "the proxy listens", func() bool { return l.proxy.Start() == nil })
}

// aim lets the proxy dial another address from now on; what is open is closed.
func (l *link) aim(target string) {
	l.proxy.Stop()
	l.proxy.Upstream = target
	l.start()
}

// poison adds a toxic and answers how it is taken off.
func (l *link) poison(kind, direction, attributes string) (heal func()) {
	l.t.Helper()
	name := fmt.Sprintf("%s_%s_%d", kind, direction, l.fresh.Add(1))
	body := fmt.Sprintf(`{"name": %q, "type": %q, "stream": %q, "attributes": {%s}}`, name, kind, direction, attributes)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(body)); err != nil {
		l.t.Errorf("toxic %s: %v", kind, err)
	}
	return func() {
		if err := l.proxy.Toxics.RemoveToxic(l.t.Context(), name); err != nil {
			l.t.Errorf("toxic %s: %v", kind, err)
		}
	}
}

// both poisons both directions.
func (l *link) both(kind, attributes string) (heal func()) {
	upstream, downstream := l.poison(kind, "upstream", attributes), l.poison(kind, "downstream", attributes)
	return func() { upstream(); downstream() }
}

// fault is a way in which a link breaks; strike begins it and answers what ends it.
type fault struct {
	name   string
	strike func(l *link) (heal func())
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

// faultNamed is for rows that run on their own.
func faultNamed(name string) fault {
	for _, f := range faultList {
		if f.name == name {
			return f
		}
	}
	panic("no fault is called " + name)
}

// down: a process that has ended. What is open is closed, and nobody listens.
func down(l *link) (heal func()) {
	l.proxy.Stop()
	return l.start
}

// refused: a gateway whose backend is away. It takes connections and closes them.
func refused(l *link) (heal func()) {
	l.aim(nowhere(l.t))
	return func() { l.aim(l.target) }
}

// nowhere is an address that nobody listens on.
func nowhere(t *testing.T) string { return sitetest.FreeAddress(t) }

// slow: every answer is late; no byte is lost.
func slow(l *link) (heal func()) { return l.mangle("late", "downstream") }

// reset: what is open breaks with the next byte that is sent, and so does what is opened, with RST.
func reset(l *link) (heal func()) {
	return l.both("reset_peer", `"timeout": 0`)
}

// narrow: a trickle in both directions.
func narrow(l *link) (heal func()) { return l.mangle("narrow", "upstream", "downstream") }

// garbled: what comes back is no answer. Nothing that is sent is changed: a request that is another one than was meant
// is what TLS is for.
func garbled(l *link) (heal func()) { return l.mangle("garble", "downstream") }

// halfOpen: connections stay open and everything that is sent on them is lost, also on those that are opened now. What
// was open during the fault stays dead when the fault is over, as it does when a machine in between forgot it.
func halfOpen(l *link) (heal func()) {
	name := fmt.Sprintf("%s/%d", l.t.Name(), l.fresh.Add(1))
	over := &atomic.Bool{}
	swallowing.Store(name, over)
	attributes := fmt.Sprintf(`"name": %q`, name)
	l.poison("swallow", "upstream", attributes)
	l.poison("swallow", "downstream", attributes)
	return func() { over.Store(true) }
}

// flapping: down and up in turn.
func flapping(l *link) (heal func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	l.proxy.Stop()
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(flapEvery)
		defer ticker.Stop()
		for up := false; ; up = !up {
			select {
			case <-stop:
				if !up {
					l.start()
				}
				return
			case <-ticker.C:
			}
			if up {
				l.proxy.Stop()
			} else {
				l.start()
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

// swallowing says by name which half-open faults are over.
var swallowing sync.Map

// swallow is a toxic: a connection that it met during the fault is dead for ever.
type swallow struct {
	Name string `json:"name"`
}

type swallowState struct{ met, dead bool }

func (*swallow) NewState() any { return &swallowState{} }

func (s *swallow) Pipe(stub *toxics.ToxicStub) {
	state := stub.State.(*swallowState)
	if over, known := swallowing.Load(s.Name); !state.met {
		state.met, state.dead = true, known && !over.(*atomic.Bool).Load()
	}
	pass(stub, func(c *stream.StreamChunk) bool { return !state.dead })
}

// mangle is a toxic: what is done to each piece that passes, by Kind, until the fault called Name is over. It is never
// taken off: toxiproxy waits for ever when it takes off a toxic whose client has left in the wrong moment.
type mangle struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// lasting says by name what ends a fault: a chan struct{}.
var lasting sync.Map

// mangle spoils directions until heal is called.
func (l *link) mangle(kind string, directions ...string) (heal func()) {
	name, over := fmt.Sprintf("%s/%d", l.t.Name(), l.fresh.Add(1)), make(chan struct{})
	lasting.Store(name, over)
	for _, direction := range directions {
		l.poison("mangle", direction, fmt.Sprintf(`"name": %q, "kind": %q`, name, kind))
	}
	return func() { close(over) }
}

func (m *mangle) Pipe(stub *toxics.ToxicStub) {
	kept, _ := lasting.Load(m.Name)
	over, _ := kept.(chan struct{})
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			if m.spoil(stub, c, over) {
				return
			}
		}
	}
}

// spoil hands a piece on; true when the toxic was interrupted meanwhile.
func (m *mangle) spoil(stub *toxics.ToxicStub, c *stream.StreamChunk, over <-chan struct{}) (interrupted bool) {
	switch m.Kind {
	case "late":
		interrupted = hold(stub, time.Until(c.Timestamp.Add(slowness)), over)
	case "narrow":
		interrupted = hold(stub, time.Duration(len(c.Data))*time.Millisecond/trickle, over)
	case "garble":
		select {
		case <-over:
		default:
			for i := range c.Data {
				c.Data[i] = byte(rand.IntN(1 << 8))
			}
		}
	}
	stub.Output <- c
	return interrupted
}

// hold waits, or for the end of the fault; true when the toxic was interrupted first.
func hold(stub *toxics.ToxicStub, d time.Duration, over <-chan struct{}) (interrupted bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	case <-stub.Interrupt:
		return true
	}
	return false
}

// pass hands on what keep says.
func pass(stub *toxics.ToxicStub, keep func(*stream.StreamChunk) bool) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			if keep(c) {
				stub.Output <- c
			}
		}
	}
}

func init() {
	toxics.Register("swallow", new(swallow))
	toxics.Register("mangle", new(mangle))
}

// relay makes a unix socket reachable by TCP, which is what the proxies speak. It answers its address.
func relay(t *testing.T, socket string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var open sync.Map
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil {
				_ = client.Close()
				continue
			}
			open.Store(client, server)
			for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
				running.Go(func() {
					_, _ = io.Copy(way[1], way[0]) // its end is the end of the connection
					_, _ = client.Close(), server.Close()
					open.Delete(client)
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Range(func(client, server any) bool {
			_, _ = client.(net.Conn).Close(), server.(net.Conn).Close()
			return true
		})
		running.Wait()
	})
	return listener.Addr().String()
}

// postgresSocket finds the unix socket in an address of Postgres.
func postgresSocket(t *testing.T, dsn string) string {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(address.Query().Get("host"), ".s.PGSQL."+address.Query().Get("port"))
}

// overTCP is the same database by another way.
func overTCP(t *testing.T, dsn, address string) string {
	t.Helper()
	parsed, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Host, parsed.RawQuery = address, url.Values{"sslmode": {"disable"}}.Encode()
	return parsed.String()
}
