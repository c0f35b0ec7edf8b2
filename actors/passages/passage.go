// Package passages cuts texts into passages, and ranks them by BM25. Files for a model and pages for research use the same
// passages. It reads no store, and its callers choose how many passages a model gets. It is pure.
package passages

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"turnstone/protocol"
	"turnstone/protocol/words"
)

// MaxBytes is the length of a passage, if it is not cut at the end of a page: a long paragraph.
const MaxBytes = 1200

// Passage is a piece of a text.
type Passage struct {
	Start, End int
	Block      int // index of the page, sheet, slide or chapter; -1: none
	Score      float64
}

// Split divides a text into passages. A passage belongs to one page, and ends between two paragraphs, lines, sentences or
// words, if there is such a place.
func Split(text string, blocks []protocol.TextBlock) []Passage {
	var all []Passage
	at := 0
	for i, b := range blocks {
		all = appendPassages(all, text, at, b.Offset, -1)
		at = b.Offset + b.Length
		all = appendPassages(all, text, b.Offset, at, i)
	}
	return appendPassages(all, text, at, len(text), -1)
}

func appendPassages(all []Passage, text string, start, end, block int) []Passage {
	for start < end {
		next := end
		if end-start > MaxBytes {
			next = start + cut(text[start:start+MaxBytes])
		}
		if strings.TrimSpace(text[start:next]) != "" {
			all = append(all, Passage{Start: start, End: next, Block: block})
		}
		start = next
	}
	return all
}

// cut returns the length of the passage at the beginning of a text that is too long for one.
func cut(longest string) int {
	const least = MaxBytes / 2
	for _, separator := range []string{"\n\n", "\n", ". ", "。", " "} {
		if at := strings.LastIndex(longest, separator); at >= least {
			return at + len(separator)
		}
	}
	end := len(longest)
	for end > 1 && longest[end-1] >= 0x80 && end > len(longest)-4 { // not within a character
		end--
	}
	return end
}

// The parameters of BM25, with their usual values.
const (
	saturation = 1.2
	lengthBias = 0.75
)

// Choose returns the passages that answer a question best by BM25, together at most limit bytes long, in the order of the
// text. Without a word of the question in the text, these are its first passages.
func Choose(text string, blocks []protocol.TextBlock, question string, limit int) []Passage {
	all := Split(text, blocks)
	Rank(all, text, question)
	best := slices.Clone(all)
	slices.SortStableFunc(best, func(a, b Passage) int { return cmp.Compare(b.Score, a.Score) })
	var chosen []Passage
	for _, p := range best {
		if p.Score == 0 && len(chosen) > 0 && chosen[0].Score > 0 {
			break // it has none of the words, and others have
		}
		switch size := p.End - p.Start; {
		case size <= limit:
			chosen, limit = append(chosen, p), limit-size
		case p.Score == 0:
			limit = 0 // the beginning of the text has no gap
		}
	}
	slices.SortFunc(chosen, func(a, b Passage) int { return cmp.Compare(a.Start, b.Start) })
	return chosen
}

// Rank sets the scores of the passages of a text. Its memory depends on the number of passages, and on the number of words
// of the question, but not on their product.
func Rank(all []Passage, text, question string) {
	terms := map[string]int{} // to their indexes
	EachWord(question, func(word []byte) {
		if _, known := terms[string(word)]; !known {
			terms[string(word)] = len(terms)
		}
	})
	if len(terms) == 0 || len(all) == 0 {
		return
	}
	counts := make([]int, len(terms)) // in the passage
	var found []int                   // the terms in the passage
	having := make([]int, len(terms)) // passages
	lengths, total := make([]int, len(all)), 0
	each := func(visit func(i int)) {
		for i := range all {
			length := 0
			EachWord(text[all[i].Start:all[i].End], func(word []byte) {
				length++
				if at, is := terms[string(word)]; is {
					if counts[at]++; counts[at] == 1 {
						found = append(found, at)
					}
				}
			})
			lengths[i] = length
			visit(i)
			for _, at := range found {
				counts[at] = 0
			}
			found = found[:0]
		}
	}
	each(func(i int) {
		total += lengths[i]
		for _, at := range found {
			having[at]++
		}
	})
	average := float64(total) / float64(len(all))
	each(func(i int) {
		for _, at := range found {
			rarity := math.Log(1 + (float64(len(all)-having[at])+0.5)/(float64(having[at])+0.5))
			often := float64(counts[at])
			all[i].Score += rarity * often * (saturation + 1) / (often + saturation*(1-lengthBias+lengthBias*float64(lengths[i])/average))
		}
	})
}

// EachWord calls visit for the words of a text, as search compares them. A word is only valid during the call.
func EachWord(text string, visit func(word []byte)) {
	t := words.Tokenizer{Wants: func(word []byte) bool {
		visit(word)
		return false
	}}
	t.Add(words.Normalize(text))
}
