// Package words cuts texts into the words by which they are found: search and the choice of passages for a model compare the
// same ones, so a file that is found for a question is also shown for it.
//
// Words are compared without case, accents and compatibility forms. In scripts without spaces, and in Korean, whose words
// carry suffixes, every two adjacent characters count as a word.
//
// It knows no language: package search finds other forms of a word and mistyped ones. It is pure.
package words

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxRunes is the length to which longer words are cut, in the index as in queries.
const MaxRunes = 64

// Token is a word of a text, or in scripts without spaces two adjacent characters. The last character of
// a run of such a script is a token of its own, so that every character starts a token. A query for one character then
// is a query for a prefix.
type Token struct {
	Text  string
	Part  bool // a part of the word whose token follows at the same position: "server" of "HttpServer", "c" of "C++"
	At    int  // number of the word in the text; every character of a script without spaces counts as a word
	Start int  // range in the text, in code points
	Mid   int  // end of the first of two characters; otherwise equal to End
	End   int
}

// Tokenizer cuts a text into tokens. It does the same for texts and for queries. Its zero value is ready to use.
type Tokenizer struct {
	Wants  func(text []byte) bool // which tokens are kept; nil: all. text is only valid during the call
	Stems  *Stems                 // nil: words have no tokens of their other forms
	Tokens []Token
	Next   int // position of the next token
	offset int // of the current character, in code points

	word      []byte // the current word, folded
	wordRunes int
	wordStart int
	parts     []wordPart    // of the current word that begin with a capital letter, without the first one
	last      wordPart      // its last character
	cases     [2]letterCase // of its last character, and of the one before it
	sign      byte          // after its letters: + or #
	signs     int           // how many
	number    bool          // it has a digit
	virama    bool          // it has a virama of Devanagari
	dotted    bool          // a dot precedes it, as in .NET
	before    preceding
	run       []unspacedRune // the current run of a script without spaces
	scratch   []byte
	named     []byte // the last word with signs
	raw       []byte // the current word in lower case, if there are stems
}

type unspacedRune struct {
	text       rune
	start, end int
}

// wordPart is where a part of a word begins.
type wordPart struct{ at, start int } // in the folded word, and in the text

type letterCase uint8

const (
	otherCase letterCase = iota
	lowerCase
	upperCase
)

// preceding is what precedes the current character.
type preceding uint8

const (
	noWord  preceding = iota // nothing, or a character that is neither of a word nor a dot
	oneDot                   // a dot after noWord
	another                  // a word, or a dot after something else
)

// Tokenize returns the tokens of a text in the order of their positions. Offsets count the code points of the text in
// normal form C (see Normalize).
func Tokenize(text string) []Token {
	var t Tokenizer
	t.Add(text)
	return t.Tokens
}

// Normalize returns the form of a text to which the offsets of its tokens refer.
func Normalize(text string) string { return norm.NFC.String(text) }

// partGap separates the positions of two parts, so that no phrase reaches from one into the next.
const partGap = 8

// Offset returns how many code points were fed.
func (t *Tokenizer) Offset() int { return t.offset }

// Gap is called between two parts that a number of characters separates.
func (t *Tokenizer) Gap(separator int) {
	t.offset += separator
	t.before = noWord
	if t.Next > 0 {
		t.Next += partGap
	}
}

// Add appends the tokens of a normalized text.
func (t *Tokenizer) Add(text string) {
	t.Feed([]byte(text))
	t.End()
}

// Feed appends the tokens of a piece of a normalized text, except those that may continue in the next piece. A piece ends
// with a whole character.
func (t *Tokenizer) Feed(text []byte) {
	for len(text) > 0 {
		c, size := rune(text[0]), 1
		if c < utf8.RuneSelf {
			t.ascii(text[0])
		} else {
			c, size = utf8.DecodeRune(text)
			t.character(c)
		}
		text = text[size:]
		t.offset++
	}
}

// ascii is character for one that is folded to at most one other. Most texts have many of them.
func (t *Tokenizer) ascii(c byte) {
	if len(t.run) > 0 {
		t.endRun()
	}
	switch {
	case 'a' <= c && c <= 'z':
		if t.cases[0] == lowerCase && t.signs == 0 && t.wordRunes < MaxRunes && len(t.word) > 0 { // most letters: no part begins here
			t.word = append(t.word, c)
			t.wordRunes++
			t.keepRaw(c)
		} else {
			t.letter(rune(c), lowerCase)
			t.keepRaw(c)
		}
	case 'A' <= c && c <= 'Z':
		t.letter(rune(c+'a'-'A'), upperCase)
		t.keepRaw(c + 'a' - 'A')
	case '0' <= c && c <= '9':
		t.letter(rune(c), otherCase)
		t.number = true
	default:
		t.separate(c)
	}
}

func (t *Tokenizer) keepRaw(c byte) {
	if t.Stems != nil {
		t.raw = append(t.raw, c)
	}
}

// separate takes a character that is no part of a word, unless it is one of the signs with which some names end: C++, C#.
func (t *Tokenizer) separate(c byte) {
	if len(t.word) > 0 {
		if !t.number && (c == '+' || c == '#') && (t.signs == 0 || t.signs == 1 && c == '+' && t.sign == '+') {
			t.sign = c
			t.signs++
			return
		}
		t.endWord()
	}
	switch {
	case c != '.':
		t.before = noWord
	case t.before == noWord:
		t.before = oneDot
	default:
		t.before = another
	}
}

// End ends the text, or a part of it.
func (t *Tokenizer) End() {
	t.endWord()
	t.endRun()
}

func (t *Tokenizer) character(c rune) {
	t.scratch = Fold(t.scratch[:0], c)
	kept := false
	for rest := t.scratch; len(rest) > 0; {
		folded, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		switch {
		case folded == voicedMark || folded == semiVoicedMark:
			t.voice(folded)
		case Unspaced(folded) && InWord(folded):
			t.endWord()
			t.before = another
			t.run = append(t.run, unspacedRune{folded, t.offset, t.offset + 1})
			if len(t.run) > 2 { // only the last character can still change
				t.pair(t.run[0], t.run[1:2])
				t.run = append(t.run[:0], t.run[1:]...)
			}
		case InWord(folded):
			t.endRun()
			t.letter(folded, caseOf(c))
			t.virama = t.virama || folded == virama
			if t.Stems != nil && !kept {
				t.raw = append(t.raw, string(unicode.ToLower(c))...)
				kept = true
			}
		default:
			t.endRun()
			t.separate(' ')
		}
	}
}

func caseOf(c rune) letterCase {
	switch {
	case unicode.IsUpper(c):
		return upperCase
	case unicode.IsLower(c):
		return lowerCase
	}
	return otherCase
}

// letter adds a folded character to the current word.
func (t *Tokenizer) letter(folded rune, of letterCase) {
	if t.signs > 0 { // C#7, a+b: the signs separate words. C++11: they belong to the first
		t.finish(t.signs == 2)
	}
	here := wordPart{len(t.word), t.offset}
	switch {
	case len(t.word) == 0:
		t.wordStart, t.wordRunes, t.raw = t.offset, 0, t.raw[:0]
		t.dotted = t.before == oneDot && of != otherCase
		t.cases = [2]letterCase{}
	case of == upperCase && t.cases[0] == lowerCase: // httpServer
		t.begins(here)
	case of == lowerCase && t.cases[0] == upperCase && t.cases[1] == upperCase: // HTTPServer
		t.begins(t.last)
	}
	t.last, t.cases = here, [2]letterCase{of, t.cases[0]}
	if t.wordRunes++; t.wordRunes <= MaxRunes {
		t.word = utf8.AppendRune(t.word, folded)
	}
}

// begins notes the beginning of a part of the current word.
func (t *Tokenizer) begins(at wordPart) {
	if t.wordRunes < MaxRunes && at.at > 0 {
		t.parts = append(t.parts, at)
	}
}

// The marks that half-width kana write as a character of their own.
const (
	voicedMark     = 0x3099
	semiVoicedMark = 0x309a
)

// voice adds a mark to the kana before it.
func (t *Tokenizer) voice(mark rune) {
	if len(t.run) == 0 {
		return
	}
	last := &t.run[len(t.run)-1]
	if voiced := []rune(norm.NFC.String(string([]rune{last.text, mark}))); len(voiced) == 1 {
		last.text, last.end = voiced[0], t.offset+1
	}
}

func (t *Tokenizer) endWord() { t.finish(true) }

// finish ends the current word; signed: with the signs after it.
func (t *Tokenizer) finish(signed bool) {
	if len(t.word) == 0 {
		return
	}
	if len(t.parts) == 0 && !t.virama && !t.dotted && t.signs == 0 { // most words
		end := max(t.offset, t.wordStart+1) // a character may be folded to several words: "½"
		t.keepForms(end)
		t.keep(t.word, Token{At: t.Next, Start: t.wordStart, Mid: end, End: end})
		t.Next++
		t.word, t.number, t.before = t.word[:0], false, another
		return
	}
	end := max(t.offset-t.signs, t.wordStart+1)
	if len(t.parts) > 0 {
		t.keepParts(end)
	} else if t.virama {
		t.word = foldNasals(t.word)
	}
	if !t.dotted && (!signed || t.signs == 0) {
		t.keep(t.word, Token{At: t.Next, Start: t.wordStart, Mid: end, End: end})
	} else {
		t.keepNamed(end, signed)
	}
	t.Next++
	t.word, t.number, t.before = t.word[:0], false, another
	t.parts, t.signs, t.virama, t.dotted = t.parts[:0], 0, false, false
}

// keepForms appends the tokens of the other forms of a word.
func (t *Tokenizer) keepForms(end int) {
	if t.Stems == nil || t.number || t.wordRunes > MaxRunes {
		return
	}
	for _, text := range t.Stems.of(t.raw, t.word) {
		t.keep([]byte(text), Token{Part: true, At: t.Next, Start: t.wordStart, Mid: end, End: end})
	}
}

// keepParts appends the tokens of the parts of a word.
func (t *Tokenizer) keepParts(end int) {
	part := wordPart{0, t.wordStart}
	for _, next := range append(t.parts, wordPart{len(t.word), end}) {
		if next.start-part.start > 1 { // one letter is no word
			t.keep(t.word[part.at:next.at], Token{Part: true, At: t.Next, Start: part.start, Mid: next.start, End: next.start})
		}
		part = next
	}
}

// keepNamed appends the token of a word with the signs around it, and the token of the word alone.
func (t *Tokenizer) keepNamed(end int, signed bool) {
	t.keep(t.word, Token{Part: true, At: t.Next, Start: t.wordStart, Mid: end, End: end})
	start, name := t.wordStart, t.named[:0]
	if t.dotted {
		start, name = start-1, append(name, '.')
	}
	name = append(name, t.word...)
	if signed {
		for range t.signs {
			name = append(name, t.sign)
		}
		end += t.signs
	}
	t.keep(name, Token{At: t.Next, Start: start, Mid: end, End: end})
	t.named = name
}

func (t *Tokenizer) endRun() {
	for i, c := range t.run {
		t.pair(c, t.run[i+1:min(i+2, len(t.run))])
	}
	t.run = t.run[:0]
}

// pair appends the token of a character of a run and the one after it, if there is one.
func (t *Tokenizer) pair(c unspacedRune, next []unspacedRune) {
	found := Token{At: t.Next, Start: c.start, Mid: c.end, End: c.end}
	text := utf8.AppendRune(t.word[:0], c.text) // no word is open within a run
	for _, second := range next {
		text, found.End = utf8.AppendRune(text, second.text), second.end
	}
	t.keep(text, found)
	t.Next++
	t.word = text[:0]
}

func (t *Tokenizer) keep(text []byte, found Token) {
	if t.Wants == nil || t.Wants(text) {
		found.Text = string(text)
		t.Tokens = append(t.Tokens, found)
	}
}
