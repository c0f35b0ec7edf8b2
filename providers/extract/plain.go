package extract

import (
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// readText reads plain text, Markdown, CSV, JSON, source code and other texts, in any encoding that can be recognized.
func readText(t *text, c content) error {
	const most = 4*maxText + utf8.UTFMax // UTF-32 has 4 bytes for a character
	raw, err := io.ReadAll(io.LimitReader(c.reader(), most))
	if err != nil {
		return err
	}
	if from := encodingOf(raw); from != nil {
		if raw, err = from.NewDecoder().Bytes(raw); err != nil {
			return err
		}
	}
	if err := t.write(string(raw)); err != nil {
		return err
	}
	t.truncated = c.size > most
	return nil
}

// marks are the byte order marks of encodings, the longer ones first.
var marks = []struct {
	mark []byte
	of   encoding.Encoding
}{
	{[]byte{0xFF, 0xFE, 0, 0}, utf32.UTF32(utf32.LittleEndian, utf32.ExpectBOM)},
	{[]byte{0, 0, 0xFE, 0xFF}, utf32.UTF32(utf32.BigEndian, utf32.ExpectBOM)},
	{[]byte{0xFF, 0xFE}, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)},
	{[]byte{0xFE, 0xFF}, unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM)},
	{[]byte{0xEF, 0xBB, 0xBF}, unicode.UTF8BOM},
}

// encodingSample is the number of bytes by which the encoding of a text without a mark is recognized.
const encodingSample = 64 << 10

// encodingOf returns the encoding of a text; nil: UTF-8. A text without a mark that is mostly not UTF-8 is UTF-16 if every
// other byte is NUL, and else Windows-1252, which includes Latin-1.
func encodingOf(raw []byte) encoding.Encoding {
	for _, one := range marks {
		if bytes.HasPrefix(raw, one.mark) {
			return one.of
		}
	}
	sample := raw[:min(len(raw), encodingSample)]
	var nuls [2]int
	letters, wrong := 0, 0
	for i, b := range sample {
		if b == 0 {
			nuls[i%2]++
		}
	}
	for rest := sample; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1 && (utf8.FullRune(rest) || len(sample) == len(raw)): // not only cut by the sample
			wrong++
		case n > 1:
			letters++
		}
		rest = rest[n:]
	}
	const often = 3 // a third of the characters are of Latin script
	switch {
	case nuls[1]*2*often > len(sample) && nuls[0] == 0:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case nuls[0]*2*often > len(sample) && nuls[1] == 0:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case wrong > letters:
		return charmap.Windows1252
	}
	return nil
}
