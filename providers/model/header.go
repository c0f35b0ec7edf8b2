package model

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// reservedHeaders are set by the transport and the wire format. Another value would break the request.
var reservedHeaders = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host",
	"Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// KeyHeaders are the headers that carry the API key. An operator sets one of them or the key, not both.
var KeyHeaders = []string{"Authorization", "X-Api-Key", "Api-Key"}

// ParseHeaders reads headers of the form "Name: value", one per line. An error names the line and never shows a value,
// which may be secret.
func ParseHeaders(text string) (http.Header, error) {
	headers, number := http.Header{}, 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		switch {
		case !found || !validName(name):
			return nil, fmt.Errorf(`line %d is not a header (want for example "X-Team: blue")`, number)
		case value == "" || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c > '~' }):
			return nil, fmt.Errorf("line %d: the value of %s must be visible ASCII characters, spaces and tabs", number, name)
		case slices.Contains(reservedHeaders, http.CanonicalHeaderKey(name)):
			return nil, fmt.Errorf("line %d: %s is set by the service itself", number, name)
		case headers.Values(name) != nil:
			return nil, fmt.Errorf("line %d: %s occurs twice", number, name)
		}
		headers.Set(name, value)
	}
	return headers, nil
}

// validName reports whether a name is a token of RFC 9110.
func validName(name string) bool {
	const others = "!#$%&'*+-.^_`|~"
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !letter && !strings.ContainsRune(others, c)
	})
}

// withHeaders adds the operator's headers to those of a request. They replace headers of the SDK, for example its
// User-Agent.
func (c *Client) withHeaders(header http.Header) http.Header {
	if len(c.options.Headers) == 0 {
		return header
	}
	all := header.Clone()
	maps.Copy(all, c.options.Headers)
	return all
}
