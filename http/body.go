package http

import (
	"bytes"
	"errors"
	"io"
	"mime"
	stdhttp "net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-json-experiment/json"

	"turnstone/protocol"
)

// bodyStall is how long a client may pause within a body.
const bodyStall = 15 * time.Second

// readBody takes the whole JSON body, within its limit, and checks what does not depend on the operation. huma then
// reads the same bytes.
func (s *Server) readBody(ctx huma.Context, next func(huma.Context)) {
	if op := ctx.Operation(); op.RequestBody != nil {
		took, err := checkBody(ctx, op.RequestBody.Required)
		if err != nil {
			s.failOperation(ctx, err)
			return
		}
		moved, cancel := afterBody(ctx.Context(), exchangeOf(ctx.Context()), took)
		defer cancel()
		ctx = huma.WithContext(ctx, moved)
	}
	next(ctx)
}

func checkBody(ctx huma.Context, required bool) (took time.Duration, err error) {
	r, w := humachi.Unwrap(ctx)
	ex := exchangeOf(r.Context())
	if !required && r.ContentLength == 0 {
		return 0, nil
	}
	if err := checkMediaType(r); err != nil {
		return 0, err
	}
	if took, err = takeBody(w, r, ex); err != nil {
		return 0, err
	}
	if bytes.Contains(ex.body, []byte(`\u0000`)) {
		return took, checkNUL(ex.body)
	}
	return took, nil
}

// checkMediaType lets only JSON in. No form of another site can send it without a preflight.
func checkMediaType(r *stdhttp.Request) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return protocol.Errorf(protocol.CodeUnsupportedMedia, "The body has to be application/json.")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return protocol.Errorf(protocol.CodeUnsupportedMedia, "The body must not be compressed.")
	}
	return nil
}

// takeBody reads the body once, and returns how long that took; idempotent routes need the body before the others do.
func takeBody(w stdhttp.ResponseWriter, r *stdhttp.Request, ex *exchange) (took time.Duration, err error) {
	if !ex.bodyRead {
		if r.ContentLength > maxBody {
			return 0, tooLarge()
		}
		began := time.Now()
		body, err := readStalling(w, r)
		if err != nil {
			return 0, err
		}
		ex.body, ex.bodyRead = body, true
		took = time.Since(began)
		ex.bodyTook = took
	}
	r.Body = io.NopCloser(bytes.NewReader(ex.body))
	return took, nil
}

// readStalling reads up to the limit and gives up on a client that sends nothing for a while. The deadline is taken off
// again: left on the connection it would end a stream.
func readStalling(w stdhttp.ResponseWriter, r *stdhttp.Request) ([]byte, error) {
	control := stdhttp.NewResponseController(w)
	defer func() { _ = control.SetReadDeadline(time.Time{}) }() // not every writer of a test has deadlines
	var body bytes.Buffer
	limited := stdhttp.MaxBytesReader(w, r.Body, maxBody)
	for {
		_ = control.SetReadDeadline(time.Now().Add(bodyStall))
		const chunk = 32 << 10
		_, err := io.CopyN(&body, limited, chunk)
		if errors.Is(err, io.EOF) {
			return body.Bytes(), nil
		}
		var over *stdhttp.MaxBytesError
		if errors.As(err, &over) {
			return nil, tooLarge()
		}
		if err != nil {
			return nil, &protocol.Error{Code: protocol.CodeInvalidBody, Detail: "The body ended before its time.", Err: err}
		}
	}
}

func tooLarge() error {
	return protocol.Errorf(protocol.CodeTooLarge, "The body may hold at most %d bytes.", maxBody)
}

// checkNUL refuses U+0000 in any text: Postgres cannot store it. Bytes that are no JSON are left to the decoder.
func checkNUL(body []byte) error {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return nil //nolint:nilerr // huma says what is wrong
	}
	if field, found := findNUL("body", value); found {
		return protocol.Invalid(field, "must not hold the character U+0000")
	}
	return nil
}

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
