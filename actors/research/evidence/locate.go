package evidence

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"turnstone/actors/passages"
)

// Span is a range of a text, in bytes.
type Span struct{ Start, End int }

const (
	// maxExcerpt is the longest excerpt, in bytes. A longer quote is located by its beginning.
	maxExcerpt = passages.MaxBytes
	// minQuote is the least weight of a quote: a word weighs 2, a character of a script without spaces 1. Shorter quotes are
	// in a page by chance.
	minQuote = 6
	// minPiece is the least weight of a piece of a quote between two ellipses.
	minPiece = 4
	// minMatched is the part of the words of a quote that its passage has, in order, and the part of the words of the passage
	// that the quote has.
	minMatched = 0.9
	// maxStarts is how many places of a page are compared with a quote.
	maxStarts = 16
	// seedWords is the number of adjacent words by which the places to compare are found.
	seedWords = 3
)

// Locate returns the passage of a page that a model quoted. Case, accents, spaces, typographic characters, hyphens at the ends of
// lines and the markup of the page do not matter, and a few words may differ. An ellipsis in the quote stands for words of the
// page that are left out. A quote that is not in the page has no passage, so what is shown as an excerpt is always
// text[Start:End], and never what the model wrote. A passage at the end of a sentence includes the mark that ends it.
func Locate(text, quote string) (Span, bool) {
	l := newLocator(text, quote)
	span, found := l.find(l.quote)
	if !found && len(l.pieces) > 1 {
		span, found = l.findPieces()
	}
	if found {
		span.End = withMark(text, span)
	}
	return span, found
}

// withMark returns the end of a passage with the mark that ends its sentence.
func withMark(text string, span Span) int {
	mark, size := utf8.DecodeRuneInString(text[span.End:])
	next, _ := utf8.DecodeRuneInString(text[span.End+size:])
	within := mark == '.' && (unicode.IsLetter(next) || unicode.IsDigit(next)) // a name or a number
	if !strings.ContainsRune(".!?。！？؟", mark) || within || span.End+size-span.Start > maxExcerpt {
		return span.End
	}
	return span.End + size
}

// locator has the words of a page as numbers: the index of the word among those of the quote, or -1.
type locator struct {
	page   []int32
	ranges []Span
	quote  []int32
	weight []int8 // of the words of the quote, by number
	pieces [][]int32
	work   int // compared words, for tests
}

func newLocator(text, quote string) *locator {
	l := &locator{}
	number := map[string]int32{}
	used := 0
	for _, piece := range splitEllipses(quote) {
		if used >= maxExcerpt {
			break
		}
		var part []int32
		eachToken(piece, true, func(t token) bool {
			n, known := number[t.text]
			if !known {
				n = int32(len(number))
				number[t.text] = n
				l.weight = append(l.weight, 2)
				if t.unspaced {
					l.weight[n] = 1
				}
			}
			part = append(part, n)
			return used+t.end < maxExcerpt
		})
		used += len(piece)
		l.quote = append(l.quote, part...)
		if l.weigh(part) >= minPiece {
			l.pieces = append(l.pieces, part)
		}
	}
	eachToken(text, true, func(t token) bool {
		n, known := number[t.text]
		if !known {
			n = -1
		}
		l.page = append(l.page, n)
		l.ranges = append(l.ranges, Span{t.start, t.end})
		return true
	})
	return l
}

func (l *locator) weigh(quote []int32) (weight int) {
	for _, n := range quote {
		weight += int(l.weight[n])
	}
	return weight
}

var ellipses = strings.NewReplacer("[...]", "…", "[…]", "…", "(...)", "…", "(…)", "…", "......", "…", "...", "…", "……", "…", "⋯", "…", ". . .", "…")

func splitEllipses(quote string) []string { return strings.Split(ellipses.Replace(quote), "…") }

// find returns the passage that has the words of a quote.
func (l *locator) find(quote []int32) (Span, bool) {
	if l.weigh(quote) < minQuote {
		return Span{}, false
	}
	if at := l.index(quote, 0); at >= 0 {
		return l.span(at, at+len(quote)), true
	}
	return l.findSimilar(quote)
}

// index returns the first place of the page, from a word on, that has exactly the words of a quote, or -1. It is the algorithm
// of Knuth, Morris and Pratt.
func (l *locator) index(quote []int32, from int) int {
	back := make([]int, len(quote))
	for i, k := 1, 0; i < len(quote); i++ {
		for k > 0 && quote[i] != quote[k] {
			k = back[k-1]
		}
		if quote[i] == quote[k] {
			k++
		}
		back[i] = k
	}
	matched := 0
	for i := from; i < len(l.page); i++ {
		l.work++
		for matched > 0 && (matched == len(quote) || l.page[i] != quote[matched]) {
			matched = back[matched-1]
		}
		if l.page[i] == quote[matched] {
			matched++
		}
		if matched == len(quote) {
			return i + 1 - len(quote)
		}
	}
	return -1
}

// span returns the range of some words, cut to the longest excerpt.
func (l *locator) span(first, end int) Span {
	for end > first+1 && l.ranges[end-1].End-l.ranges[first].Start > maxExcerpt {
		end--
	}
	return Span{l.ranges[first].Start, l.ranges[end-1].End}
}

// findSimilar compares the quote with the places of the page that have most groups of its adjacent words.
func (l *locator) findSimilar(quote []int32) (best Span, found bool) {
	most := 0
	for _, at := range l.starts(quote) {
		first, end, matched := l.align(quote, max(0, at-len(quote)/8-2), min(len(l.page), at+len(quote)+len(quote)/8+2))
		enough := float64(matched) >= minMatched*float64(len(quote)) && float64(matched) >= minMatched*float64(end-first)
		if span := (Span{}); enough && matched > most {
			if span = l.span(first, end); span.End == l.ranges[end-1].End { // it was not cut
				best, found, most = span, true, matched
			}
		}
	}
	return best, found
}

// starts returns where in the page a quote probably begins.
func (l *locator) starts(quote []int32) []int {
	seeds := map[[seedWords]int32][]int32{} // to their places in the quote
	for i := 0; i+seedWords <= len(quote); i++ {
		seed := [seedWords]int32(quote[i:])
		if len(seeds[seed]) < 4 {
			seeds[seed] = append(seeds[seed], int32(i))
		}
	}
	const bucket = 4 // words by which two places are one
	votes := map[int]int{}
	for i := 0; i+seedWords <= len(l.page); i++ {
		l.work++
		if l.page[i] < 0 || l.page[i+1] < 0 || l.page[i+2] < 0 {
			continue
		}
		for _, in := range seeds[[seedWords]int32(l.page[i:])] {
			votes[(i-int(in))/bucket]++
		}
	}
	places := make([]int, 0, len(votes))
	for place := range votes {
		places = append(places, place)
	}
	slices.SortFunc(places, func(a, b int) int {
		if votes[a] != votes[b] {
			return votes[b] - votes[a]
		}
		return a - b
	})
	places = places[:min(len(places), maxStarts)]
	for i := range places {
		places[i] *= bucket
	}
	return places
}

// align returns the longest common subsequence of a quote and of some words of the page: the range from its first to its
// last word, and its length.
func (l *locator) align(quote []int32, from, to int) (first, end, matched int) {
	page := l.page[from:to]
	width := len(page) + 1
	longest := make([]int16, (len(quote)+1)*width)
	for i := len(quote) - 1; i >= 0; i-- {
		row, below := longest[i*width:], longest[(i+1)*width:]
		for j := len(page) - 1; j >= 0; j-- {
			l.work++
			if quote[i] == page[j] {
				row[j] = below[j+1] + 1
			} else {
				row[j] = max(below[j], row[j+1])
			}
		}
	}
	first, end = -1, from
	for i, j := 0, 0; i < len(quote) && j < len(page); {
		switch {
		case quote[i] == page[j]:
			if first < 0 {
				first = from + j
			}
			end = from + j + 1
			i, j = i+1, j+1
		case longest[(i+1)*width+j] >= longest[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return max(first, from), end, int(longest[0])
}

// findPieces returns the passage from the first to the last piece of a quote with ellipses, if the pieces follow each other in
// the page.
func (l *locator) findPieces() (Span, bool) {
	if l.weigh(slices.Concat(l.pieces...)) < minQuote {
		return Span{}, false
	}
	from := 0
	for range maxStarts {
		first := l.index(l.pieces[0], from)
		if first < 0 {
			break
		}
		end := first + len(l.pieces[0])
		for _, piece := range l.pieces[1:] {
			at := l.index(piece, end)
			if at < 0 {
				return Span{}, false // nor after a later place of the first piece
			}
			end = at + len(piece)
		}
		if span := (Span{l.ranges[first].Start, l.ranges[end-1].End}); span.End-span.Start <= maxExcerpt {
			return span, true
		}
		from = first + 1
	}
	return Span{}, false
}

// Passages returns the passages of a page that answer a question best by BM25, together at most limit bytes long, in the order of
// the page. Without a word of the question in the page, these are its first passages.
func Passages(text, question string, limit int) []Span {
	chosen := passages.Choose(text, nil, question, limit)
	spans := make([]Span, 0, len(chosen))
	for _, p := range chosen {
		for p.Start < p.End && !utf8.RuneStart(text[p.Start]) {
			p.Start++
		}
		spans = append(spans, Span{p.Start, p.End})
	}
	return spans
}
