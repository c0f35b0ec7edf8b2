package artifacts

import (
	"slices"
	"sort"
	"strings"

	"turnstone/protocol"
	"turnstone/protocol/clip"
)

// Limits of a difference, which protocol.ArtifactDiff publishes.
const (
	diffLines    = 50_000 // of a text; a longer one is compared as a whole
	shownLines   = 2000   // of all hunks
	shownRunes   = 500    // of a line
	contextLines = 3      // equal lines around what differs
)

// span is a range of lines that differ: from [a0, a1) to [b0, b1).
type span struct{ a0, a1, b0, b1 int }

// compare returns the difference of two texts. It takes time in proportion to n log n of the lines: lines that occur once in each
// text, in the longest sequence that both texts have in common, are anchors; between two anchors, equal lines at both ends are
// matched, and the others differ.
func compare(from, to string) *protocol.ArtifactDiff {
	a, b := linesOf(from), linesOf(to)
	var spans []span
	truncated := len(a) > diffLines || len(b) > diffLines
	switch {
	case from == to:
		truncated = false
	case truncated:
		spans = shrink(nil, a, b, span{0, len(a), 0, len(b)})
	default:
		spans = differing(a, b)
	}
	diff := hunks(a, b, spans)
	diff.Truncated = diff.Truncated || truncated
	return diff
}

// linesOf returns the lines of a text without their ends.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func differing(a, b []string) (spans []span) {
	at := span{}
	for _, anchor := range append(anchors(a, b), [2]int{len(a), len(b)}) {
		spans = shrink(spans, a, b, span{at.a0, anchor[0], at.b0, anchor[1]})
		at.a0, at.b0 = anchor[0]+1, anchor[1]+1
	}
	return spans
}

// shrink adds a range without the equal lines at its ends, if anything differs.
func shrink(spans []span, a, b []string, s span) []span {
	for s.a0 < s.a1 && s.b0 < s.b1 && a[s.a0] == b[s.b0] {
		s.a0, s.b0 = s.a0+1, s.b0+1
	}
	for s.a0 < s.a1 && s.b0 < s.b1 && a[s.a1-1] == b[s.b1-1] {
		s.a1, s.b1 = s.a1-1, s.b1-1
	}
	if s.a0 == s.a1 && s.b0 == s.b1 {
		return spans
	}
	return append(spans, s)
}

// anchors returns the longest sequence of lines that occur once in both texts and are in the same order in both, as positions.
func anchors(a, b []string) [][2]int {
	const several = -1
	inB := map[string]int{}
	for i, line := range b {
		if _, again := inB[line]; again {
			inB[line] = several
		} else {
			inB[line] = i
		}
	}
	inA := map[string]int{}
	for _, line := range a {
		inA[line]++
	}
	var pairs [][2]int
	for i, line := range a {
		if j, known := inB[line]; known && j != several && inA[line] == 1 {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	// The longest increasing subsequence of the positions in b: ends[n] is the pair that ends the best sequence of n+1.
	var ends []int
	before := make([]int, len(pairs))
	for i, pair := range pairs {
		n := sort.Search(len(ends), func(n int) bool { return pairs[ends[n]][1] >= pair[1] })
		if before[i] = -1; n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	var chosen [][2]int
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = before[i] {
			chosen = append(chosen, pairs[i])
		}
	}
	slices.Reverse(chosen)
	return chosen
}

// hunks returns what differs with its surroundings. Ranges whose surroundings touch are one hunk.
func hunks(a, b []string, spans []span) *protocol.ArtifactDiff {
	diff := &protocol.ArtifactDiff{Hunks: []protocol.DiffHunk{}}
	lines := 0
	for i, s := range spans {
		diff.Added, diff.Removed = diff.Added+s.b1-s.b0, diff.Removed+s.a1-s.a0
		if lines >= shownLines {
			diff.Truncated = true
			continue
		}
		begin := max(0, s.a0-contextLines)
		if i > 0 && begin <= spans[i-1].a1+contextLines {
			begin = spans[i-1].a1
		} else {
			diff.Hunks = append(diff.Hunks, protocol.DiffHunk{FromLine: begin + 1, ToLine: s.b0 - (s.a0 - begin) + 1, Lines: []protocol.DiffLine{}})
		}
		end := min(len(a), s.a1+contextLines)
		if i+1 < len(spans) && spans[i+1].a0-contextLines <= s.a1+contextLines {
			end = s.a1 // the next range adds the lines between them
		}
		hunk := &diff.Hunks[len(diff.Hunks)-1]
		for _, part := range []struct {
			change protocol.DiffChange
			of     []string
		}{{protocol.LineEqual, a[begin:s.a0]}, {protocol.LineRemoved, a[s.a0:s.a1]}, {protocol.LineAdded, b[s.b0:s.b1]}, {protocol.LineEqual, a[s.a1:end]}} {
			for _, line := range part.of {
				if lines++; lines > shownLines {
					diff.Truncated = true
					break
				}
				text := clip.Runes(line, shownRunes)
				cut := len(text) < len(line)
				diff.Truncated = diff.Truncated || cut
				hunk.Lines = append(hunk.Lines, protocol.DiffLine{Change: part.change, Text: text})
			}
		}
	}
	return diff
}

// unified returns a difference as text, of at most so many bytes.
func unified(diff *protocol.ArtifactDiff, most int) string {
	var out strings.Builder
	sign := map[protocol.DiffChange]string{protocol.LineEqual: " ", protocol.LineAdded: "+", protocol.LineRemoved: "-"}
	for _, hunk := range diff.Hunks {
		out.WriteString("@@\n")
		for _, line := range hunk.Lines {
			if out.Len()+len(line.Text)+2 > most {
				out.WriteString("[more changes]\n")
				return out.String()
			}
			out.WriteString(sign[line.Change] + line.Text + "\n")
		}
	}
	if diff.Truncated {
		out.WriteString("[more changes]\n")
	}
	return out.String()
}
