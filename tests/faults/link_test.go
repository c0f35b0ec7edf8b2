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
	t      *testing.T
	proxy  *toxiproxy.Proxy
	target string
	fresh  atomic.Int64 // numbers the toxics, some of which are never removed
}

// hub is the server that toxiproxy's proxies require. Its HTTP interface is not started.
var hub = toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())

// newLink starts a proxy in front of target, a TCP address.
func newLink(t *testing.T, target string) *link {
	t.Helper()
	l := &link{t: t, proxy: toxiproxy.NewProxy(hub, t.Name(), "127.0.0.1:0", target), target: target}
	l.start()
	t.Cleanup(l.proxy.Stop)
	return l
}

func (l *link) address() string { return l.proxy.Listen }

// start makes the proxy listen; after a stop it uses the same address again. Another program may use the port for a
// moment.
func (l *link) start() {
	sitetest.Eventually(l.t, "the proxy listens", func() bool { return l.proxy.Start() == nil })
}

// redirect makes the proxy dial another address from now on and closes its open connections.
func (l *link) redirect(target string) {
	l.proxy.Stop()
	l.proxy.Upstream = target
	l.start()
}

// addToxic adds a toxic and returns a function that removes it.
func (l *link) addToxic(kind, direction, attributes string) (repair func()) {
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

// both adds a toxic in both directions.
func (l *link) both(kind, attributes string) (repair func()) {
	upstream, downstream := l.addToxic(kind, "upstream", attributes), l.addToxic(kind, "downstream", attributes)
	return func() { upstream(); downstream() }
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
	l.proxy.Stop()
	return l.start
}

// refused simulates a gateway whose backend is down: it accepts connections and closes them.
func refused(l *link) (repair func()) {
	l.redirect(nowhere(l.t))
	return func() { l.redirect(l.target) }
}

// nowhere returns an address on which nothing listens.
func nowhere(t *testing.T) string { return sitetest.FreeAddress(t) }

// slow delays every response; no byte is lost.
func slow(l *link) (repair func()) { return l.mangle("late", "downstream") }

// reset breaks open and new connections by RST when the next byte is sent.
func reset(l *link) (repair func()) {
	return l.both("reset_peer", `"timeout": 0`)
}

// narrow limits the bandwidth in both directions.
func narrow(l *link) (repair func()) { return l.mangle("narrow", "upstream", "downstream") }

// garbled replaces the bytes of responses by random ones. Requests are not changed, because only TLS can protect
// against a changed request.
func garbled(l *link) (repair func()) { return l.mangle("garble", "downstream") }

// halfOpen keeps connections open, accepts new ones, and discards everything that is sent on them. A connection that
// was open during the fault stays dead after it, as if a machine in between had lost its state.
func halfOpen(l *link) (repair func()) {
	name := fmt.Sprintf("%s/%d", l.t.Name(), l.fresh.Add(1))
	over := &atomic.Bool{}
	swallowing.Store(name, over)
	attributes := fmt.Sprintf(`"name": %q`, name)
	l.addToxic("swallow", "upstream", attributes)
	l.addToxic("swallow", "downstream", attributes)
	return func() { over.Store(true) }
}

// flapping alternates between down and up.
func flapping(l *link) (repair func()) {
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

// swallowing maps the names of half-open faults to an *atomic.Bool that reports whether the fault is over.
var swallowing sync.Map

// swallow is a toxic that permanently discards everything on a connection that is open during the fault.
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

// mangle is a toxic that changes each chunk according to Kind until the fault called Name is over. It is never removed:
// toxiproxy blocks forever when it removes a toxic whose client disconnects at the wrong moment.
type mangle struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// lasting maps the names of faults to the chan struct{} that is closed when the fault ends.
var lasting sync.Map

// mangle changes the data in the given directions until repair is called.
func (l *link) mangle(kind string, directions ...string) (repair func()) {
	name, over := fmt.Sprintf("%s/%d", l.t.Name(), l.fresh.Add(1)), make(chan struct{})
	lasting.Store(name, over)
	for _, direction := range directions {
		l.addToxic("mangle", direction, fmt.Sprintf(`"name": %q, "kind": %q`, name, kind))
	}
	return func() { close(over) }
}

func (m *mangle) Pipe(stub *toxics.ToxicStub) {
	value, _ := lasting.Load(m.Name)
	over, _ := value.(chan struct{})
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			if m.corrupt(stub, c, over) {
				return
			}
		}
	}
}

// corrupt changes a chunk and passes it on. It reports whether the toxic was interrupted in the meantime.
func (m *mangle) corrupt(stub *toxics.ToxicStub, c *stream.StreamChunk, over <-chan struct{}) (interrupted bool) {
	switch m.Kind {
	case "late":
		interrupted = delay(stub, time.Until(c.Timestamp.Add(slowness)), over)
	case "narrow":
		interrupted = delay(stub, time.Duration(len(c.Data))*time.Millisecond/trickle, over)
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

// delay waits for d or until the fault ends. It reports whether the toxic was interrupted first.
func delay(stub *toxics.ToxicStub, d time.Duration, over <-chan struct{}) (interrupted bool) {
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

// pass passes on the chunks for which keep returns true.
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

// relay makes a Unix socket reachable by TCP, which the proxies need, and returns the TCP address.
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
					_, _ = io.Copy(way[1], way[0]) // when it returns, the connection ends
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

// postgresSocket returns the path of the Unix socket in a Postgres URL.
func postgresSocket(t *testing.T, dsn string) string {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(address.Query().Get("host"), ".s.PGSQL."+address.Query().Get("port"))
}

// overTCP returns the URL of the same database at a TCP address.
func overTCP(t *testing.T, dsn, address string) string {
	t.Helper()
	parsed, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Host, parsed.RawQuery = address, url.Values{"sslmode": {"disable"}}.Encode()
	return parsed.String()
}
