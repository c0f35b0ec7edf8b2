package router

import (
	stdhttp "net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"turnstone/http/auth"
	"turnstone/protocol"
)

// readHeaders are the request headers that the service reads, each with the error code for a malformed value: a wrong
// value of a header of the API (422), or a malformed request (400). Cookie is not among them: other programs on the
// same host set cookies too, and only an HMAC of the service's own cookies is used further. User-Agent is not among
// them either: nothing depends on it, old clients send it in Latin-1, which RFC 9110 allows (obs-text), and
// cleanUserAgent converts it before it is stored.
var readHeaders = map[string]protocol.Code{
	keyHeader: protocol.CodeInvalid, "If-Match": protocol.CodeInvalid, "Last-Event-ID": protocol.CodeInvalid, "X-Confirm": protocol.CodeInvalid,
	"Accept": protocol.CodeInvalidHeader, "Content-Length": protocol.CodeInvalidHeader, "Accept-Language": protocol.CodeInvalidHeader,
	"Accept-Encoding": protocol.CodeInvalidHeader, "Content-Encoding": protocol.CodeInvalidHeader, "Expect": protocol.CodeInvalidHeader,
	"Content-Range": protocol.CodeInvalidHeader, "Range": protocol.CodeInvalidHeader, "If-Range": protocol.CodeInvalidHeader,
	"Content-Type": protocol.CodeInvalidHeader,
	"Origin":       protocol.CodeInvalidHeader, "Sec-Fetch-Mode": protocol.CodeInvalidHeader, "Sec-Fetch-Site": protocol.CodeInvalidHeader,
	auth.CSRFHeader: protocol.CodeInvalidHeader, "X-Forwarded-For": protocol.CodeInvalidHeader,
}

// checkForm refuses requests that no route accepts, before anything is looked up: text in a header, the path or the
// query that is not UTF-8 or contains control characters, and a malformed Idempotency-Key. It is the only check of this
// kind. Later code does not have to expect such text; this matters most for the statements that several accounts share.
func (rt *Router) checkForm(next stdhttp.Handler) stdhttp.Handler {
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		err := checkHeaders(r.Header)
		if err == nil && !(wellFormed(r.URL.Path) && wellFormed(r.URL.RawPath)) {
			rt.unknownPath(w, r)
			return
		}
		if err == nil {
			err = checkQuery(r.URL.RawQuery)
		}
		if err != nil {
			rt.Fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func checkHeaders(header stdhttp.Header) error {
	for name, code := range readHeaders {
		for _, value := range header.Values(name) {
			if !wellFormed(strings.ReplaceAll(value, "\t", " ")) { // a tab is white space in a header field
				return malformedHeader(code, "header."+name, "must be UTF-8 without control characters")
			}
		}
	}
	if keys := header.Values(keyHeader); len(keys) > 1 || len(keys) == 1 && !isKey(keys[0]) {
		return protocol.Invalid("header."+keyHeader, "must be 1 to 128 visible ASCII characters")
	}
	return nil
}

func malformedHeader(code protocol.Code, field, message string) error {
	return &protocol.Error{
		Code: code, Detail: "The request has a malformed header field.", Fields: []protocol.FieldError{{Field: field, Message: message}},
	}
}

// isKey reports whether a text is a valid Idempotency-Key.
func isKey(text string) bool {
	return text != "" && len(text) <= protocol.MaxClientIDLength && !strings.ContainsFunc(text, func(c rune) bool { return c < '!' || c > '~' })
}

// wellFormed reports whether a text is UTF-8 without control characters.
func wellFormed(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func checkQuery(raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return protocol.Invalid("query", "is malformed")
	}
	for name, list := range values {
		if !wellFormed(name) {
			return protocol.Invalid("query", "must be UTF-8 without control characters")
		}
		for _, value := range list {
			if !wellFormed(value) {
				return protocol.Invalid("query."+name, "must be UTF-8 without control characters")
			}
		}
	}
	return nil
}
