package source

import (
	"bufio"
	"io"
	"strconv"
	"unicode/utf8"

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
	from     *bufio.Reader
	err      error
	cut      int // strings that were cut
	replaced int // characters that are not valid: they become U+FFFD
	lines    lines

	position

	// The character of a string, as far as it was read.
	char  [utf8.UTFMax]byte
	bytes int
	code  rune // of a \u escape
	high  bool // the last character is the first half of a pair
}

// position is the position in the text.
type position struct {
	inString, escaped, cutting bool
	space, newline             bool // white space was passed on, and whether an end of line was
	hex, length                int  // of a \u escape that are left; of the string or the literal
}

const peeked = 64 << 10 // bytes that are looked at before the text is read

func newLimiter(from io.Reader) *limiter {
	l := &limiter{}
	l.from = asUTF8(bufio.NewReaderSize(from, peeked), &l.replaced)
	return l
}

// Read implements io.Reader. In a file of lines, it ends at the end of each line.
func (l *limiter) Read(p []byte) (n int, err error) {
	for n < len(p) && l.err == nil && !l.lines.ended {
		if n > 0 && l.from.Buffered() == 0 && len(l.lines.ahead) == 0 {
			break
		}
		if c, keep := l.next(); keep {
			p[n] = c
			n++
		}
	}
	switch {
	case n > 0:
		return n, nil
	case l.lines.ended:
		return 0, io.EOF
	}
	return 0, l.err
}

// next reads a byte, and reports whether it is passed on.
func (l *limiter) next() (c byte, keep bool) {
	if len(l.lines.ahead) > 0 {
		c, keep = l.lines.ahead[0], true
		l.lines.ahead = l.lines.ahead[1:]
	} else {
		if c, l.err = l.from.ReadByte(); l.err != nil {
			return 0, false
		}
		keep = l.keep(c)
	}
	if c == '\n' {
		l.lines.passed++
		l.position = position{space: true, newline: true} // no string of JSON has an end of line
		if l.lines.is {
			l.lines.ended = true
			return 0, false
		}
	}
	return c, keep
}

// keep follows the text and reports whether a byte of it is passed on.
func (l *limiter) keep(c byte) bool {
	if l.inString {
		return l.keepInString(c)
	}
	switch c {
	case ' ', '\t', '\r', '\n':
		again := l.space && (l.newline || c != '\n')
		l.newline = c == '\n' || l.space && l.newline
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
	l.space, l.newline = false, false
	return true
}

func (l *limiter) keepInString(c byte) bool {
	start := !l.escaped && l.hex == 0 // c starts a character or an escape, or continues a character
	if !l.cutting {
		l.validate(c, start)
	}
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

// validate counts the characters of strings that are not valid. start: c is no part of an escape.
func (l *limiter) validate(c byte, start bool) {
	if l.high && (start && c != '\\' || l.escaped && c != 'u') {
		l.replaced, l.high = l.replaced+1, false
	}
	if l.hex > 0 {
		l.validateEscape(c)
	}
	const continuation, mask = 0x80, 0xc0
	if l.bytes > 0 && c&mask != continuation {
		l.replaced, l.bytes = l.replaced+1, 0
	}
	if c < utf8.RuneSelf {
		return
	}
	l.char[l.bytes] = c
	l.bytes++
	if text := l.char[:l.bytes]; utf8.FullRune(text) {
		if _, size := utf8.DecodeRune(text); size < l.bytes || l.bytes == 1 {
			l.replaced++
		}
		l.bytes = 0
	}
}

// validateEscape reads a digit of a \u escape. Half of a pair alone is no character.
func (l *limiter) validateEscape(c byte) {
	const digits, bits = 4, 4
	if l.hex == digits {
		l.code = 0
	}
	digit, err := strconv.ParseUint(string(rune(c)), 16, bits)
	if err != nil {
		return // the decoder fails
	}
	if l.code = l.code<<bits | rune(digit); l.hex > 1 { // a digit
		return
	}
	const firstHigh, firstLow, afterLow = 0xd800, 0xdc00, 0xe000
	isHigh, isLow := l.code >= firstHigh && l.code < firstLow, l.code >= firstLow && l.code < afterLow
	if l.high != isLow { // one half without the other
		l.replaced++
	}
	l.high = isHigh
}
