package router

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"mime"
	stdhttp "net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-json-experiment/json"

	"turnstone/http/transfer"
	"turnstone/protocol"
)

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
	return transfer.CheckUncompressed(r)
}

// takeBody reads the body once, and returns how long that took; 0: the body had been read before. On idempotent routes
// it runs before the limit, because the key is bound to the body; on other routes, readBody calls it.
func takeBody(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *requestState) (took time.Duration, err error) {
	if !ex.bodyRead {
		if r.ContentLength > ex.maxBody {
			return 0, tooLarge(ex.maxBody)
		}
		began := time.Now()
		body, err := readAll(w, r, ex.maxBody)
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

// readAll reads a body of at most most bytes.
func readAll(w stdhttp.ResponseWriter, r *stdhttp.Request, most int64) ([]byte, error) {
	from, end := transfer.Open(w, r)
	var body bytes.Buffer
	err := copyBody(&body, from, most)
	end(err)
	return body.Bytes(), err
}

// hashBody returns the hash of a body that is not kept. Reading it may take as long as a transfer, so it ends with the session of the
// caller.
func (rt *Router) hashBody(w stdhttp.ResponseWriter, r *stdhttp.Request, most int64) (sum [sha256.Size]byte, err error) {
	_, from, end := transfer.Receive(w, r, rt.SessionEnds)
	defer end(&err)
	hash := sha256.New()
	err = copyBody(hash, from, most)
	return [sha256.Size]byte(hash.Sum(nil)), err
}

// copyBody copies a body of at most most bytes.
func copyBody(to io.Writer, from io.Reader, most int64) error {
	_, err := io.Copy(to, stdhttp.MaxBytesReader(nil, io.NopCloser(from), most))
	var over *stdhttp.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge(most)
	case err != nil:
		return &protocol.Error{Code: protocol.CodeInvalidBody, Detail: "The body could not be read completely.", Err: err}
	}
	return nil
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
