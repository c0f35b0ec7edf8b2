package listener

import (
	"errors"
	"strings"
	"testing"
)

func TestARequestWithTwoLengthsIsFoundWhereverItsBytesAreSplit(t *testing.T) {
	const (
		get     = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
		post    = "POST / HTTP/1.1\r\nContent-Length: 45\r\n\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"
		chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
		both    = "POST / HTTP/1.1\r\ncontent-length:3\r\nX: y\r\nTRANSFER-ENCODING: chunked\r\n\r\n"
	)
	for _, c := range []struct {
		sent string
		want error
	}{
		{get + post + get + chunked, nil},
		{both, errTwoLengths},
		{get + both, errTwoLengths},
		{post + "\r\n" + both, errTwoLengths},
		{strings.ReplaceAll(both, "\r\n", "\n"), errTwoLengths},
		{strings.ReplaceAll(get+both, "X: y", "X: "+strings.Repeat("y", 10*lineStart)), errTwoLengths},
		{chunked + both, nil}, // the connection ends with its first chunked request
		{"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", errNoLength},
		{"POST / HTTP/1.1\r\nContent-Length:\r\n 1\r\n\r\n", errNoLength},
		{"POST / HTTP/1.1\r\nContent-Length:" + strings.Repeat(" ", lineStart) + "1\r\n\r\n", errNoLength},
	} {
		for size := 1; size <= len(c.sent); size++ {
			var f framing
			var err error
			for rest := c.sent; rest != "" && err == nil; {
				piece := rest[:min(size, len(rest))]
				rest = rest[len(piece):]
				var clear int
				if clear, err = f.scan([]byte(piece)); err == nil != (clear == len(piece)) || err != nil && piece[clear] != '\n' {
					t.Errorf("%d of %q is clear, %v", clear, piece, err)
				}
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("%q in pieces of %d bytes: %v, want %v", c.sent, size, err, c.want)
			}
		}
	}
}

func TestOnlyRefusalsOfTheServerItselfAreReplaced(t *testing.T) {
	for written, want := range map[string]string{
		"HTTP/1.1 400 Bad Request" + refusalHeaders + "400 Bad Request: malformed Host header":           "400 Bad Request: malformed Host header",
		"HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nDate: Thu\r\nContent-Length: 0\r\n\r\n": "417 Expectation Failed",
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nDate: Thu\r\n\r\n":                "",
		"HTTP/1.1 200 OK\r\nX-Something: a" + refusalHeaders + "b":                                       "",
		"a chunk of a response": "",
		"HTTP/1.1 ":             "",
		"":                      "",
	} {
		if got := refusal([]byte(written)); got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
}
