package words

import (
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold appends the form of a character in which texts are compared: without case, accents and compatibility forms. The
// result is empty for a character that does not matter, such as an accent or a soft hyphen, and may be several
// characters ("ß" becomes "ss").
func Fold(dst []byte, c rune) []byte {
	switch {
	case c < utf8.RuneSelf:
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		return append(dst, byte(c))
	case c < foldedRunes:
		return append(dst, foldOnce(int(c>>8), c)...)
	case c >= emoji && c <= lastEmoji && !unicode.Is(ignoredMarks, c):
		return utf8.AppendRune(dst, c)
	case c >= wideForms && c < wideForms+wideCount:
		return append(dst, foldOnce(len(foldBlocks)-1, c)...)
	case c >= 0x4e00 && c <= 0x9fff || c >= 0xac00 && c <= 0xd7a3 || c >= 0x3041 && c <= 0x3096 || c >= 0x30a1 && c <= 0x30fa:
		return utf8.AppendRune(dst, c) // ideographs, Hangul and kana have one form only
	default:
		return append(dst, foldSlowly(c)...)
	}
}

// The characters whose folded form is computed once: the alphabets with case, the punctuation of East Asian texts, and the wide and
// narrow forms of letters and punctuation.
const (
	foldedRunes = 0x3400
	wideForms   = 0xff00
	wideCount   = 0xf0
)

// foldBlock has the folded forms of as many characters that follow each other. All forms together need 20 ms and 6 MB, most
// texts a few blocks.
type foldBlock [256]string

var foldBlocks [foldedRunes>>8 + 1]atomic.Pointer[foldBlock] // the last one has the wide forms

func foldOnce(block int, c rune) string {
	forms := foldBlocks[block].Load()
	if forms == nil { // others may compute the same at the same time
		forms = new(foldBlock)
		for i := range forms {
			forms[i] = foldSlowly(c&^0xff | rune(i))
		}
		foldBlocks[block].Store(forms)
	}
	return forms[c&0xff]
}

func foldSlowly(c rune) string {
	if ignored(c) {
		return ""
	}
	if digit, is := digitOf(c); is {
		return string(digit)
	}
	var kept []byte
	for _, part := range norm.NFKD.String(string(c)) {
		if plain, has := plainLetters[part]; has {
			kept = append(kept, plain...)
		} else if !ignored(part) {
			kept = utf8.AppendRune(kept, part)
		}
	}
	caser := cases.Fold()
	folded := []byte(nil)
	for _, part := range caser.String(string(kept)) {
		if plain, has := plainLetters[part]; has {
			folded = append(folded, plain...)
		} else {
			folded = utf8.AppendRune(folded, part)
		}
	}
	return norm.NFC.String(string(folded))
}

// plainLetters are the letters that readers take for a letter with an accent, or for another one of their script, although Unicode
// does not decompose them.
var plainLetters = map[rune]string{
	'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'ħ': "h", 'ı': "i", 'ŧ': "t", 'æ': "ae", 'œ': "oe", 'þ': "th",
	'ى': "ي", 'ی': "ي", 'ې': "ي", 'ک': "ك", 'ة': "ه", 'ۀ': "ه", 'ە': "ه", 'ہ': "ه", 'ھ': "ه", 'ٱ': "ا", // of Arabic and Persian, which keyboards do not tell apart
	'ँ': "ं", // Hindi is written with either
}

// digitOf returns the ASCII digit for a decimal digit of any script.
func digitOf(c rune) (digit rune, is bool) {
	if c < utf8.RuneSelf || !unicode.Is(unicode.Nd, c) {
		return 0, false
	}
	for _, r := range unicode.Nd.R16 {
		if lo := rune(r.Lo); lo <= c && c <= rune(r.Hi) {
			return '0' + (c-lo)%10, true // each range begins with a zero
		}
	}
	for _, r := range unicode.Nd.R32 {
		if lo := rune(r.Lo); lo <= c && c <= rune(r.Hi) { // a code point
			return '0' + (c-lo)%10, true // below 10
		}
	}
	return 0, false
}

// ignored reports whether a character is left out of a word: an accent, the vowel signs of Arabic and Hebrew, and
// invisible characters. The vowel signs and tone marks of other scripts distinguish words.
func ignored(c rune) bool { return unicode.Is(ignoredMarks, c) }

var ignoredMarks = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
		{Lo: 0x0300, Hi: 0x036f, Stride: 1}, // accents
		{Lo: 0x0483, Hi: 0x0487, Stride: 1},
		{Lo: 0x0591, Hi: 0x05bd, Stride: 1}, // Hebrew
		{Lo: 0x05bf, Hi: 0x05bf, Stride: 1},
		{Lo: 0x05c1, Hi: 0x05c2, Stride: 1},
		{Lo: 0x05c4, Hi: 0x05c5, Stride: 1},
		{Lo: 0x05c7, Hi: 0x05c7, Stride: 1},
		{Lo: 0x0610, Hi: 0x061a, Stride: 1}, // Arabic
		{Lo: 0x0640, Hi: 0x0640, Stride: 1},
		{Lo: 0x064b, Hi: 0x065f, Stride: 1},
		{Lo: 0x0670, Hi: 0x0670, Stride: 1},
		{Lo: 0x06d6, Hi: 0x06dc, Stride: 1},
		{Lo: 0x093c, Hi: 0x093c, Stride: 1}, // the nukta of Hindi, which is often left out
		{Lo: 0x1ab0, Hi: 0x1aff, Stride: 1},
		{Lo: 0x1dc0, Hi: 0x1dff, Stride: 1},
		{Lo: 0x200b, Hi: 0x200f, Stride: 1}, // zero width, direction
		{Lo: 0x202a, Hi: 0x202e, Stride: 1},
		{Lo: 0x2060, Hi: 0x2064, Stride: 1},
		{Lo: 0x20d0, Hi: 0x20ff, Stride: 1},
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, // variation selectors
		{Lo: 0xfe20, Hi: 0xfe2f, Stride: 1},
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1},
	},
	R32:         []unicode.Range32{{Lo: 0x1f3fb, Hi: 0x1f3ff, Stride: 1}}, // the skin tones of emoji
	LatinOffset: 1,
}

// The emoji beyond the basic plane, without the letters of flags.
const (
	emoji     = 0x1f300
	lastEmoji = 0x1faff
)

// IsEmoji reports whether a character is an emoji, or a letter of a flag.
func IsEmoji(c rune) bool {
	return c >= 0x2600 && c <= 0x27bf || c >= emoji && c <= lastEmoji || c >= 0x1f1e6 && c <= 0x1f1ff
}

// IsEmojiForm reports whether a character changes how the emoji before it is shown: its skin tone, or as a picture.
func IsEmojiForm(c rune) bool {
	const lightest, darkest, asText, asPicture = 0x1f3fb, 0x1f3ff, 0xfe0e, 0xfe0f
	return c >= lightest && c <= darkest || c == asText || c == asPicture
}

// Unspaced reports whether a folded character belongs to a script that puts no spaces between words, or whose words
// carry suffixes that readers take for separate words, as Korean does, or is an emoji. Such text is cut into pairs of characters.
func Unspaced(c rune) bool {
	switch {
	case c < 0x0e00:
		return false
	case IsEmoji(c):
		return true
	case c == 'ー' || c == '々' || c == '〆': // of no script, but parts of Japanese words
		return true
	}
	return unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// virama joins consonants in Devanagari.
const virama = '\u094d'

// foldNasals replaces nasal consonants that precede another consonant by the dot with which they are written, too: हिन्दी and हिंदी
// are one word. The result replaces the word in place.
func foldNasals(word []byte) []byte {
	runes := []rune(string(word))
	folded := word[:0]
	for i := 0; i < len(runes); i++ {
		if c := runes[i]; i+2 < len(runes) && runes[i+1] == virama && isNasal(c) && runes[i+2] >= 0x0915 && runes[i+2] <= 0x0939 {
			folded = utf8.AppendRune(folded, 'ं')
			i++
		} else {
			folded = utf8.AppendRune(folded, c)
		}
	}
	return folded
}

func isNasal(c rune) bool { return c == 'ङ' || c == 'ञ' || c == 'ण' || c == 'न' || c == 'म' }

// InWord reports whether a folded character is part of a word.
func InWord(c rune) bool {
	if c < utf8.RuneSelf {
		return 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
	}
	return unicode.IsLetter(c) || unicode.IsNumber(c) || unicode.IsMark(c) || IsEmoji(c)
}
