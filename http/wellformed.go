package http

import (
	stdhttp "net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"turnstone/protocol"
)

// readHeaders are the header fields of requests that anything here reads, and what a malformed one is: a wrong value of
// the API's own fields (422), or a malformed request (400). The cookie is not among them: other programs of the same host
// set cookies too, and of ours only an HMAC goes further. Nor is User-Agent: it decides nothing, old clients send it in
// Latin-1, which RFC 9110 allows (obs-text), and cleanUserAgent makes it text before it is stored.
var readHeaders = map[string]protocol.Code{
	keyHeader: protocol.CodeInvalid, "If-Match": protocol.CodeInvalid, "Last-Event-ID": protocol.CodeInvalid, "X-Confirm": protocol.CodeInvalid,
	"Accept-Encoding": protocol.CodeInvalidHeader, "Content-Encoding": protocol.CodeInvalidHeader, "Content-Type": protocol.CodeInvalidHeader,
	"Origin": protocol.CodeInvalidHeader, "Sec-Fetch-Mode": protocol.CodeInvalidHeader, "Sec-Fetch-Site": protocol.CodeInvalidHeader,
	csrfHeader: protocol.CodeInvalidHeader, "X-Forwarded-For": protocol.CodeInvalidHeader,
}

// checkForm refuses what no route takes, before anything is looked up: text in a header field, the path or the query that
// is not UTF-8 or holds control characters, and a malformed Idempotency-Key. It is the one place that does; nothing
// behind it has to expect such text, above all no statement that several accounts share.
func (s *Server) checkForm(next stdhttp.Handler) stdhttp.Handler {
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		err := checkHeaders(r.Header)
		if err == nil && !(wellFormed(r.URL.Path) && wellFormed(r.URL.RawPath)) {
			s.unknownPath(w, r)
			return
		}
		if err == nil {
			err = checkQuery(r.URL.RawQuery)
		}
		if err != nil {
			s.fail(w, r, err)
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

// isKey says whether a text is an Idempotency-Key.
func isKey(text string) bool {
	return text != "" && len(text) <= protocol.MaxClientIDLength && !strings.ContainsFunc(text, func(c rune) bool { return c < '!' || c > '~' })
}

// wellFormed says whether a text is UTF-8 without control characters.
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
