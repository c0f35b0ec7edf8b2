package policy

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
)

const (
	// decodedWord is the length, in bytes, of a private word in decoded data. A shorter one may be there by chance.
	decodedWord = 5
	// decodedPart is the length, in bytes, of a part of a private text in decoded data.
	decodedPart = 6
	// maxCompared limits the decoded parts that are searched for in all private texts, the longest first: a long text without
	// encoded data has many short ones.
	maxCompared = 64
)

// encoding is a form in which private data may leave.
type encoding struct {
	digit  func(c rune) rune // the character of its alphabet; -1: none
	block  int               // every so many characters, a byte begins with a character
	decode func(text string) ([]byte, error)
}

// encodings has an alphabet for each way in which pieces of base64 may be separated.
var encodings = []encoding{
	{base64Digits("+/"), 4, base64.RawStdEncoding.DecodeString},
	{base64Digits("-_"), 4, base64.RawStdEncoding.DecodeString},
	{base64Digits(""), 4, base64.RawStdEncoding.DecodeString},
	{base32Digit, 8, base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString},
	{hexDigit, 2, hex.DecodeString},
}

func base64Digits(last string) func(rune) rune {
	return func(c rune) rune {
		switch at := strings.IndexRune(last, c); {
		case at >= 0:
			return rune("+/"[at])
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			return c
		}
		return -1
	}
}

func base32Digit(c rune) rune {
	switch {
	case c >= '2' && c <= '7' || c >= 'A' && c <= 'Z':
		return c
	case c >= 'a' && c <= 'z':
		return c - 'a' + 'A'
	}
	return -1
}

func hexDigit(c rune) rune {
	if c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' {
		return c
	}
	return -1
}

// decoded returns the readable parts of a text as each encoding. What separates the pieces of encoded data does not matter,
// nor does what precedes it.
func decoded(text string) (parts []string) {
	for _, e := range encodings {
		digits := strings.Map(e.digit, text)
		for start := range min(e.block, len(digits)) {
			data, err := e.decode(digits[start:])
			for end := len(digits) - 1; err != nil && end > start && end > len(digits)-e.block; end-- { // half a byte is left
				data, err = e.decode(digits[start:end])
			}
			parts = append(parts, readable(string(data))...)
		}
	}
	return parts
}

// readable returns the parts of decoded data that are text.
func readable(data string) (parts []string) {
	for part := range strings.FieldsFuncSeq(data, func(c rune) bool { return c == unicode.ReplacementChar || !unicode.IsPrint(c) && !unicode.IsSpace(c) }) {
		if len(part) >= telling {
			parts = append(parts, part)
		}
	}
	return parts
}

// encoded returns the parts of private texts that a text has in encoded form, and that the user has not written. Data in no
// context is as telling as a sentence, so a word or a part of one is enough.
func (r *Reading) encoded(text string) (found []string) {
	var parts []string
	for _, part := range decoded(text) {
		if word := r.telling(part); word != "" {
			found = append(found, word)
		} else if part = strings.TrimSpace(part); len(part) >= decodedPart {
			parts = append(parts, part)
		}
	}
	slices.SortStableFunc(parts, func(a, b string) int { return len(b) - len(a) })
	for _, part := range parts[:min(len(parts), maxCompared)] {
		if contains(r.Private, part) && !contains(r.User, part) {
			found = append(found, part)
		}
	}
	return found
}

// telling returns the first private word or number of decoded data.
func (r *Reading) telling(part string) string {
	for _, word := range wordsOf(part) {
		if (len(word) >= decodedWord || len(word) >= telling && hasDigit(word)) && r.privateWords.has(word) && !r.userWords.has(word) {
			return word
		}
	}
	for _, number := range numbersOf(part) {
		if r.privateWords.hasNumber(number) && !r.userWords.hasNumber(number) {
			return number
		}
	}
	return ""
}
