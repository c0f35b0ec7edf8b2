package search

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"turnstone/protocol/words"
)

// query is a parsed query: a text matches if it has all terms and none of the excluded ones.
type query struct {
	terms    []term
	excluded []term
}

// term is a word, a phrase, or a word of several tokens, which counts as a phrase. Its tokens follow one another in the
// text.
type term struct {
	tokens []queryToken
	width  int    // number of positions that it takes in a text
	loose  bool   // it also finds the other forms of its words
	raw    string // as it was typed, of one word that is not in a phrase
}

type queryToken struct {
	text   string
	offset int // positions after the first token
	prefix bool
	forms  []words.Form // by which a loose term finds the word, too
}

const quotes = `"“”„«»`

// parse reads a query. Words are separated by spaces; quotation marks make a phrase; a hyphen before a word or a phrase
// excludes it. The last word matches the words that begin with it, unless it is in quotation marks or excluded. Anything
// else that is no word is left out; a query that has no words has no terms.
func parse(text string) query {
	var q query
	languages := words.QueryLanguages(text)
	rest := []rune(words.Normalize(text))
	for len(rest) > 0 {
		if unicode.IsSpace(rest[0]) {
			rest = rest[1:]
			continue
		}
		excluded := rest[0] == '-' && len(rest) > 1 && (isQuote(rest[1]) || startsWord(rest[1]) || rest[1] == '.' && len(rest) > 2 && startsWord(rest[2]))
		if excluded {
			rest = rest[1:]
		}
		quoted := isQuote(rest[0])
		var found string
		if quoted {
			found, rest = cut(rest[1:], isQuote)
			if len(rest) > 0 {
				rest = rest[1:]
			}
		} else {
			found, rest = cut(rest, func(c rune) bool { return unicode.IsSpace(c) || isQuote(c) })
		}
		if quoted || excluded {
			q.add(found, excluded, false, nil)
		} else {
			q.add(found, false, len(rest) == 0, languages)
		}
	}
	return q
}

func isQuote(c rune) bool { return strings.ContainsRune(quotes, c) }

// startsWord reports whether a word begins with the character.
func startsWord(c rune) bool {
	folded, _ := utf8.DecodeRune(words.Fold(nil, c))
	return words.InWord(folded)
}

// cut splits a text before the first character for which end returns true.
func cut(text []rune, end func(rune) bool) (head string, tail []rune) {
	for i, c := range text {
		if end(c) {
			return string(text[:i]), text[i:]
		}
	}
	return string(text), nil
}

// add adds a word or a phrase. A word has other forms in some languages.
func (q *query) add(text string, excluded, prefix bool, languages []words.Language) {
	tokens := words.Tokenize(text)
	t := newTerm(tokens, prefix)
	if len(t.tokens) == 1 && len(languages) > 0 {
		last := tokens[len(tokens)-1]
		t.raw = string([]rune(text)[last.Start:last.End])
		t.tokens[0].forms = words.Forms(t.raw, languages)
	}
	switch {
	case len(t.tokens) == 0:
	case excluded:
		q.excluded = append(q.excluded, t)
	default:
		q.terms = append(q.terms, t)
	}
}

// newTerm returns the term that finds a text with these tokens. prefix applies to its last word.
func newTerm(tokens []words.Token, prefix bool) term {
	var t term
	tokens = slices.DeleteFunc(tokens, func(found words.Token) bool { return found.Part })
	for i, found := range tokens {
		t.width = found.At - tokens[0].At + 1
		first, size := utf8.DecodeRuneInString(found.Text)
		single := words.Unspaced(first) && size == len(found.Text) // the last character of a run
		if single && i > 0 && tokens[i-1].End == found.End {
			continue // the pair before it contains it
		}
		t.tokens = append(t.tokens, queryToken{
			text: found.Text, offset: found.At - tokens[0].At,
			prefix: single || prefix && i == len(tokens)-1 && !words.Unspaced(first) && (i > 0 || !latinLetter(found.Text)),
		})
	}
	return t
}

// latinLetter reports whether a word is one letter of the Latin alphabet, with which too many words begin.
func latinLetter(text string) bool { return len(text) == 1 && 'a' <= text[0] && text[0] <= 'z' }

// together returns the query for a text in which all terms follow one another, and whole that for a text that has the
// last word as a word of its own. Both are false if they would not distinguish texts that match.
func (q *query) together() (adjacent term, distinguishes bool) {
	for _, t := range q.terms {
		for _, token := range t.tokens {
			token.offset += adjacent.width
			adjacent.tokens = append(adjacent.tokens, token)
		}
		adjacent.width += t.width
	}
	return adjacent, len(q.terms) > 1
}

// whole returns the last term without its prefix, if it has one.
func (q *query) whole() (last term, distinguishes bool) {
	last = q.terms[len(q.terms)-1]
	end := len(last.tokens) - 1
	if first, _ := utf8.DecodeRuneInString(last.tokens[end].text); !last.tokens[end].prefix || words.Unspaced(first) {
		return last, false
	}
	last.tokens = append([]queryToken{}, last.tokens...)
	last.tokens[end].prefix = false
	return last, true
}

// loose returns the query for texts that have the words in any form.
func (q *query) loose() (loose query, distinguishes bool) {
	loose.excluded = q.excluded
	for _, t := range q.terms {
		t.loose = len(t.tokens) == 1 && len(t.tokens[0].forms) > 0
		distinguishes = distinguishes || t.loose
		loose.terms = append(loose.terms, t)
	}
	return loose, distinguishes
}

// except writes a query of Postgres for texts that do not have all terms.
func (q *query) except(tag string) string {
	parts := make([]string, 0, len(q.terms))
	for _, t := range q.terms {
		parts = append(parts, "("+t.tsquery(tag, true)+")")
	}
	return "!(" + strings.Join(parts, " & ") + ")"
}

// ordered reports whether the index alone cannot decide the query: the order of its words matters, or the absence of
// some.
func (q *query) ordered() bool {
	for _, t := range q.terms {
		if len(t.tokens) > 1 {
			return true
		}
	}
	return len(q.excluded) > 0
}

// tsquery writes the query in the syntax of Postgres, for the tokens of an account.
func (q *query) tsquery(tag string) string {
	parts := make([]string, 0, len(q.terms)+len(q.excluded))
	for _, t := range q.terms {
		parts = append(parts, "("+t.tsquery(tag, true)+")")
	}
	for _, t := range q.excluded {
		parts = append(parts, "!("+t.tsquery(tag, true)+")")
	}
	return strings.Join(parts, " & ")
}

// words writes the query for all words of the terms, in any order.
func (q *query) words(tag string) string {
	parts := make([]string, 0, len(q.terms))
	for _, t := range q.terms {
		parts = append(parts, t.tsquery(tag, false))
	}
	return strings.Join(parts, " & ")
}

func (t term) tsquery(tag string, inOrder bool) string {
	var b strings.Builder
	for i, token := range t.tokens {
		switch {
		case i == 0:
		case inOrder:
			b.WriteString(" <" + strconv.Itoa(token.offset-t.tokens[i-1].offset) + "> ")
		default:
			b.WriteString(" & ")
		}
		if t.loose {
			b.WriteByte('(')
		}
		writeToken(&b, tag, token.text, token.prefix)
		if t.loose {
			for _, form := range token.forms {
				b.WriteString(" | ")
				writeToken(&b, tag, form.Text, form.Prefix)
			}
			b.WriteByte(')')
		}
	}
	return b.String()
}

func writeToken(b *strings.Builder, tag, text string, prefix bool) {
	b.WriteString("'" + tag + text + "'")
	if prefix {
		b.WriteString(":*")
	}
}
