// Package clip returns the beginnings of texts that are too long. It does not decide how long a text may be.
package clip

import (
	"strings"
	"unicode/utf8"
)

// Runes returns the first characters of a text, at most limit.
func Runes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for at := range text {
		if limit <= 0 {
			return text[:at]
		}
		limit--
	}
	return text
}

// Ellipsis returns a text of at most limit characters. If the text has more, the last of them is "…".
func Ellipsis(text string, limit int) string {
	if short := Runes(text, limit); short != text {
		return strings.TrimSpace(Runes(text, limit-1)) + "…"
	}
	return text
}

// Bytes returns the whole characters in the first limit bytes of a text. What is no UTF-8 is cut anywhere.
func Bytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for end := limit; end >= 0 && end > limit-utf8.UTFMax; end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:limit]
}
