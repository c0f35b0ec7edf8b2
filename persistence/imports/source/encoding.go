package source

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// asUTF8 returns the text of a JSON file as UTF-8 without a byte order mark. JSON starts with a character of ASCII, so the
// position of its zero byte shows UTF-16 without a mark. replaced counts the units that are no characters.
func asUTF8(from *bufio.Reader, replaced *int) *bufio.Reader {
	const mark, unit = 3, 2
	start, _ := from.Peek(mark) // an error comes again when the text is read
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		_, _ = from.Discard(mark)
		return from
	case bytes.HasPrefix(start, []byte("\xff\xfe")):
		order = binary.LittleEndian
		_, _ = from.Discard(unit)
	case bytes.HasPrefix(start, []byte("\xfe\xff")):
		order = binary.BigEndian
		_, _ = from.Discard(unit)
	case len(start) >= unit && start[0] != 0 && start[1] == 0:
		order = binary.LittleEndian
	case len(start) >= unit && start[0] == 0 && start[1] != 0:
		order = binary.BigEndian
	default:
		return from
	}
	return bufio.NewReaderSize(&utf16Reader{from: from, order: order, replaced: replaced}, peeked)
}

// utf16Reader reads UTF-16 as UTF-8. What is not valid becomes U+FFFD.
type utf16Reader struct {
	from  *bufio.Reader
	order binary.ByteOrder
	left  []byte // of the last character

	replaced *int
}

// Read implements io.Reader.
func (u *utf16Reader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(u.left) == 0 {
			r, err := u.next()
			if err != nil {
				if n > 0 {
					return n, nil // the error comes again
				}
				return 0, err
			}
			u.left = utf8.AppendRune(u.left, r)
		}
		copied := copy(p[n:], u.left)
		n, u.left = n+copied, u.left[copied:]
	}
	return n, nil
}

func (u *utf16Reader) next() (rune, error) {
	const unit = 2
	first, err := u.from.Peek(unit)
	if len(first) < unit {
		if len(first) == 0 || !errors.Is(err, io.EOF) {
			return 0, err
		}
		_, _ = u.from.Discard(1)
		*u.replaced++
		return utf8.RuneError, nil // half a character
	}
	r := rune(u.order.Uint16(first))
	_, _ = u.from.Discard(unit)
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if second, _ := u.from.Peek(unit); len(second) == unit {
		if pair := utf16.DecodeRune(r, rune(u.order.Uint16(second))); pair != utf8.RuneError {
			_, _ = u.from.Discard(unit)
			return pair, nil
		}
	}
	*u.replaced++
	return utf8.RuneError, nil
}
