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
	for _, c := range text {
		t.character(c)
		t.offset++
	}
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
		case inWord(folded):
			t.endRun()
			if len(t.word) == 0 {
				t.wordStart, t.wordRunes = t.offset, 0
			}
			if t.wordRunes++; t.wordRunes <= maxTokenRunes {
				t.word = utf8.AppendRune(t.word, folded)
			}
		default:
			t.endWord()
			t.endRun()
		}
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
	t.tokens = append(t.tokens, token{text: string(t.word), at: t.next, start: t.wordStart, mid: t.offset, end: t.offset})
	t.next++
	t.word = t.word[:0]
}

func (t *tokenizer) endRun() {
	for i, c := range t.run {
		pair := token{text: string(c.text), at: t.next, start: c.start, mid: c.end, end: c.end}
		if i+1 < len(t.run) {
			pair.text += string(t.run[i+1].text)
			pair.end = t.run[i+1].end
		}
		t.tokens = append(t.tokens, pair)
		t.next++
	}
	t.run = t.run[:0]
}
