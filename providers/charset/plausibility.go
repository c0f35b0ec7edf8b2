package charset

import (
	"unicode"
	"unicode/utf8"
)

// plausibility returns the share of the characters outside of ASCII that stand where texts have such characters, from 0 to 1;
// -1 if one cannot be in a text at all.
func plausibility(text string, raw []byte, name string) float64 {
	all, odd := 0, 0
	var before rune
	for _, r := range text {
		switch {
		case r == utf8.RuneError, r >= 0x80 && r < 0xA0, unicode.Is(unicode.Co, r):
			return -1
		case r >= utf8.RuneSelf && unicode.IsDigit(r) && unicode.Is(unicode.Latin, before): // a digit of another script within a word
			const alsoNext = 2 // which it hides
			all, odd = all+1, odd+alsoNext
		case r >= utf8.RuneSelf:
			all++
			if isOdd(before, r) {
				odd++
			}
		case isLetter(before) && before >= utf8.RuneSelf && unicode.IsUpper(r) && unicode.IsLower(before):
			odd++
		}
		before = r
	}
	if all == 0 {
		return 0
	}
	return 1 - min(1, float64(odd+rare(raw, name))/float64(all))
}

// isOdd reports whether a character outside of ASCII seldom follows another one.
func isOdd(before, r rune) bool {
	switch {
	case unicode.Is(unicode.Mn, r) && !isLetter(before): // it is a mark of a letter
		return true
	case unicode.Is(unicode.Katakana, r) && r >= 0xFF61: // half as wide as others, for old screens
		return true
	case !isLetter(r):
		return isLetter(before) && unicode.IsSymbol(r)
	case isLetter(before) && unicode.IsLower(before) && unicode.IsUpper(r):
		return true
	case isLetter(before) && scriptOf(before) != scriptOf(r):
		return true
	}
	return before >= 0xA0 && unicode.IsSymbol(before) && unicode.IsLetter(r) && scriptOf(r) != eastAsian
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// script is a group of letters that words mix.
type script int

const (
	other script = iota
	latin
	cyrillic
	greek
	hebrew
	arabic
	hangul
	thai
	eastAsian
)

func scriptOf(r rune) script {
	switch {
	case unicode.Is(unicode.Latin, r):
		return latin
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillic
	case unicode.Is(unicode.Greek, r):
		return greek
	case unicode.Is(unicode.Hebrew, r):
		return hebrew
	case unicode.Is(unicode.Arabic, r):
		return arabic
	case unicode.Is(unicode.Hangul, r):
		return hangul
	case unicode.Is(unicode.Thai, r):
		return thai
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana), r >= 0x3000 && r <= 0x30FF:
		return eastAsian
	}
	return other
}

// common are the first bytes of the characters that texts use most: the standards of East Asia list these first.
var common = map[string]struct{ from, to byte }{
	"gb18030": {0xB0, 0xD7}, "gbk": {0xB0, 0xD7}, "big5": {0xA4, 0xC6}, "euc-jp": {0xB0, 0xCF}, "euc-kr": {0xB0, 0xC8},
}

// rare counts the characters of two bytes that are not among these, nor signs or kana.
func rare(raw []byte, name string) int {
	of, known := common[name]
	if !known {
		return 0
	}
	n := 0
	for i := 0; i+1 < len(raw); i++ {
		first, second := raw[i], raw[i+1]
		if first < utf8.RuneSelf {
			continue
		}
		isSign := first >= 0xA1 && first <= 0xA5 && first < of.from
		if !isSign && (first < of.from || first > of.to || second < 0xA1 && name != "big5") {
			n++
		}
		i++
	}
	return n
}
