// Package words cuts texts into the words by which they are found: search and the choice of passages for a model compare the
// same ones, so a file that is found for a question is also shown for it.
//
// Words are compared without case, accents and compatibility forms. In scripts without spaces, and in Korean, whose words
// carry suffixes, every two adjacent characters count as a word.
package words

import (
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
	At    int // number of the word in the text; every character of a script without spaces counts as a word
	Start int // range in the text, in code points
	Mid   int // end of the first of two characters; otherwise equal to End
	End   int
}

// Tokenizer cuts a text into tokens. It does the same for texts and for queries. Its zero value is ready to use.
type Tokenizer struct {
	Wants  func(text []byte) bool // which tokens are kept; nil: all. text is only valid during the call
	Tokens []Token
	Next   int // position of the next token
	offset int // of the current character, in code points

	word      []byte // the current word, folded
	wordRunes int
	wordStart int
	run       []unspacedRune // the current run of a script without spaces
	scratch   []byte
}

type unspacedRune struct {
	text       rune
	start, end int
}

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
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	if len(t.run) > 0 {
		t.endRun()
	}
	switch {
	case InWord(rune(c)):
		t.letter(rune(c))
	case len(t.word) > 0:
		t.endWord()
	}
}

// End ends the text, or a part of it.
func (t *Tokenizer) End() {
	t.endWord()
	t.endRun()
}

func (t *Tokenizer) character(c rune) {
	t.scratch = Fold(t.scratch[:0], c)
	for rest := t.scratch; len(rest) > 0; {
		folded, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		switch {
		case folded == voicedMark || folded == semiVoicedMark:
			t.voice(folded)
		case Unspaced(folded) && InWord(folded):
			t.endWord()
			t.run = append(t.run, unspacedRune{folded, t.offset, t.offset + 1})
			if len(t.run) > 2 { // only the last character can still change
				t.pair(t.run[0], t.run[1:2])
				t.run = append(t.run[:0], t.run[1:]...)
			}
		case InWord(folded):
			t.endRun()
			t.letter(folded)
		default:
			t.endWord()
			t.endRun()
		}
	}
}

// letter adds a folded character to the current word.
func (t *Tokenizer) letter(folded rune) {
	if len(t.word) == 0 {
		t.wordStart, t.wordRunes = t.offset, 0
	}
	if t.wordRunes++; t.wordRunes <= MaxRunes {
		t.word = utf8.AppendRune(t.word, folded)
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

func (t *Tokenizer) endWord() {
	if len(t.word) == 0 {
		return
	}
	t.keep(t.word, Token{At: t.Next, Start: t.wordStart, Mid: t.offset, End: t.offset})
	t.Next++
	t.word = t.word[:0]
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
