package filetype

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"turnstone/protocol"
)

// MaxName limits the name of a file, in characters.
const MaxName = 255

// The joiners are invisible characters that words of some scripts and emoji are spelled with.
const zeroWidthNonJoiner, zeroWidthJoiner = '\u200C', '\u200D'

// spelled are the scripts whose words have joiners.
var spelled = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil,
	unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
}

// isSpelling reports whether a joiner is a part of a word or an emoji, between two characters.
func isSpelling(joiner, before, after rune) bool {
	isEmoji := func(c rune) bool {
		return unicode.Is(unicode.So, c) || unicode.Is(unicode.Sk, c) && c > unicode.MaxLatin1 || c == '\uFE0F'
	}
	return unicode.In(before, spelled...) && unicode.In(after, spelled...) || joiner == zeroWidthJoiner && isEmoji(before) && (isEmoji(after) || after == '♀' || after == '♂')
}

// CleanName returns a name that is safe to show and to save under: without control characters and characters that
// are invisible or change the direction of the text, but for joiners within words and emoji, and with _ instead of the separators of paths. field names the field
// in the error for a name that is too long, or has nothing left.
func CleanName(field, name string) (string, error) {
	characters, at := []rune(name), -1
	clean := strings.Map(func(c rune) rune {
		at++
		switch {
		case (c == zeroWidthJoiner || c == zeroWidthNonJoiner) && at > 0 && at+1 < len(characters) && isSpelling(c, characters[at-1], characters[at+1]):
			return c
		case c == '/' || c == '\\':
			return '_'
		case unicode.IsSpace(c):
			return ' '
		case unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == utf8.RuneError:
			return -1
		}
		return c
	}, name)
	clean = strings.Join(strings.Fields(clean), " ")
	if strings.Trim(clean, ". ") == "" {
		clean = ""
	}
	if n := utf8.RuneCountInString(clean); n < 1 || n > MaxName {
		return "", protocol.Invalid(field, fmt.Sprintf("must have 1 to %d characters, and not only dots and invisible ones", MaxName))
	}
	return clean, nil
}
