package evidence

import (
	"maps"
	"slices"
)

const (
	// maxPostings is how many excerpts are found by one word. Of a word that more have, the first ones are found.
	maxPostings = 512
	// maxCandidates is how many excerpts are compared with a sentence that has no citation left.
	maxCandidates = 24
)

// library has the excerpts of a report, by number and by word.
type library struct {
	excerpts []excerpt
	numbered map[int][]int // to excerpts
	words    map[string][]int
	work     int // compared excerpts, for tests
}

type excerpt struct {
	number int
	*statement
}

func libraryOf(excerpts map[int][]string) *library {
	l := &library{numbered: map[int][]int{}, words: map[string][]int{}}
	for _, number := range slices.Sorted(maps.Keys(excerpts)) {
		for _, text := range excerpts[number] {
			l.numbered[number] = append(l.numbered[number], len(l.excerpts))
			l.excerpts = append(l.excerpts, excerpt{number, statementOf(text)})
		}
	}
	for i, e := range l.excerpts {
		for _, key := range e.keys() {
			if len(l.words[key]) < maxPostings {
				l.words[key] = append(l.words[key], i)
			}
		}
	}
	return l
}

// keys returns by what a statement is found: its content words and its numbers, which are the same in all languages.
func (e *statement) keys() []string {
	keys := slices.Clone(e.order)
	for i := range e.quantities {
		for _, value := range e.quantities[i].values {
			keys = append(keys, "# "+value)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// supports reports whether one of the excerpts with a number supports a sentence.
func (l *library) supports(number int, s *statement) bool {
	return slices.ContainsFunc(l.numbered[number], func(i int) bool {
		l.work++
		return l.excerpts[i].supports(s)
	})
}

// best returns the number whose excerpt shares most with a sentence, of those that support it, or 0.
func (l *library) best(s *statement) (number int) {
	counts := map[int]int{} // of shared words, of which rare ones count more
	for _, key := range s.keys() {
		rarity := 1 + maxPostings/max(1, len(l.words[key]))
		for _, i := range l.words[key] {
			l.work++
			counts[i] += rarity
		}
	}
	candidates := slices.SortedFunc(maps.Keys(counts), func(a, b int) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return a - b
	})
	for _, i := range candidates[:min(len(candidates), maxCandidates)] {
		if n := l.excerpts[i].number; n > 0 && n < maxNumber && l.supports(n, s) {
			return n
		}
	}
	return 0
}
