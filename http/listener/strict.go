package listener

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	stdhttp "net/http"
	"strconv"

	"turnstone/http/response"
	"turnstone/protocol"
)

// strictListener is a listener without TLS. What net/http itself refuses, because it is not valid HTTP/1, gets a problem
// document, as every other error does. Requests with a Content-Length and a Transfer-Encoding, which net/http accepts,
// are refused too: a proxy that uses the other of the two would see the requests of the connection differently.
//
// For TLS, net/http needs connections of its own; then no proxy is in front of the service.
type strictListener struct{ net.Listener }

// Accept implements net.Listener.
func (l strictListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if lingering, is := conn.(*lingeringConn); is {
		conn = &strictConn{lingeringConn: lingering}
	}
	return conn, err
}

// strictConn is a connection whose requests net/http reads. Concurrency: as those of its server, reads exclude one
// another.
type strictConn struct {
	*lingeringConn
	requests framing
	unclear  error // of requests
}

// Read implements net.Conn. In place of the end of a line that makes the end of a request unclear, net/http gets an
// error, in the middle of the header, and refuses the request.
func (c *strictConn) Read(p []byte) (int, error) {
	if c.unclear != nil {
		return 0, c.unclear
	}
	n, err := c.TCPConn.Read(p)
	n, c.unclear = c.requests.scan(p[:n])
	if n == 0 && c.unclear != nil {
		return 0, c.unclear
	}
	return n, err
}

// Write implements net.Conn.
func (c *strictConn) Write(b []byte) (int, error) {
	reason := refusal(b)
	if reason == "" {
		return c.TCPConn.Write(b)
	}
	if err := writeInvalid(c.TCPConn, reason); err != nil {
		return 0, err
	}
	return len(b), nil
}

// What net/http writes when it refuses a request: the status line, these headers and a text. No response of a handler
// starts like this, because each has a Date.
const (
	refusalStart   = "HTTP/1.1 "
	refusalHeaders = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	// refusedExpectation is the start of the response to an Expect other than 100-continue, which has no text.
	refusedExpectation = "417 Expectation Failed"
)

// refusal returns why net/http refuses a request with the response b; "": b is not such a response.
func refusal(b []byte) string {
	rest, is := bytes.CutPrefix(b, []byte(refusalStart))
	if !is {
		return ""
	}
	end := max(0, bytes.IndexByte(rest, '\r'))
	if string(rest[:end]) == refusedExpectation {
		return refusedExpectation
	}
	text, is := bytes.CutPrefix(rest[end:], []byte(refusalHeaders))
	if !is {
		return ""
	}
	return string(text)
}

// writeInvalid writes the response to a request that is not valid HTTP/1. The connection is closed after it.
func writeInvalid(w io.Writer, reason string) error {
	p := response.UnroutedProblem(&protocol.Error{
		Code: protocol.CodeInvalidHeader, Detail: "The request is not valid HTTP/1.1.",
		Fields: []protocol.FieldError{{Field: "header", Message: reason}},
	})
	var body, whole bytes.Buffer
	if err := response.WriteJSON(&body, p); err != nil {
		return err
	}
	refused := stdhttp.Response{
		StatusCode: p.Status, ProtoMajor: 1, ProtoMinor: 1, Close: true, ContentLength: int64(body.Len()), Body: io.NopCloser(&body),
		Header: stdhttp.Header{
			"Content-Type": {p.ContentType("")}, "X-Request-Id": {p.RequestID}, "Cache-Control": {"no-store"},
			"X-Content-Type-Options": {"nosniff"}, "Referrer-Policy": {"no-referrer"}, "X-Robots-Tag": {response.NoRobots},
		},
	}
	if err := refused.Write(&whole); err != nil {
		return fmt.Errorf("encoding a refusal: %w", err)
	}
	_, err := w.Write(whole.Bytes())
	return err
}

// framing finds the header of each request of a connection: after a request without a Transfer-Encoding, the next one
// starts behind its Content-Length. A connection ends with its first request that has a Transfer-Encoding (see New).
type framing struct {
	line    []byte // the start of the current line, without its end
	started bool   // the request line was read
	encoded bool   // the header has a Transfer-Encoding
	sized   bool   // the header has a Content-Length
	size    uint64 // its value
	body    uint64 // the number of bytes until the next request
	over    bool   // the last request has begun
}

// lineStart is the number of bytes of a line that are examined. It is enough for a Content-Length.
const lineStart = 64

var (
	errTwoLengths = errors.New("a request has a Content-Length and a Transfer-Encoding")
	errNoLength   = errors.New("the Content-Length is not a number")
)

// scan examines the next bytes of the connection. If the end of a request is unclear, it returns an error, and the number
// of bytes before the end of the line that shows it; otherwise the number of all bytes.
func (f *framing) scan(b []byte) (clear int, err error) {
	for at := 0; at < len(b) && !f.over; {
		if skipped := min(f.body, uint64(len(b)-at)); skipped > 0 {
			f.body -= skipped
			at += int(skipped)
			continue
		}
		part, _, whole := bytes.Cut(b[at:], []byte("\n"))
		f.line = append(f.line, part[:min(len(part), lineStart-len(f.line))]...)
		if !whole {
			break
		}
		at += len(part)
		line := bytes.TrimSuffix(f.line, []byte("\r"))
		f.line = f.line[:0]
		if err := f.endLine(line); err != nil {
			return at, err
		}
		at++ // the end of the line
	}
	return len(b), nil
}

func (f *framing) endLine(line []byte) (err error) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case !f.started:
		f.started = len(line) > 0 // net/http skips empty lines after a POST
	case len(line) == 0:
		return f.endHeader()
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		f.encoded = true
	case bytes.EqualFold(name, []byte("Content-Length")):
		f.sized = true
		if f.size, err = strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 63); err != nil {
			return errNoLength
		}
	}
	return nil
}

func (f *framing) endHeader() error {
	if f.encoded && f.sized {
		return errTwoLengths
	}
	*f = framing{line: f.line, body: f.size, over: f.encoded}
	return nil
}
