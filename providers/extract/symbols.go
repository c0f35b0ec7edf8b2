package extract

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// greek are the letters of the font Symbol, in the places of A to Z and of a to z.
const greek = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ"

// symbols are the characters of fonts of symbols that texts use most: marks, boxes, arrows and signs of mathematics.
var symbols = map[string]map[int]rune{
	"symbol": {
		0x2D: '−', 0x5E: '⊥', 0xA2: '′', 0xA3: '≤', 0xA5: '∞', 0xAB: '↔', 0xAC: '←', 0xAD: '↑', 0xAE: '→', 0xAF: '↓', 0xB0: '°', 0xB1: '±', 0xB2: '″', 0xB3: '≥', 0xB4: '×', 0xB6: '∂',
		0xB7: '•', 0xB8: '÷', 0xB9: '≠', 0xBA: '≡', 0xBB: '≈', 0xBC: '…', 0xC7: '∩', 0xC8: '∪', 0xCE: '∈', 0xCF: '∉', 0xD1: '∇', 0xD5: '∏', 0xD6: '√', 0xDB: '⇔', 0xDE: '⇒', 0xE5: '∑', 0xF2: '∫',
	},
	"wingdings": {
		0x28: '☎', 0x2A: '✉', 0x4A: '☺', 0x4C: '☹', 0x6C: '●', 0x6E: '■', 0x6F: '□', 0x76: '❖', 0x9F: '•', 0xA7: '▪', 0xA8: '◻', 0xD8: '➢', 0xDF: '←', 0xE0: '→', 0xE1: '↑', 0xE2: '↓',
		0xE8: '➔', 0xF0: '⇨', 0xFB: '✗', 0xFC: '✓', 0xFD: '☒', 0xFE: '☑',
	},
	"wingdings 2": {0x4F: '✗', 0x50: '✓', 0x51: '☒', 0x52: '☑', 0x53: '☒', 0x54: '☒', 0xA3: '□'},
}

// symbol returns a character of a font of symbols, by its hexadecimal number; U+FFFD if it is not known.
func symbol(font, number string) rune {
	const private = 0xF000 // where Word has the characters of such fonts
	n, err := strconv.ParseUint(number, 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	at := int(n)
	if at >= private {
		at -= private
	}
	font = strings.ToLower(font)
	known, isKnown := symbols[font]
	if of, is := known[at]; is {
		return of
	}
	letters := []rune(greek)
	const half = 26
	switch {
	case font == "symbol" && at >= 'A' && at <= 'Z':
		return letters[at-'A']
	case font == "symbol" && at >= 'a' && at <= 'z':
		return letters[half+at-'a']
	case (!isKnown || font == "symbol") && n >= ' ' && n < private: // a character of Unicode
		return rune(n)
	}
	return utf8.RuneError
}
