package source

import (
	"bufio"
	"io"

	"turnstone/protocol"
)

// Limits of one conversation. What is beyond them is left out.
const (
	maxMessages  = 20_000  // as for a fork
	maxNodes     = 100_000 // including those without a visible message
	maxText      = 32 << 20
	maxString    = 1 << 20 // bytes of one text in the file; the rest is cut
	maxValue     = 8 << 20 // bytes of one node or message in the file; a larger one ends the import
	maxLiteral   = 256     // bytes of a number or a name like true
	maxID        = 200     // bytes of an identifier
	maxModelName = 100
)

var (
	errValueTooLarge = protocol.Errorf(protocol.CodeInvalid, "a value of the file is larger than %d MiB", maxValue>>20)
	errLiteral       = protocol.Errorf(protocol.CodeInvalid, "the file is not JSON")
)

// limiter passes JSON through. It cuts each string to maxString bytes, and fails when a value has more than maxValue
// bytes, so that a decoder, which buffers strings and values, needs bounded memory.
type limiter struct {
	from *bufio.Reader
	left int // bytes that the current value may still have
	err  error
	cut  int // strings that were cut

	// The position in the text.
	inString, escaped, cutting, space bool
	hex, length                       int // of a \u escape that are left; of the string or the literal
}

func newLimiter(from io.Reader) *limiter {
	const size = 64 << 10
	return &limiter{from: bufio.NewReaderSize(from, size), left: maxValue}
}

// next starts a new value.
func (l *limiter) next() { l.left = maxValue }

// Read implements io.Reader.
func (l *limiter) Read(p []byte) (n int, err error) {
	for n < len(p) && l.err == nil {
		if n > 0 && l.from.Buffered() == 0 {
			break
		}
		var c byte
		if c, l.err = l.from.ReadByte(); l.err == nil && l.keep(c) {
			p[n] = c
			n++
			if l.left--; l.left < 0 {
				l.err = errValueTooLarge
			}
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, l.err
}

// keep follows the text and reports whether a byte of it is passed on.
func (l *limiter) keep(c byte) bool {
	if l.inString {
		return l.keepInString(c)
	}
	switch c {
	case ' ', '\t', '\r', '\n':
		again := l.space
		l.space, l.length = true, 0
		return !again
	case '"':
		l.inString, l.length = true, 0
	case '{', '}', '[', ']', ',', ':':
		l.length = 0
	default:
		if l.length++; l.length > maxLiteral {
			l.err = errLiteral
		}
	}
	l.space = false
	return true
}

func (l *limiter) keepInString(c byte) bool {
	start := !l.escaped && l.hex == 0 // c starts a character or an escape, or continues a character
	switch {
	case l.escaped:
		if l.escaped = false; c == 'u' {
			l.hex = 4
		}
	case c == '"':
		l.inString, l.cutting, l.length, l.hex = false, false, 0, 0
		return true
	case c == '\\':
		l.escaped, l.hex = true, 0
	case l.hex > 0:
		l.hex--
	}
	const continuation = 0xc0 // and 0x80: a byte within a character
	if l.length++; l.length > maxString && start && !l.cutting && c&continuation != 0x80 {
		l.cutting = true
		l.cut++
	}
	return !l.cutting
}
