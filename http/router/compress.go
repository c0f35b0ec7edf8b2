package router

import (
	"bytes"
	"mime"
	stdhttp "net/http"
	"sync"

	"github.com/klauspost/compress/gzip"

	"turnstone/http/response"
)

// minCompressed is the size of the smallest body that is compressed, in bytes: a smaller one fits in a packet as it is. It also
// keeps the responses that have secrets of the session, which are smaller, out of reach of attacks that compare compressed sizes.
const minCompressed = 1400

// compressors are idle gzip writers. A writer has about 300 kB of tables.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// compressor compresses the body of a successful response of JSON or HTML if its first part is long enough. The header follows
// when that part is compressed: until then, a request stays in the queue of heavy requests. The rest of the response writer is
// that of the request: a response that takes over the connection is not compressed.
type compressor struct {
	stdhttp.ResponseWriter
	accepted bool // the client accepts gzip
	status   int
	started  bool
	gzip     *gzip.Writer // nil: the body is sent as it is
	packed   bytes.Buffer // what gzip has written, and was not sent
	sent     bool         // the header of a response that is compressed
}

// compress calls handler with a response writer that compresses, if the client accepts it.
func compress(w stdhttp.ResponseWriter, r *stdhttp.Request, handler stdhttp.HandlerFunc) {
	c := &compressor{ResponseWriter: w, accepted: r.Method == stdhttp.MethodGet && response.Accepts(r, "gzip")}
	defer c.release()
	handler(c, r)
	c.finish()
}

func (c *compressor) WriteHeader(status int) {
	if c.started || status < stdhttp.StatusOK {
		c.ResponseWriter.WriteHeader(status)
		return
	}
	if c.status == 0 {
		c.status = status
	}
	if status != stdhttp.StatusOK {
		c.start(0)
	}
}

func (c *compressor) Write(b []byte) (int, error) {
	if !c.started {
		c.start(len(b))
	}
	if c.gzip == nil {
		return c.ResponseWriter.Write(b)
	}
	n, err := c.gzip.Write(b)
	if err != nil {
		return n, err
	}
	return n, c.send()
}

// send sends what was compressed.
func (c *compressor) send() error {
	if c.packed.Len() == 0 {
		return nil
	}
	if !c.sent {
		c.sent = true
		c.ResponseWriter.WriteHeader(c.status)
	}
	_, err := c.packed.WriteTo(c.ResponseWriter)
	return err
}

// start decides whether the body is compressed; if it is not, it writes the header. first is the size of the first part of the body.
func (c *compressor) start(first int) {
	c.started = true
	if c.status == 0 {
		c.status = stdhttp.StatusOK
	}
	header := c.Header()
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if c.status == stdhttp.StatusOK && (mediaType == "application/json" || mediaType == "text/html") && header.Get("Content-Encoding") == "" {
		header.Add("Vary", "Accept-Encoding")
		if c.accepted && first >= minCompressed {
			header.Set("Content-Encoding", "gzip")
			header.Del("Content-Length")
			c.gzip = compressors.Get().(*gzip.Writer)
			c.gzip.Reset(&c.packed)
			return
		}
	}
	c.ResponseWriter.WriteHeader(c.status)
}

// finish ends the body of a handler that has returned.
func (c *compressor) finish() {
	if !c.started && c.status != 0 {
		c.start(0)
	}
	if c.gzip != nil && c.gzip.Close() == nil {
		_ = c.send() // the client may have disconnected
	}
}

// release gives the writer back, also after a panic: then the body has no end, and the client sees that it is not complete.
func (c *compressor) release() {
	if c.gzip == nil {
		return
	}
	c.gzip.Reset(nil)
	compressors.Put(c.gzip)
	c.gzip = nil
}

func (c *compressor) Unwrap() stdhttp.ResponseWriter { return c.ResponseWriter }
