package router

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"mime"
	stdhttp "net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-json-experiment/json"

	"turnstone/http/exchange"
	"turnstone/protocol"
)

// bodyStall is the time that a client has for each chunk of 32 KiB of a body.
const bodyStall = 15 * time.Second

// readBody reads the whole JSON body, up to the limit of the route, and checks what does not depend on the operation. It moves
// the deadline of the request by the time that the reading took. huma then decodes the same bytes.
func (rt *Router) readBody(ctx huma.Context, next func(huma.Context)) {
	if op := ctx.Operation(); op.RequestBody != nil && op.Metadata["raw"] != true { // a raw body is read by its handler
		took, err := rt.checkBody(ctx, op.RequestBody)
		if err != nil {
			rt.failOperation(ctx, err)
			return
		}
		moved, cancel := afterBody(ctx.Context(), stateOf(ctx.Context()), took)
		defer cancel()
		ctx = huma.WithContext(ctx, moved)
	}
	next(ctx)
}

func (rt *Router) checkBody(ctx huma.Context, expected *huma.RequestBody) (took time.Duration, err error) {
	r, w := humachi.Unwrap(ctx)
	ex := stateOf(r.Context())
	if !r.ProtoAtLeast(1, 1) && r.Header.Get("Content-Length") == "" { // net/http ignores the encoding of such a body
		return 0, &protocol.Error{Code: protocol.CodeInvalidBody, Detail: "A request over HTTP/1.0 must have a Content-Length."}
	}
	if !expected.Required && (r.ContentLength == 0 || r.Header.Get("Content-Type") == "") {
		if took, err = takeBody(w, r, ex); err != nil {
			return 0, err
		}
		if len(ex.Body) == 0 { // huma sets the defaults of fields only if there is a body
			r.Body = io.NopCloser(strings.NewReader("{}"))
			return took, nil
		}
	}
	if err := checkMediaType(r); err != nil {
		return 0, err
	}
	if took, err = takeBody(w, r, ex); err != nil {
		return 0, err
	}
	if err := checkShape(ex.Body, rt.api.OpenAPI().Components.Schemas, expected.Content[jsonMedia].Schema); err != nil {
		return took, err
	}
	if bytes.Contains(ex.Body, []byte(`\u0000`)) {
		return took, checkNUL(ex.Body)
	}
	return took, nil
}

const jsonMedia = "application/json"

// checkMediaType accepts only uncompressed JSON. A form on another site cannot send that without a CORS preflight.
func checkMediaType(r *stdhttp.Request) error {
	media, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != jsonMedia {
		return protocol.Errorf(protocol.CodeUnsupportedMedia, "The Content-Type must be application/json.")
	}
	if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return protocol.Errorf(protocol.CodeUnsupportedMedia, "The charset of the body must be UTF-8.")
	}
	r.Header.Set("Content-Type", jsonMedia) // huma compares it as it is written
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return protocol.Errorf(protocol.CodeUnsupportedMedia, "The body must not be compressed.")
	}
	return nil
}

// takeBody reads the body once, and returns how long that took; 0: the body had been read before. On idempotent routes
// it runs before the limit, because the key is bound to the body; on other routes, readBody calls it.
func takeBody(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *requestState) (took time.Duration, err error) {
	if !ex.bodyRead {
		if r.ContentLength > ex.maxBody {
			return 0, tooLarge(ex.maxBody)
		}
		began := time.Now()
		body, err := readStalling(w, r, ex.maxBody)
		if err != nil {
			return 0, err
		}
		ex.Body, ex.bodyRead = body, true
		took = time.Since(began)
		ex.BodyTook = took
	}
	r.Body = io.NopCloser(bytes.NewReader(ex.Body))
	return took, nil
}

// readStalling reads a body of at most most bytes. It gives up if a chunk does not arrive within bodyStall. It
// removes the deadline at the end: left on the connection, the deadline would end a stream.
func readStalling(w stdhttp.ResponseWriter, r *stdhttp.Request, most int64) ([]byte, error) {
	var body bytes.Buffer
	control := stdhttp.NewResponseController(w)
	err := copyStalling(w, r, &body, most, func(at time.Time) error {
		_ = control.SetReadDeadline(at) // the writers of some tests support no deadlines
		return nil
	})
	return body.Bytes(), err
}

// copyWatched is readStalling for a body that is not kept. It may take as long as a transfer, so it ends with the session of the
// caller.
func (rt *Router) copyWatched(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *requestState, to io.Writer) error {
	control := stdhttp.NewResponseController(w)
	var mu sync.Mutex
	var ended error // guarded by mu
	stop := rt.SessionEnds.Watch(ex.Caller.AccountID, ex.Caller.SessionID, func() {
		mu.Lock()
		defer mu.Unlock()
		ended = exchange.ErrSessionEnded()
		_ = control.SetReadDeadline(time.Unix(1, 0))
	})
	defer stop()
	err := copyStalling(w, r, to, ex.maxBody, func(at time.Time) error {
		mu.Lock()
		defer mu.Unlock()
		if ended == nil {
			_ = control.SetReadDeadline(at)
		}
		return ended
	})
	mu.Lock()
	defer mu.Unlock()
	return cmp.Or(ended, err)
}

// copyStalling copies a body. setDeadline sets the time until which reads wait; if it returns an error, the copy ends with it.
func copyStalling(w stdhttp.ResponseWriter, r *stdhttp.Request, to io.Writer, most int64, setDeadline func(time.Time) error) (err error) {
	defer func() {
		_ = setDeadline(time.Time{})
		if err != nil && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // net/http would wait for the rest of the body before it responds
		}
	}()
	limited := stdhttp.MaxBytesReader(w, r.Body, most)
	for {
		if err := setDeadline(time.Now().Add(bodyStall)); err != nil {
			return err
		}
		const chunk = 32 << 10
		_, err := io.CopyN(to, limited, chunk)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var over *stdhttp.MaxBytesError
		if errors.As(err, &over) {
			return tooLarge(most)
		}
		if err != nil {
			return &protocol.Error{Code: protocol.CodeInvalidBody, Detail: "The body could not be read to its end.", Err: err}
		}
	}
}

func tooLarge(most int64) error {
	return protocol.Errorf(protocol.CodeTooLarge, "The body must have at most %d bytes.", most)
}

// checkNUL refuses U+0000 in any text, because Postgres cannot store it. It accepts invalid JSON, which the decoder
// reports.
func checkNUL(body []byte) error {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return nil // huma reports the error
	}
	if field, found := findNUL("body", value); found {
		return protocol.Invalid(field, "must not contain the character U+0000")
	}
	return nil
}

// findNUL returns the path of a text in value that contains U+0000.
func findNUL(path string, value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return path, strings.Contains(value, "\x00")
	case []any:
		for _, item := range value {
			if field, found := findNUL(path, item); found {
				return field, true
			}
		}
	case map[string]any:
		for name, item := range value {
			if strings.Contains(name, "\x00") {
				return path, true
			}
			if field, found := findNUL(path+"."+name, item); found {
				return field, true
			}
		}
	}
	return "", false
}
