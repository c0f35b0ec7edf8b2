package evidence

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"turnstone/protocol/words"
)

// token is a word of a text, or one character of a script without spaces, with its range in the text. Package words has the same
// words, but counts code points of normalized texts.
type token struct {
	text       string // folded
	start, end int
	unspaced   bool
}

// eachToken calls visit for the tokens of a text until it returns false. markdown leaves out what readers of a Markdown text do
// not see: the targets of links, and HTML tags.
func eachToken(text string, markdown bool, visit func(t token) bool) {
	l := lexer{text: text, visit: visit, markdown: markdown}
	l.run()
}

type lexer struct {
	text     string
	markdown bool
	visit    func(t token) bool
	word     []byte // the current word, folded
	runes    int
	start    int
	end      int
	stopped  bool
	scratch  []byte
}

func (l *lexer) run() {
	for at := 0; at < len(l.text) && !l.stopped; {
		if l.markdown {
			if skip := hiddenMarkup(l.text, at); skip > 0 {
				l.endWord()
				at += skip
				continue
			}
		}
		if skip := lineBreakInWord(l.text, at); skip > 0 && len(l.word) > 0 {
			at += skip
			continue
		}
		at += l.character(at)
	}
	l.endWord()
}

// character adds a character with the marks that follow it, and returns their length.
func (l *lexer) character(at int) int {
	c := l.text[at]
	if c < utf8.RuneSelf {
		if at+1 == len(l.text) || l.text[at+1] < utf8.RuneSelf {
			l.fold(rune(c), at, at+1)
			return 1
		}
	}
	size := max(1, norm.NFC.NextBoundaryInString(l.text[at:], true))
	if r, n := utf8.DecodeRuneInString(l.text[at:]); n == size {
		l.fold(r, at, at+n)
		return n
	}
	for _, r := range norm.NFC.String(l.text[at : at+size]) {
		l.fold(r, at, at+size)
	}
	return size
}

func (l *lexer) fold(c rune, start, end int) {
	l.scratch = words.Fold(l.scratch[:0], c)
	for rest := l.scratch; len(rest) > 0; {
		folded, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		switch {
		case !words.InWord(folded):
			l.endWord()
		case words.Unspaced(folded):
			l.endWord()
			if !l.stopped {
				l.stopped = !l.visit(token{string(folded), start, end, true})
			}
		default:
			l.letter(folded, start, end)
		}
	}
}

func (l *lexer) letter(c rune, start, end int) {
	if len(l.word) == 0 {
		l.start, l.runes = start, 0
	}
	if l.runes++; l.runes <= words.MaxRunes {
		l.word = utf8.AppendRune(l.word, c)
	}
	l.end = end
}

func (l *lexer) endWord() {
	if len(l.word) > 0 && !l.stopped {
		l.stopped = !l.visit(token{string(l.word), l.start, l.end, false})
	}
	l.word = l.word[:0]
}

// lineBreakInWord returns the length of a hyphen at the end of a line that divides a word, or 0.
func lineBreakInWord(text string, at int) int {
	if text[at] != '-' {
		return 0
	}
	end := at + 1
	for end < len(text) && (text[end] == ' ' || text[end] == '\r') && end < at+4 {
		end++
	}
	if end+1 < len(text) && text[end] == '\n' && 'a' <= text[end+1] && text[end+1] <= 'z' {
		return end + 1 - at
	}
	return 0
}

// hiddenMarkup returns the length of the markup at a position that readers do not see, or 0.
func hiddenMarkup(text string, at int) int {
	switch text[at] {
	case ']':
		if n := linkTarget(text, at+1); n > 0 {
			return 1 + n
		}
	case '<':
		return htmlTag(text, at)
	}
	return 0
}

// htmlTag returns the length of the HTML tag at a position, or 0.
func htmlTag(text string, at int) int {
	if rest := text[at:]; len(rest) < 3 || rest[1] != '/' && rest[1] != '!' && !isLetter(rest[1]) {
		return 0
	}
	end := strings.IndexAny(text[at+1:], "<>")
	if end < 0 || text[at+1+end] == '<' {
		return 0
	}
	return end + 2
}

// linkTarget returns the length of the target of a link at a position, with its parentheses, or 0. It reads at most to the next
// "]", so that a text of many brackets takes linear time.
func linkTarget(text string, at int) int {
	if at >= len(text) || text[at] != '(' {
		return 0
	}
	depth, titled := 0, false
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth > 0 {
				continue
			}
			if i == at+1 {
				return 0 // it is empty
			}
			return i + 1 - at
		case c == ']' || c == '\n':
			return 0
		case c == ' ' && !titled:
			if titled = i+1 < len(text) && strings.IndexByte("\"'(", text[i+1]) >= 0; !titled {
				return 0
			}
		}
	}
	return 0
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
