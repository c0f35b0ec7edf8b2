package pgtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"turnstone/protocol/proxytest"
)

// Cut is a kind of reply that a Cutter can withhold from the service after the server has committed.
type Cut int

// The kinds of cuts.
const (
	Commit    Cut = iota // the reply to a COMMIT that succeeded
	Statement            // the reply to a statement outside an explicit transaction, which the server has committed
	cutKinds
)

// Cutter is a proxy between the service and Postgres, on a Unix socket, that closes the connection at a chosen moment.
// Its methods may be called from any goroutine.
type Cutter struct {
	*proxytest.Proxy
	URL string // of the database, through the cutter

	// Guarded by mu.
	mu      sync.Mutex
	request []byte // a request that contains this is cut before it reaches the server
	reply   []byte // a reply that contains this is cut before it reaches the service
	armed   [cutKinds]chan struct{}
	cuts    int
}

// NewCutter starts a Cutter for the database of a URL. It stops when the test ends.
func NewCutter(t testing.TB, database string) *Cutter {
	t.Helper()
	c := &Cutter{}
	c.Proxy, c.URL = NewProxy(t, database, func(client, server net.Conn) {
		var both sync.WaitGroup
		both.Go(func() { defer func() { _, _ = client.Close(), server.Close() }(); c.requests(client, server) })
		both.Go(func() { defer func() { _, _ = client.Close(), server.Close() }(); c.replies(server, client) })
		both.Wait()
	})
	return c
}

// NewProxy starts a proxy for the database of a URL, which it returns with the address of the proxy. pass forwards what a
// connection sends.
func NewProxy(t testing.TB, database string, pass func(client, server net.Conn)) (proxy *proxytest.Proxy, through string) {
	t.Helper()
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	query, folder := address.Query(), t.TempDir()
	proxy = proxytest.New(t, filepath.Join(query.Get("host"), socket), proxytest.Options{Listen: filepath.Join(folder, socket), Pass: pass})
	query.Set("host", folder)
	address.RawQuery = query.Encode()
	return proxy, address.String()
}

// CutRequest closes the connection of the next request that contains text, before the request reaches the server.
func (c *Cutter) CutRequest(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request = []byte(text)
}

// CutReply closes the connection of the next reply that contains text, before the reply reaches the service.
func (c *Cutter) CutReply(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reply = []byte(text)
}

// Arm makes the Cutter close the connection of the next reply of a kind, before the reply reaches the service. The
// returned channel is closed when that has happened. Disarm revokes it.
func (c *Cutter) Arm(kind Cut) (cut <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed[kind] == nil {
		c.armed[kind] = make(chan struct{})
	}
	return c.armed[kind]
}

// Disarm revokes an Arm of a kind whose reply has not come yet.
func (c *Cutter) Disarm(kind Cut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed[kind] = nil
}

// Count returns the number of requests and replies that were cut.
func (c *Cutter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// requests copies until the connection breaks or is cut.
func (c *Cutter) requests(from io.Reader, to io.Writer) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if c.matches(buffer[:n], &c.request) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// The message types that replies checks, and the length of a message's header.
const (
	commandComplete = 'C'
	readyForQuery   = 'Z'
	headLength      = 5
)

// replies copies message by message. It holds back the reply to a statement outside a transaction until the server
// reports that it is ready for the next query, because only then has the server committed the statement.
func (c *Cutter) replies(from io.Reader, to io.Writer) {
	reader := bufio.NewReaderSize(from, 1<<16)
	var out []byte
	inside, held := false, false
	for {
		head, err := reader.Peek(headLength)
		if err != nil {
			_, _ = to.Write(out)
			return
		}
		begin, size := len(out), 1+int(binary.BigEndian.Uint32(head[1:]))
		out = slices.Grow(out, size)[:begin+size]
		if _, err := io.ReadFull(reader, out[begin:]); err != nil {
			return
		}
		switch message := out[begin:]; message[0] {
		case commandComplete:
			tag := string(bytes.TrimRight(message[headLength:], "\x00"))
			switch {
			case tag == "BEGIN":
				inside = true
			case tag == "COMMIT" && c.disarms(Commit):
				return
			case tag == "COMMIT" || tag == "ROLLBACK":
				inside = false
			case !inside:
				held = true
			}
		case readyForQuery:
			if inside = message[headLength] != 'I'; !inside && held && c.disarms(Statement) {
				return
			}
			held = false
		}
		if held || reader.Buffered() >= headLength {
			continue
		}
		if c.matches(out, &c.reply) {
			return
		}
		if _, err := to.Write(out); err != nil {
			return
		}
		out = out[:0]
	}
}

// matches reports whether data contains the text of a trigger. It then clears the trigger and counts a cut.
func (c *Cutter) matches(data []byte, trigger *[]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(*trigger) == 0 || !bytes.Contains(data, *trigger) {
		return false
	}
	*trigger = nil
	c.cuts++
	return true
}

// disarms reports whether a kind of reply is armed. It then disarms the kind and counts a cut.
func (c *Cutter) disarms(kind Cut) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed[kind] == nil {
		return false
	}
	close(c.armed[kind])
	c.armed[kind] = nil
	c.cuts++
	return true
}
