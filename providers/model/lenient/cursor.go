package lenient

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Cursor is a fast parser for the few JSON shapes that make up most of an answer. It is strict: it fails on anything
// unexpected, and the caller then passes the whole text to a real decoder. A text on which it fails may still be valid.
// A text that it has read to the end without failing is valid JSON with the content that it returned.
type Cursor struct {
	data   []byte
	at     int
	fresh  bool // directly after an opening bracket
	failed bool
}

// NewCursor returns a cursor at the start of data.
func NewCursor(data []byte) Cursor { return Cursor{data: data} }

// Fail makes the cursor fail.
func (c *Cursor) Fail() { c.failed = true }

func (c *Cursor) peek() byte {
	for !c.failed && c.at < len(c.data) {
		switch b := c.data[c.at]; b {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return b
		}
	}
	return 0
}

// Open steps into an object ('{') or an array ('[').
func (c *Cursor) Open(bracket byte) {
	if c.peek() != bracket {
		c.failed = true
		return
	}
	c.at++
	c.fresh = true
}

// more reports whether another item follows. It steps over the comma before that item, or over the closing bracket.
func (c *Cursor) more(closing byte) bool {
	b := c.peek()
	fresh := c.fresh
	c.fresh = false
	switch {
	case c.failed:
		return false
	case b == closing:
		c.at++
		return false
	case fresh:
		return true
	case b != ',':
		c.failed = true
		return false
	}
	c.at++
	return true
}

// Key returns the name of the object's next member, or nil at the end of the object. It fails on a name that contains
// an escape.
func (c *Cursor) Key() []byte {
	if !c.more('}') {
		return nil
	}
	raw := c.String()
	for _, b := range raw {
		if b == '\\' {
			c.failed = true
		}
	}
	if c.peek() != ':' || len(raw) == 0 {
		c.failed = true
	}
	if c.failed {
		return nil
	}
	c.at++
	return raw
}

// Element reports whether the array has another element.
func (c *Cursor) Element() bool { return c.more(']') }

// String returns the content of a string without its quotes. Escapes are not decoded.
func (c *Cursor) String() []byte {
	if c.peek() != '"' {
		c.failed = true
		return nil
	}
	begin := c.at + 1
	for i := begin; i < len(c.data); i++ {
		switch b := c.data[i]; {
		case b == '"':
			c.at = i + 1
			return c.data[begin:i]
		case b < ' ':
			c.failed = true
			return nil
		case b == '\\':
			n := escapeLength(c.data[i:])
			if n == 0 {
				c.failed = true
				return nil
			}
			i += n - 1
		}
	}
	c.failed = true
	return nil
}

// escapeLength returns the number of bytes of the escape at the start of data, or 0 if there is no valid one.
func escapeLength(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(data[2:]); ok {
			return 6
		}
	}
	return 0
}

func hex4(data []byte) (r rune, ok bool) {
	if len(data) < 4 {
		return 0, false
	}
	for _, b := range data[:4] {
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b >= 'a' && b <= 'f':
			b -= 'a' - 10
		case b >= 'A' && b <= 'F':
			b -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(b)
	}
	return r, true
}

// maxDigits limits the digits of an integer, so that it fits in an int64.
const maxDigits = 18

// Integer steps over an integer that is not negative.
func (c *Cursor) Integer() {
	c.peek()
	begin := c.at
	for c.at < len(c.data) && c.data[c.at] >= '0' && c.data[c.at] <= '9' {
		c.at++
	}
	if n := c.at - begin; n == 0 || n > maxDigits || n > 1 && c.data[begin] == '0' {
		c.failed = true
	}
}

// Zero steps over the number 0.
func (c *Cursor) Zero() {
	if c.peek() != '0' {
		c.failed = true
		return
	}
	c.Integer()
}

// Null steps over null.
func (c *Cursor) Null() {
	if c.peek() != 'n' || c.at+4 > len(c.data) || string(c.data[c.at:c.at+4]) != "null" {
		c.failed = true
		return
	}
	c.at += 4
}

// OptionalString returns a string, or nil for null.
func (c *Cursor) OptionalString() []byte {
	if c.peek() == 'n' {
		c.Null()
		return nil
	}
	return c.String()
}

// EmptyArray steps over [] or null.
func (c *Cursor) EmptyArray() {
	if c.peek() == 'n' {
		c.Null()
		return
	}
	if c.Open('['); c.Element() {
		c.failed = true
	}
}

// End reports whether the whole text was read without failing.
func (c *Cursor) End() bool {
	c.peek()
	return !c.failed && c.at == len(c.data)
}

// AppendUnquoted decodes raw, the content of a JSON string without its quotes, and appends the result to to. It returns
// false for input that decoders treat differently: bytes that are not UTF-8, and halves of surrogate pairs.
func AppendUnquoted(to, raw []byte) ([]byte, bool) {
	for len(raw) > 0 {
		plain := 0
		ascii := true
		for plain < len(raw) && raw[plain] != '\\' {
			ascii = ascii && raw[plain] < utf8.RuneSelf
			plain++
		}
		if !ascii && !utf8.Valid(raw[:plain]) {
			return to, false
		}
		to = append(to, raw[:plain]...)
		if raw = raw[plain:]; len(raw) == 0 {
			break
		}
		var n int
		if to, n = appendEscape(to, raw); n == 0 {
			return to, false
		}
		raw = raw[n:]
	}
	return to, true
}

// appendEscape decodes and appends the escape at the start of raw. It returns the number of bytes of the escape, or 0
// if it does not decode the escape.
func appendEscape(to, raw []byte) ([]byte, int) {
	n := escapeLength(raw)
	if n == 0 {
		return to, 0
	}
	switch raw[1] {
	case 'b':
		return append(to, '\b'), n
	case 'f':
		return append(to, '\f'), n
	case 'n':
		return append(to, '\n'), n
	case 'r':
		return append(to, '\r'), n
	case 't':
		return append(to, '\t'), n
	case 'u':
		return appendRune(to, raw)
	}
	return append(to, raw[1]), n
}

// appendRune decodes and appends \uXXXX, or a surrogate pair of two such escapes. It has the same results as
// appendEscape.
func appendRune(to, raw []byte) ([]byte, int) {
	r, _ := hex4(raw[2:])
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(to, r), 6
	}
	if len(raw) < 12 || raw[6] != '\\' || raw[7] != 'u' {
		return to, 0
	}
	low, ok := hex4(raw[8:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return to, 0
	}
	return utf8.AppendRune(to, r), 12
}
