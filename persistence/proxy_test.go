package persistence_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"turnstone/persistence/pgtest"
)

// cutter stands between the service and Postgres and cuts the line at a chosen moment.
type cutter struct {
	URL      string
	listener net.Listener
	target   string
	running  sync.WaitGroup

	// Guarded by mu.
	mu      sync.Mutex
	request []byte // cut before a request that holds this reaches the server
	reply   []byte // cut before a reply that holds this reaches the service
	cuts    int
	open    map[net.Conn]struct{}
}

func newCutter(t *testing.T, database pgtest.Database) *cutter {
	t.Helper()
	address, err := url.Parse(database.URL)
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	query, folder := address.Query(), t.TempDir()
	c := &cutter{target: filepath.Join(query.Get("host"), socket), open: map[net.Conn]struct{}{}}
	if c.listener, err = net.Listen("unix", filepath.Join(folder, socket)); err != nil {
		t.Fatal(err)
	}
	query.Set("host", folder)
	address.RawQuery = query.Encode()
	c.URL = address.String()
	c.running.Go(c.accept)
	t.Cleanup(c.close)
	return c
}

func (c *cutter) close() {
	_ = c.listener.Close()
	c.mu.Lock()
	for conn := range c.open {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// cutRequest arms the cutter once.
func (c *cutter) cutRequest(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request = []byte(text)
}

// cutReply arms the cutter once.
func (c *cutter) cutReply(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reply = []byte(text)
}

func (c *cutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

func (c *cutter) accept() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", c.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		c.mu.Lock()
		c.open[client], c.open[server] = struct{}{}, struct{}{}
		c.mu.Unlock()
		c.running.Go(func() { c.forward(client, server, &c.request) })
		c.running.Go(func() { c.forward(server, client, &c.reply) })
	}
}

func (c *cutter) forward(from, to net.Conn, trigger *[]byte) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 && c.fires(buffer[:n], trigger) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			return
		}
	}
}

func (c *cutter) fires(data []byte, trigger *[]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(*trigger) == 0 || !bytes.Contains(data, *trigger) {
		return false
	}
	*trigger = nil
	c.cuts++
	return true
}
