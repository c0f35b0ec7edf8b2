package search

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTokenRunes is the length to which longer words are cut, in the index as in queries.
const maxTokenRunes = 64

// token is one entry of the index: a word, or in scripts without spaces two adjacent characters. The last character of
// a run of such a script is a token of its own, so that every character starts a token. A query for one character then
// is a query for a prefix.
type token struct {
	text  string
	at    int // number of the word in the text; every character of a script without spaces counts as a word
	start int // range in the text, in code points
	mid   int // end of the first of two characters; otherwise equal to end
	end   int
}

// tokenizer cuts a text into tokens. It does the same for texts and for queries.
type tokenizer struct {
	wants  func(text []byte) bool // which tokens are kept; nil: all
	tokens []token
	next   int // position of the next token
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

// tokenize returns the tokens of a text in the order of their positions. Offsets count the code points of the text in
// normal form C (see normalize).
func tokenize(text string) []token {
	var t tokenizer
	t.add(text)
	return t.tokens
}

// normalize returns the form of a text to which the offsets of its tokens refer.
func normalize(text string) string { return norm.NFC.String(text) }

// partGap separates the positions of two parts, so that no phrase reaches from one into the next.
const partGap = 8

// gap ends a part.
func (t *tokenizer) gap() {
	if t.next > 0 {
		t.next += partGap
	}
}

// add appends the tokens of a normalized text.
func (t *tokenizer) add(text string) {
	t.feed([]byte(text))
	t.end()
}

// feed appends the tokens of a piece of a normalized text, except those that may continue in the next piece. A piece ends
// with a whole character.
func (t *tokenizer) feed(text []byte) {
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
func (t *tokenizer) ascii(c byte) {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	if len(t.run) > 0 {
		t.endRun()
	}
	switch {
	case inWord(rune(c)):
		t.letter(rune(c))
	case len(t.word) > 0:
		t.endWord()
	}
}

// end ends the text, or a part of it.
func (t *tokenizer) end() {
	t.endWord()
	t.endRun()
}

func (t *tokenizer) character(c rune) {
	t.scratch = fold(t.scratch[:0], c)
	for rest := t.scratch; len(rest) > 0; {
		folded, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		switch {
		case folded == voicedMark || folded == semiVoicedMark:
			t.voice(folded)
		case unspaced(folded) && inWord(folded):
			t.endWord()
			t.run = append(t.run, unspacedRune{folded, t.offset, t.offset + 1})
			if len(t.run) > 2 { // only the last character can still change
				t.pair(t.run[0], t.run[1:2])
				t.run = append(t.run[:0], t.run[1:]...)
			}
		case inWord(folded):
			t.endRun()
			t.letter(folded)
		default:
			t.endWord()
			t.endRun()
		}
	}
}

// letter adds a folded character to the current word.
func (t *tokenizer) letter(folded rune) {
	if len(t.word) == 0 {
		t.wordStart, t.wordRunes = t.offset, 0
	}
	if t.wordRunes++; t.wordRunes <= maxTokenRunes {
		t.word = utf8.AppendRune(t.word, folded)
	}
}

// The marks that half-width kana write as a character of their own.
const (
	voicedMark     = 0x3099
	semiVoicedMark = 0x309a
)

// voice adds a mark to the kana before it.
func (t *tokenizer) voice(mark rune) {
	if len(t.run) == 0 {
		return
	}
	last := &t.run[len(t.run)-1]
	if voiced := []rune(norm.NFC.String(string([]rune{last.text, mark}))); len(voiced) == 1 {
		last.text, last.end = voiced[0], t.offset+1
	}
}

func (t *tokenizer) endWord() {
	if len(t.word) == 0 {
		return
	}
	t.keep(t.word, token{at: t.next, start: t.wordStart, mid: t.offset, end: t.offset})
	t.next++
	t.word = t.word[:0]
}

func (t *tokenizer) endRun() {
	for i, c := range t.run {
		t.pair(c, t.run[i+1:min(i+2, len(t.run))])
	}
	t.run = t.run[:0]
}

// pair appends the token of a character of a run and the one after it, if there is one.
func (t *tokenizer) pair(c unspacedRune, next []unspacedRune) {
	found := token{at: t.next, start: c.start, mid: c.end, end: c.end}
	text := utf8.AppendRune(t.word[:0], c.text) // no word is open within a run
	for _, second := range next {
		text, found.end = utf8.AppendRune(text, second.text), second.end
	}
	t.keep(text, found)
	t.next++
	t.word = text[:0]
}

func (t *tokenizer) keep(text []byte, found token) {
	if t.wants == nil || t.wants(text) {
		found.text = string(text)
		t.tokens = append(t.tokens, found)
	}
}
