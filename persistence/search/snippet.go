package search

import (
	"unicode"

	"turnstone/protocol"
)

const (
	snippetRunes  = 200 // length of an excerpt
	snippetBefore = 40  // of it before the first highlight
	snippetSlack  = 20  // by how much the beginning moves to start with a word
	ellipsis      = '…'
)

// snippet returns the excerpt of a normalized text that shows most terms of the query, the first such excerpt if there
// are several. Each run of white space becomes one space. A text that is longer than the excerpt is cut, with an ellipsis
// where it was cut.
func snippet(text string, found []occurrence) protocol.SearchSnippet {
	runes := []rune(text)
	from := start(runes, found)
	to := min(len(runes), from+snippetRunes)
	out := make([]rune, 0, to-from+2)
	if from > 0 {
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
		next := protocol.Highlight{Start: place[o.start-from], End: place[o.end-from]}
		if n := len(s.Highlights); n > 0 && next.Start < s.Highlights[n-1].End {
			s.Highlights[n-1].End = max(s.Highlights[n-1].End, next.End)
		} else {
			s.Highlights = append(s.Highlights, next)
		}
	}
	return s
}

// start returns where the excerpt of a text starts.
func start(text []rune, found []occurrence) int {
	if len(text) <= snippetRunes || len(found) == 0 {
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

// best returns the occurrence after which an excerpt has the most terms, of at least one.
func best(found []occurrence) occurrence {
	most, first := 0, found[0]
	for i, o := range found {
		terms := map[int]bool{}
		for _, other := range found[i:] {
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
