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
	maxMemory    = 64 << 20  // bytes of everything that is kept of a conversation, see the overheads
	maxMessage   = 1 << 20   // bytes of the parts of a message, as JSON; a longer one becomes several
	maxString    = 8 << 20   // bytes of one string of the file
	maxValue     = 8 << 20   // bytes of one node or message of the file
	maxValues    = 20_000    // JSON values in one node or message of the file
	maxLiteral   = 256       // bytes of a number or a name like true
	maxID        = 200       // bytes of an identifier
	maxModelName = 100       // bytes
	maxName      = 255       // characters of the name of a file or a tool, of a language or of a kind
	maxOutput    = 256 << 10 // bytes of the output of a tool
	maxDetails   = 512 << 10 // bytes of the input, the error, the citations and the sources of a part, as JSON
	maxReason    = 1000      // bytes of the reason of a routing
	maxFollowUps = 1000      // also those that were started or cancelled

	// The memory that a message, a part and the name of a branch need besides their texts.
	messageOverhead = 500
	partOverhead    = 500
	branchOverhead  = 100
)

// errLiteral ends the reading of a file.
var errLiteral = protocol.Errorf(protocol.CodeInvalid, "the file is not JSON")

// limiter passes JSON through and cuts each string to maxString bytes. It fails at a number or name that is too long, so
// that a decoder, which buffers them, needs bounded memory.
type limiter struct {
	from *bufio.Reader
	err  error
	cut  int // strings that were cut

	// The position in the text.
	inString, escaped, cutting, space bool
	hex, length                       int // of a \u escape that are left; of the string or the literal
}

func newLimiter(from io.Reader) *limiter {
	const size = 64 << 10
	return &limiter{from: asUTF8(bufio.NewReaderSize(from, size))}
}

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
