package evidence

import (
	"slices"
	"strings"
)

// The thresholds of support. TestSupportRates measures them with the pairs of testdata/pairs.txt.
const (
	// minCoverage is the part of the content words of a sentence that its excerpt has.
	minCoverage = 0.5
	// minOtherSubject is that part if the sentence begins with a word that the excerpt does not have, and the other way round.
	minOtherSubject = 0.75
	// minShared is the number of content words and quantities that a sentence shares with its excerpt at least.
	minShared = 2
	// minAnchors is the number of names and quantities that a sentence shares with an excerpt in another language at least.
	minAnchors = 2
)

// supports reports whether an excerpt supports a sentence. All quantities, dates and names of the sentence have to be in the
// excerpt, and most of its content words; and the excerpt must not deny them. In another language, only the quantities,
// dates and names can be compared, so more of them are needed.
func (e *statement) supports(s *statement) bool {
	if !e.hasQuantities(s) || !e.hasMonths(s) {
		return false
	}
	if e.differs(s) {
		return e.anchors(s) >= minAnchors
	}
	if !e.hasNames(s.names) {
		return false
	}
	shared := e.shared(s)
	if shared+len(s.quantities) < minShared || len(s.order) > 0 && shared == 0 {
		return false
	}
	return e.covers(s, shared) && !e.denies(s) && !e.misattributes(s)
}

// covers reports whether an excerpt that shares some content words with a sentence has enough of them. Where upper case marks
// names, these have been compared already, and quantities count too. Elsewhere half of the words is not enough: the other
// half may be the name of another subject.
func (e *statement) covers(s *statement, shared int) bool {
	all := len(s.order)
	switch {
	case e.otherSubject(s):
		return float64(shared) > minOtherSubject*float64(all)
	case s.language.marksNames():
		return float64(shared+len(s.quantities)) >= minCoverage*float64(all+len(s.quantities))
	}
	return float64(shared) > minCoverage*float64(all) || all == 0
}

// differs reports whether two statements are in different languages, so that their words cannot be compared.
func (e *statement) differs(s *statement) bool {
	if s.language == "" && e.latin || e.language == "" && s.latin {
		return false
	}
	return s.language != e.language
}

// shared returns how many content words two statements have in common.
func (e *statement) shared(s *statement) (n int) {
	for _, word := range s.order {
		if e.words[word] != nil {
			n++
		}
	}
	return n
}

func (e *statement) hasQuantities(s *statement) bool {
	for i := range s.quantities {
		if !e.hasQuantity(&s.quantities[i]) {
			return false
		}
	}
	return true
}

func (e *statement) hasQuantity(q *quantity) bool {
	for i := range e.quantities {
		if q.same(&e.quantities[i]) {
			return true
		}
	}
	return false
}

// hasMonths reports whether an excerpt has the months of a sentence, by name or as a part of a date in numbers.
func (e *statement) hasMonths(s *statement) bool {
	for month := range s.months {
		if !strings.HasPrefix(month, "in date ") && !e.months[month] && !e.months["in date "+month] {
			return false
		}
	}
	return true
}

// anchors returns how many quantities and names of a sentence an excerpt in another language has, or 0 if it lacks a name that
// it could have. Small numbers are in many texts by chance.
func (e *statement) anchors(s *statement) (n int) {
	for _, name := range s.names {
		switch {
		case e.hasName(name):
			n++
		case s.latin && e.latin || s.latin == e.latin && s.language == e.language:
			return 0
		}
	}
	large := false
	for i := range s.quantities {
		n++
		large = large || len(strings.Trim(s.quantities[i].values[0], "-0.")) >= 2
	}
	if !large && len(s.names) < minAnchors {
		return 0
	}
	return n
}

// otherSubject reports whether two statements begin with content words that the other one does not have.
func (e *statement) otherSubject(s *statement) bool {
	return len(s.order) > 0 && len(e.order) > 0 && e.words[s.order[0]] == nil && s.words[e.order[0]] == nil
}

// denies reports whether the clauses of an excerpt that share words with a sentence differ from it in their negation, or have
// the opposite words.
func (e *statement) denies(s *statement) bool {
	denied, groups := false, uint16(0)
	for i, c := range e.clauses {
		if e.relevant(s, i) {
			denied = denied || c.negated
			groups |= c.groups
		}
	}
	negated, own := false, uint16(0)
	for _, c := range s.clauses {
		negated = negated || c.negated
		own |= c.groups
	}
	return negated != denied || opposed(own, groups)
}

// relevant reports whether a clause of an excerpt is about what a sentence states: they share two words, half of the words of
// one of them, or a word and a quantity.
func (e *statement) relevant(s *statement, clause int) bool {
	own, shared := 0, 0
	for word, clauses := range e.words {
		for _, c := range clauses {
			if c == clause {
				own++
				if s.words[word] != nil {
					shared++
				}
				break
			}
		}
	}
	return shared >= 2 || shared > 0 && (2*shared >= min(own, len(s.order)) || e.sharesQuantity(s, clause))
}

func (e *statement) sharesQuantity(s *statement, clause int) bool {
	for i := range e.quantities {
		if e.quantities[i].clause == clause && s.hasQuantity(&e.quantities[i]) {
			return true
		}
	}
	return false
}

// misattributes reports whether a quantity of a sentence is in an excerpt only in clauses about something else: they have names,
// but none of the sentence.
func (e *statement) misattributes(s *statement) bool {
	for i := range s.quantities {
		fits := false
		for j := range e.quantities {
			fits = fits || s.quantities[i].same(&e.quantities[j]) && e.about(s, e.quantities[j].clause)
		}
		if !fits {
			return true
		}
	}
	return false
}

func (e *statement) about(s *statement, clause int) bool {
	names := e.clauses[clause].names
	return len(names) == 0 || len(s.names) == 0 || slices.ContainsFunc(names, func(name []string) bool {
		return s.hasName(name) || slices.ContainsFunc(name, s.hasNameWord)
	})
}
