package search

import (
	"cmp"
	"slices"
	"strings"
)

// maxOccurrences limits the places that are looked at in one text. They are needed for its excerpt, which shows few.
const maxOccurrences = 200

// occurrence is a place of a term in a text, in code points.
type occurrence struct {
	term, start, end int
}

// Scores of a match. They rank the matches of one kind; newer ones come first among equals.
const (
	scoreMatch    = 1 // added for every match
	scoreWhole    = 1 // the last word is a word of the text, not only the beginning of one
	scoreAdjacent = 2 // the words stand next to one another, in the order of the query
)

// score returns how well a text matches the query; 0: not at all. The function search_window in the migrations decides
// the same for texts of the index.
func (q *query) score(tokens []token) int {
	for _, t := range q.terms {
		if !t.in(tokens) {
			return 0
		}
	}
	for _, t := range q.excluded {
		if t.in(tokens) {
			return 0
		}
	}
	score := scoreMatch
	if whole, distinguishes := q.whole(); distinguishes && whole.in(tokens) {
		score += scoreWhole
	}
	if adjacent, distinguishes := q.together(); distinguishes && adjacent.in(tokens) {
		score += scoreAdjacent
	}
	return score
}

func (t term) in(tokens []token) bool {
	for i := range tokens {
		if _, found := t.at(tokens, i); found {
			return true
		}
	}
	return false
}

// at reports whether the term is in a text from its token i on, and where it ends, in code points.
func (t term) at(tokens []token, i int) (end int, found bool) {
	for _, want := range t.tokens {
		j := i + want.offset // positions without a gap between them
		if j >= len(tokens) || tokens[j].at != tokens[i].at+want.offset {
			return 0, false
		}
		if has := &tokens[j]; want.prefix && strings.HasPrefix(has.text, want.text) {
			end = has.mid
		} else if has.text == want.text {
			end = has.end
		} else {
			return 0, false
		}
	}
	return end, true
}

// occurrences returns the places of the terms in a text, in their order.
func (q *query) occurrences(tokens []token) []occurrence {
	var found []occurrence
	for n, t := range q.terms {
		count := 0
		for i := range tokens {
			if end, is := t.at(tokens, i); is {
				found = append(found, occurrence{n, tokens[i].start, end})
				if count++; count == maxOccurrences {
					break
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b occurrence) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	return found
}
