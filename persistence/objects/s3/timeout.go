package s3

import (
	"context"
	"net"
	"net/http"
	"time"

	"turnstone/protocol/timelimit"
)

// timeouts limit every call without limiting the size of an object.
type timeouts struct {
	connect time.Duration
	header  time.Duration // from the end of the request to the header of the response
	stall   time.Duration // without a byte in either direction
}

var defaultTimeouts = timeouts{connect: timelimit.Of(2 * time.Second), header: 10 * time.Second, stall: 15 * time.Second}

const (
	maxIdle = 32
	// idleAge is below the stall limit, which would end an idle connection with an error.
	idleAge   = 10 * time.Second
	keepAlive = 15 * time.Second
)

// applyTo sets the limits on a transport.
func (t timeouts) applyTo(transport *http.Transport) {
	dialer := &net.Dialer{Timeout: t.connect, KeepAlive: keepAlive}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &progressConn{Conn: connection, stall: t.stall}, nil
	}
	transport.TLSHandshakeTimeout = t.connect
	transport.ResponseHeaderTimeout = t.header
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = maxIdle, maxIdle
	transport.IdleConnTimeout = idleAge
}

// progressConn fails if no byte is transferred for the time stall. Progress in one direction counts for the other:
// while a part is sent, the transport waits in a read all the time.
type progressConn struct {
	net.Conn
	stall time.Duration
}

func (c *progressConn) Read(p []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *progressConn) Write(p []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *progressConn) extend() error { return c.SetDeadline(time.Now().Add(c.stall)) }
