package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// part is a part of a sentence that ends with citations, or the rest of the sentence after them.
type part struct {
	Span
	citations []citation // adjacent, at its end
	statement *statement
}

// minSubstantial is the number of content words, quantities and names of a part of a sentence that is checked alone.
const minSubstantial = 3

func (p *part) substantial() bool {
	return len(p.statement.order)+len(p.statement.quantities) >= minSubstantial
}

// partsOf divides a sentence after each group of adjacent citations.
func (d *document) partsOf(s *sentence) (parts []part) {
	current := part{Span: Span{s.Start, s.Start}}
	end := s.Start
	finish := func(at int) {
		current.End = at
		body := sentence{Sentence: Sentence{Span: current.Span}, citations: current.citations}
		for _, h := range s.hidden {
			if h.Start >= current.Start && h.End <= at {
				body.hidden = append(body.hidden, h)
			}
		}
		current.statement = statementOf(d.plain(&body))
		parts = append(parts, current)
		current = part{Span: Span{at, at}}
	}
	for _, c := range s.citations {
		if between := d.text[end:c.Start]; len(current.citations) > 0 && strings.ContainsFunc(between, isWordRune) {
			finish(end)
		}
		current.citations = append(current.citations, c)
		end = c.End
	}
	if len(current.citations) > 0 && strings.ContainsFunc(d.text[end:s.End], isWordRune) {
		finish(end)
	}
	finish(s.End)
	return parts
}

// closers are the characters after the end of a sentence that belong to it.
const closers = "\"'”’»›)]*_~」』）"

// insertion returns where a citation of a sentence is added: before its full stop, or else at its end.
func (d *document) insertion(s *sentence) int {
	at := d.beforeCitations(s, s.End)
	lowest := s.Start
	for _, h := range s.hidden {
		if h.End <= at {
			lowest = max(lowest, h.End)
		}
	}
	for _, c := range s.citations {
		if c.End <= at {
			lowest = max(lowest, c.End)
		}
	}
	before := trimRight(d.text, lowest, at, func(c rune) bool { return strings.ContainsRune(closers, c) })
	if stop := trimRight(d.text, lowest, before, isTerminator); stop < before {
		return trimRight(d.text, lowest, stop, unicode.IsSpace)
	}
	return at
}

// beforeCitations returns where the citations and spaces that end at a position of a sentence begin.
func (d *document) beforeCitations(s *sentence, at int) int {
	cited := len(s.citations)
	for {
		at = s.Start + len(strings.TrimRight(d.text[s.Start:at], " \t\r\n"))
		for cited > 0 && s.citations[cited-1].End > at {
			cited--
		}
		if cited == 0 || s.citations[cited-1].End != at {
			return at
		}
		at = s.citations[cited-1].Start
	}
}

// trimRight returns where the characters at the end of a range begin.
func trimRight(text string, start, end int, is func(c rune) bool) int {
	for end > start {
		c, size := utf8.DecodeLastRuneInString(text[start:end])
		if !is(c) {
			break
		}
		end -= size
	}
	return end
}
