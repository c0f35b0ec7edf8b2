package evidence

import (
	"maps"
	"slices"
	"strings"
)

// Excerpt is a passage of a source.
type Excerpt struct {
	Source int
	Text   string
}

// ContradictionKind is how two excerpts differ.
type ContradictionKind string

// Two excerpts state different numbers, different dates, or one denies what the other one states.
const (
	DifferentNumbers ContradictionKind = "numbers"
	DifferentDates   ContradictionKind = "dates"
	Denial           ContradictionKind = "denial"
)

// Contradiction is a pair of excerpts of different sources, as indexes, with the sentences that contradict each other.
type Contradiction struct {
	A, B                 int
	SentenceA, SentenceB Span
	Kind                 ContradictionKind
}

const (
	// minSameSubject is the part of the content words of the shorter one of two sentences that the other one has, if both are
	// about the same.
	minSameSubject = 0.6
	// maxExcerptSentences is how many sentences of an excerpt are compared.
	maxExcerptSentences = 12
	// maxClaimQuantities is how many quantities such a sentence has at most. Others are lists.
	maxClaimQuantities = 16
	// maxClaimPostings is how many sentences are found by one word.
	maxClaimPostings = 64
	// minSubjectWords is how many content words two such sentences share at least.
	minSubjectWords = 3
)

// claim is a sentence of an excerpt.
type claim struct {
	excerpt, source int
	span            Span
	*statement
}

// Contradictions returns the pairs of excerpts of different sources that state different numbers, dates or the opposite about the
// same subject, in the order of the excerpts, each with its first such pair of sentences. Sentences are found by their
// words, so the work grows with the number of excerpts.
func Contradictions(excerpts []Excerpt) []Contradiction {
	claims := claimsOf(excerpts)
	found := map[[2]int]Contradiction{}
	comparePairs(claims, func(a, b *claim) {
		pair := [2]int{a.excerpt, b.excerpt}
		if _, known := found[pair]; known {
			return
		}
		if kind := contradict(a.statement, b.statement); kind != "" {
			found[pair] = Contradiction{a.excerpt, b.excerpt, a.span, b.span, kind}
		}
	})
	return slices.SortedFunc(maps.Values(found), func(a, b Contradiction) int {
		if a.A != b.A {
			return a.A - b.A
		}
		return a.B - b.B
	})
}

func claimsOf(excerpts []Excerpt) (claims []claim) {
	for i, e := range excerpts {
		sentences := Sentences(e.Text)
		for _, s := range sentences[:min(len(sentences), maxExcerptSentences)] {
			if stated := statementOf(e.Text[s.Start:s.End]); len(stated.quantities) <= maxClaimQuantities {
				claims = append(claims, claim{i, e.Source, s.Span, stated})
			}
		}
	}
	return claims
}

// comparePairs calls compare for the pairs of claims of different sources that share enough words, and returns how many it
// looked at. The earlier claim is the first of a pair.
func comparePairs(claims []claim, compare func(a, b *claim)) (work int) {
	index := map[string][]int{}
	for i := range claims {
		counts := map[int]int{}
		for _, word := range claims[i].order {
			for _, other := range index[word] {
				work++
				counts[other]++
			}
			if len(index[word]) < maxClaimPostings {
				index[word] = append(index[word], i)
			}
		}
		for _, other := range slices.Sorted(maps.Keys(counts)) {
			if counts[other] >= minSubjectWords && claims[other].source != claims[i].source {
				compare(&claims[other], &claims[i])
			}
		}
	}
	return work
}

// contradict returns how two statements about the same subject differ, or "".
func contradict(a, b *statement) ContradictionKind {
	if a.differs(b) || !sameSubject(a, b) {
		return ""
	}
	yearsA, restA := a.split()
	yearsB, restB := b.split()
	sameYears := overlap(yearsA, yearsB)
	switch {
	case len(yearsA) > 0 && len(yearsB) > 0 && !sameYears:
		if len(restA) == 0 && len(restB) == 0 {
			return DifferentDates
		}
		return "" // of different times
	case differInUnit(restA, restB):
		return DifferentNumbers
	case len(a.months) > 0 && len(b.months) > 0 && !sharesMonth(a, b):
		return DifferentDates
	case a.denies(b):
		return Denial
	}
	return ""
}

// sameSubject reports whether two statements are about the same: they share most content words, and not each of them has a name
// that the other one lacks.
func sameSubject(a, b *statement) bool {
	shared, shorter := a.shared(b), min(len(a.order), len(b.order))
	if shared < minSubjectWords || float64(shared) < minSameSubject*float64(shorter) {
		return false
	}
	return (a.hasNames(b.names) || b.hasNames(a.names)) && !a.otherSubject(b)
}

// split returns the years of a statement, and its other quantities.
func (e *statement) split() (years, rest []quantity) {
	for _, q := range e.quantities {
		if q.isYear() {
			years = append(years, q)
		} else {
			rest = append(rest, q)
		}
	}
	return years, rest
}

func overlap(a, b []quantity) bool {
	return slices.ContainsFunc(a, func(q quantity) bool {
		return slices.ContainsFunc(b, func(other quantity) bool { return q.same(&other) })
	})
}

// differInUnit reports whether two statements have quantities of the same unit, and none of them in common.
func differInUnit(a, b []quantity) bool {
	for i := range a {
		ofUnit := func(all []quantity) (some []quantity) {
			for _, q := range all {
				if q.unit == a[i].unit {
					some = append(some, q)
				}
			}
			return some
		}
		if others := ofUnit(b); len(others) > 0 && !overlap(ofUnit(a), others) {
			return true
		}
	}
	return false
}

func sharesMonth(a, b *statement) bool {
	for month := range a.months {
		if plain := strings.TrimPrefix(month, "in date "); b.months[plain] || b.months["in date "+plain] {
			return true
		}
	}
	return false
}
