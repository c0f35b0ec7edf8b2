package search

import (
	"context"
	"unicode"
	"unicode/utf8"

	"turnstone/protocol"
	"turnstone/protocol/words"
)

const (
	snippetRunes  = 200 // length of an excerpt
	snippetBefore = 40  // of it before the first highlight
	snippetSlack  = 20  // by how much the beginning moves to start with a word
	ellipsis      = '…'

	excerptRunes = 64 << 10 // from the first place of a term on, in which the best excerpt is looked for
	keptBytes    = 32 << 10 // of the text before the first place
)

// excerpt cuts the excerpt of a text. It keeps a bounded part of the text, around the first place of a term.
type excerpt struct {
	scan
	head  []byte // the first characters of the text
	kept  []byte // a range of the text
	runes int    // before kept
	bytes int    // before kept
	until int    // the code point at which the reading ends; 0: nothing was found yet
}

func (q *query) excerpt(ctx context.Context) *excerpt {
	e := &excerpt{scan: *newScan(ctx, q.terms, maxOccurrences)}
	e.t.Wants, e.consume = e.wants, e.keep
	return e
}

// keep keeps a piece of the text and looks for the terms.
func (e *excerpt) keep(text []byte, end bool) error {
	if room := (snippetRunes+1)*utf8.UTFMax - len(e.head); room > 0 {
		e.head = append(e.head, text[:min(room, len(text))]...)
	}
	e.kept = append(e.kept, text...)
	if err := e.match(text, end); err != nil {
		return err
	}
	if e.until == 0 {
		e.until = e.limit()
	}
	switch {
	case e.until > 0 && e.t.Offset() > e.until+snippetRunes:
		return errEnough
	case e.until == 0 && len(e.kept) > 2*keptBytes:
		cut := len(e.kept) - keptBytes
		for !utf8.RuneStart(e.kept[cut]) {
			cut++
		}
		e.runes, e.bytes = e.runes+utf8.RuneCount(e.kept[:cut]), e.bytes+cut
		e.kept = append(e.kept[:0], e.kept[cut:]...)
	}
	return nil
}

// limit returns where the reading ends if a place is known, otherwise 0. Places of which the text was not kept, because
// tens of thousands of characters without a word are within them, are left out.
func (e *excerpt) limit() (until int) {
	for i := range e.wanted {
		for _, o := range e.wanted[i].found {
			if o.start >= e.runes {
				if until == 0 || o.start+excerptRunes < until {
					until = o.start + excerptRunes
				}
				break
			}
		}
	}
	return until
}

// places returns the places of the terms in the text that was kept.
func (e *excerpt) places() []occurrence {
	found := e.occurrences()
	kept := found[:0]
	for _, o := range found {
		if o.start >= e.runes && o.start <= e.until {
			kept = append(kept, occurrence{o.term, o.start - e.runes, o.end - e.runes})
		}
	}
	return kept
}

// snippet returns the excerpt of the text, and the byte of the text at which its best place is; -1: no term was found.
func (e *excerpt) snippet() (s protocol.SearchSnippet, at int) {
	found := e.places()
	if len(found) == 0 {
		return snippet([]rune(string(wholeRunes(e.head))), false, nil), -1
	}
	return snippet([]rune(string(e.kept)), e.runes > 0, found), e.bytes + byteOf(string(e.kept), best(found).start)
}

// wholeRunes returns a text without the beginning of a character at its end.
func wholeRunes(text []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if start := len(text) - i; utf8.RuneStart(text[start]) {
			if !utf8.FullRune(text[start:]) {
				return text[:start]
			}
			break
		}
	}
	return text
}

// snippet returns the excerpt of a normalized text that shows most terms of the query, the first such excerpt if there
// are several. Each run of white space becomes one space. A text that is longer than the excerpt is cut, with an ellipsis
// where it was cut. later means that the text has a beginning that is not passed.
func snippet(runes []rune, later bool, found []occurrence) protocol.SearchSnippet {
	from := start(runes, later, found)
	to := min(len(runes), from+snippetRunes)
	out := make([]rune, 0, to-from+2)
	if later || from > 0 {
		out = append(out, ellipsis)
	}
	place := make([]int, to-from+1) // by place in the text: place in the excerpt
	space := true
	for i, c := range runes[from:to] {
		place[i] = len(out)
		switch blank := unicode.IsSpace(c) || unicode.IsControl(c); {
		case !blank:
			out, space = append(out, c), false
		case !space:
			out, space = append(out, ' '), true
		}
	}
	place[to-from] = len(out)
	if to < len(runes) {
		out = append(out, ellipsis)
	}
	s := protocol.SearchSnippet{Text: string(out), Highlights: []protocol.Highlight{}}
	for _, o := range found {
		if o.start < from || o.end > to {
			continue
		}
		first, last := asShown(runes[from:to], o.start-from, o.end-from)
		next := protocol.Highlight{Start: place[first], End: place[last]}
		if n := len(s.Highlights); n > 0 && next.Start < s.Highlights[n-1].End {
			s.Highlights[n-1].End = max(s.Highlights[n-1].End, next.End)
		} else {
			s.Highlights = append(s.Highlights, next)
		}
	}
	return s
}

// asShown returns a range with what is shown as one character with its ends: the skin tone of an emoji, a selector of its form, and
// the other emoji that joiners make a picture of.
func asShown(runes []rune, first, last int) (from, to int) {
	const joiner = '\u200D'
	for first > 1 && runes[first-1] == joiner && words.IsEmoji(runes[first]) {
		first -= 2
		for first > 0 && words.IsEmojiForm(runes[first]) {
			first--
		}
	}
	if last == 0 || !words.IsEmoji(runes[last-1]) {
		return first, last
	}
	for last < len(runes) && (words.IsEmojiForm(runes[last]) || runes[last] == joiner || runes[last-1] == joiner && words.IsEmoji(runes[last])) {
		last++
	}
	return first, last
}

// start returns where the excerpt of a text starts.
func start(text []rune, later bool, found []occurrence) int {
	if !later && len(text) <= snippetRunes || len(found) == 0 {
		return 0
	}
	first := best(found).start
	from := first - snippetBefore
	if from <= 0 {
		return 0
	}
	for i := from; i < from+snippetSlack && i < first; i++ {
		if unicode.IsSpace(text[i]) {
			return i + 1
		}
	}
	return from
}

// best returns the occurrence after which an excerpt has the most terms, of at least one. Occurrences are in the order in which
// they start, so each is compared with those of one excerpt only.
func best(found []occurrence) occurrence {
	most, first := 0, found[0]
	for i, o := range found {
		terms := map[int]bool{}
		for _, other := range found[i:] {
			if other.start > o.start+snippetRunes-snippetBefore {
				break
			}
			if other.end <= o.start+snippetRunes-snippetBefore {
				terms[other.term] = true
			}
		}
		if len(terms) > most {
			most, first = len(terms), o
		}
	}
	return first
}

// byteOf returns the byte at which a code point of a text starts.
func byteOf(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
