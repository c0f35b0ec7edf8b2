package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// inline has the markup within a block: ranges in order, which do not overlap within a list.
type inline struct {
	hidden    []Span // code, targets of links, addresses and HTML tags
	atoms     []Span // the hidden ranges, and whole links
	links     []Span // texts of links, in which a citation cannot be followed
	citations []citation
	work      int // visited bytes, for tests
}

// inlineOf scans a block once: brackets are matched with a stack, and code spans by the lengths of their fences.
func inlineOf(text string, b Span) *inline {
	in := &inline{}
	closing := codeFences(text, b)
	var open []int // brackets
	for at := b.Start; at < b.End; {
		in.work++
		next := at + 1
		switch c := text[at]; {
		case c == '`':
			next = in.codeSpan(text, at, closing)
		case c == 'h' && isAddress(text[at:b.End]):
			next = at + addressLength(text[at:b.End])
			in.hide(at, next)
		case c == '[' || c == '\\' || c == '<' || c >= utf8.RuneSelf:
			next = in.mark(text, at, b.End)
			if c == '[' && next == at+1 {
				open = append(open, at)
			}
		case c == ']' && len(open) > 0:
			start := open[len(open)-1]
			open = open[:len(open)-1]
			if n := linkTarget(text[:b.End], at+1); n > 0 {
				in.links = append(in.links, Span{start, at})
				next = at + 1 + n
				in.hidden = append(in.hidden, Span{at, next})
				for len(in.atoms) > 0 && in.atoms[len(in.atoms)-1].Start >= start {
					in.atoms = in.atoms[:len(in.atoms)-1]
				}
				in.atoms = append(in.atoms, Span{start, next})
				open = open[:0] // links are not nested
			}
		}
		at = next
	}
	return in
}

func (in *inline) hide(start, end int) {
	in.hidden = append(in.hidden, Span{start, end})
	in.atoms = append(in.atoms, Span{start, end})
}

// mark adds the citation or the tag at a position, and returns where the scan continues.
func (in *inline) mark(text string, at, end int) int {
	if c := citationAt(text[:end], at); c.End > at {
		in.citations = append(in.citations, c)
		return c.End
	}
	switch c, size := utf8.DecodeRuneInString(text[at:end]); {
	case c == '\\' && at+1 < end:
		_, size = utf8.DecodeRuneInString(text[at+1 : end])
		return at + 1 + size // an escaped character is no markup
	case c == '<':
		n := htmlTag(text[:end], at)
		if n > 0 {
			in.hide(at, at+n)
		}
		return at + max(n, 1)
	default:
		return at + size
	}
}

// codeFences returns, for every run of backticks in a block, where the run that closes it begins; -1 if there is none.
func codeFences(text string, b Span) map[int]int {
	closing, last := map[int]int{}, map[int]int{}
	for at := b.End; at > b.Start; {
		if text[at-1] != '`' {
			at--
			continue
		}
		end := at
		for at > b.Start && text[at-1] == '`' {
			at--
		}
		if next, has := last[end-at]; has {
			closing[at] = next
		} else {
			closing[at] = -1
		}
		last[end-at] = at
	}
	return closing
}

// codeSpan adds the code span at a position, and returns where the scan continues.
func (in *inline) codeSpan(text string, at int, closing map[int]int) int {
	n := 1
	for at+n < len(text) && text[at+n] == '`' {
		n++
	}
	end, known := closing[at]
	if !known || end < 0 {
		return at + n
	}
	in.hide(at, end+n)
	return end + n
}

func isAddress(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// addressLength returns the length of an address in a text, without the punctuation after it.
func addressLength(text string) int {
	end := strings.IndexFunc(text, func(c rune) bool {
		return unicode.IsSpace(c) || c == utf8.RuneError || strings.ContainsRune("<>\"`[]{}|【】。、，」）", c)
	})
	if end < 0 {
		end = len(text)
	}
	address := strings.TrimRight(text[:end], ".,;:!?*_'")
	if strings.HasSuffix(address, ")") && !strings.Contains(address, "(") {
		address = strings.TrimRight(address, ").,;:!?")
	}
	return len(address)
}

// after returns the end of the markup at a position in which no sentence ends, or the position. atom and cited are the indexes of
// the next ones.
func (in *inline) after(at int, atom, cited *int) int {
	for *atom < len(in.atoms) && in.atoms[*atom].End <= at {
		*atom++
	}
	if *atom < len(in.atoms) && in.atoms[*atom].Start <= at {
		return in.atoms[*atom].End
	}
	return in.afterCitation(at, cited)
}

// afterCitation returns the end of the citation at a position, or the position.
func (in *inline) afterCitation(at int, cited *int) int {
	for *cited < len(in.citations) && in.citations[*cited].End <= at {
		*cited++
	}
	if *cited < len(in.citations) && in.citations[*cited].Start <= at {
		return in.citations[*cited].End
	}
	return at
}
