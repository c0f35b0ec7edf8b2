package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"turnstone/protocol/words"
)

// maxOccurrences limits the places of a term that are looked at in one text. They are needed for its excerpt, which shows few.
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

// errEnough ends the reading of a text of which nothing more is needed.
var errEnough = errors.New("no more of the text is needed")

// scan looks for terms in a text. It keeps only the tokens that one of the terms has, and of these only those that may
// begin a place of a term that has not ended.
type scan struct {
	flow
	wanted   []wanted
	width    int // the most positions of a term
	texts    map[string]bool
	prefixes [][]byte
}

// wanted is a term that is looked for.
type wanted struct {
	term
	n     int // names the term in its occurrences
	left  int // places that are still looked for
	found []occurrence
}

func newScan(ctx context.Context, terms []term, most int) *scan {
	s := &scan{flow: flow{ctx: ctx}, texts: map[string]bool{}}
	for n, t := range terms {
		s.wanted = append(s.wanted, wanted{term: t, n: n, left: most})
		s.width = max(s.width, t.width)
		for _, token := range t.tokens {
			if token.prefix {
				s.prefixes = append(s.prefixes, []byte(token.text))
			} else {
				s.texts[token.text] = true
			}
			if t.loose {
				s.wantForms(token.forms)
			}
		}
	}
	s.t.Wants, s.consume = s.wants, s.match
	return s
}

func (s *scan) wantForms(forms []words.Form) {
	for _, form := range forms {
		if form.Prefix {
			s.prefixes = append(s.prefixes, []byte(form.Text))
		} else {
			s.texts[form.Text] = true
		}
	}
	s.t.Stems = &words.Stems{}
}

// wants reports whether a term has a token with this text.
func (s *scan) wants(text []byte) bool {
	return s.texts[string(text)] || slices.ContainsFunc(s.prefixes, func(prefix []byte) bool { return bytes.HasPrefix(text, prefix) })
}

// match looks for the terms from each token on after which all tokens of a place are known.
func (s *scan) match(_ []byte, end bool) error {
	known := 0
	for ; known < len(s.t.Tokens) && (end || s.t.Tokens[known].At+s.width <= s.t.Next); known++ {
		for i := range s.wanted {
			w := &s.wanted[i]
			if w.left == 0 {
				continue
			}
			if to, is := w.at(s.t.Tokens, known); is {
				w.found = append(w.found, occurrence{w.n, s.t.Tokens[known].Start, to})
				w.left--
			}
		}
	}
	s.t.Tokens = append(s.t.Tokens[:0], s.t.Tokens[known:]...)
	return nil
}

// occurrences returns the places that were found, in their order.
func (s *scan) occurrences() (found []occurrence) {
	for i := range s.wanted {
		found = append(found, s.wanted[i].found...)
	}
	slices.SortFunc(found, func(a, b occurrence) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	return found
}

// scoring decides how well a text matches a query.
type scoring struct {
	scan
	q               *query
	whole, adjacent int // indexes of wanted; -1: they would not distinguish texts that match
	loose           int // index of the terms in any form; -1: they have no other form
}

func (q *query) scoring(ctx context.Context) *scoring {
	s := &scoring{q: q, whole: -1, adjacent: -1, loose: -1}
	terms := slices.Concat(q.terms, q.excluded)
	if whole, distinguishes := q.whole(); distinguishes {
		s.whole, terms = len(terms), append(terms, whole)
	}
	if adjacent, distinguishes := q.together(); distinguishes {
		s.adjacent, terms = len(terms), append(terms, adjacent)
	}
	if loose, distinguishes := q.loose(); distinguishes {
		s.loose, terms = len(terms), append(terms, loose.terms...)
	}
	s.scan = *newScan(ctx, terms, 1)
	s.t.Wants, s.consume = s.wants, s.decide
	return s
}

// decide ends the text when the rest of it cannot change the score.
func (s *scoring) decide(text []byte, end bool) error {
	if err := s.match(text, end); err != nil || end {
		return err
	}
	all := len(s.q.excluded) == 0
	for i := range s.wanted {
		excluded := i >= len(s.q.terms) && i < len(s.q.terms)+len(s.q.excluded)
		if has := s.wanted[i].left == 0; excluded && has {
			return errEnough
		} else if !excluded && !has {
			all = false
		}
	}
	if all {
		return errEnough
	}
	return nil
}

// score returns how well the text matches; 0: not at all. loose: only in other forms. The function search_window in the migrations
// decides the same for texts of the index.
func (s *scoring) score() (score int, loose bool) {
	for i := range s.q.excluded {
		if s.wanted[len(s.q.terms)+i].left == 0 {
			return 0, false
		}
	}
	if !s.has(0) {
		if s.loose >= 0 && s.has(s.loose) {
			return scoreMatch, true
		}
		return 0, false
	}
	score = scoreMatch
	if s.whole >= 0 && s.wanted[s.whole].left == 0 {
		score += scoreWhole
	}
	if s.adjacent >= 0 && s.wanted[s.adjacent].left == 0 {
		score += scoreAdjacent
	}
	return score, false
}

// has reports whether the text has all terms, of which the first one has an index of wanted.
func (s *scoring) has(first int) bool {
	return !slices.ContainsFunc(s.wanted[first:first+len(s.q.terms)], func(w wanted) bool { return w.left > 0 })
}

// at reports whether the term is in a text from its token i on, and where it ends, in code points. Tokens that no term has
// may be left out.
func (t term) at(tokens []words.Token, i int) (end int, found bool) {
	first := tokens[i].At
	for n, want := range t.tokens {
		for i < len(tokens) && tokens[i].At < first+want.offset {
			i++
		}
		found = false
		for ; i < len(tokens) && tokens[i].At == first+want.offset && !found; i++ {
			if end, found = want.in(&tokens[i], t.loose); n == 0 && !found {
				return 0, false // the place begins with this token, and with no other one at its position
			}
		}
		if !found {
			return 0, false
		}
	}
	return end, true
}

// in reports whether a token of a text is this one, or another form of it, and where it ends, in code points.
func (want *queryToken) in(has *words.Token, loose bool) (end int, is bool) {
	switch {
	case want.prefix && strings.HasPrefix(has.Text, want.text):
		return has.Mid, true
	case has.Text == want.text:
		return has.End, true
	case loose && slices.ContainsFunc(want.forms, func(form words.Form) bool {
		return has.Text == form.Text || form.Prefix && strings.HasPrefix(has.Text, form.Text)
	}):
		return has.End, true
	}
	return 0, false
}
