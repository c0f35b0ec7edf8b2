package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentence is a sentence of a report, with its citations. A row of a table and a list item without a full stop are sentences too.
type Sentence struct {
	Span
	Factual bool // it states something that needs a source
}

// Sentences returns the sentences of a Markdown text, in order. Code, headings, headers of tables and definitions of links have
// none.
func Sentences(markdown string) []Sentence {
	d := parseDocument(markdown)
	all := make([]Sentence, 0, len(d.sentences))
	for _, s := range d.sentences {
		all = append(all, s.Sentence)
	}
	return all
}

// document is a parsed Markdown text.
type document struct {
	text      string
	sentences []sentence
	outside   []citation // citations that are in no sentence, or cannot be followed where they are
	work      int        // visited bytes, for tests
}

// sentence is a sentence with what it was found with.
type sentence struct {
	Sentence
	citations []citation
	hidden    []Span
}

func parseDocument(text string) *document {
	d := &document{text: text}
	for _, b := range blocksOf(text) {
		in := inlineOf(text, b.Span)
		d.work += in.work + b.End - b.Start
		switch b.kind {
		case prose:
			d.addSentences(b.Span, in, splitSentences(text, b.Span, in))
		case row:
			d.addSentences(b.Span, in, rowSentence(text, b.Span))
		case heading:
			d.outside = append(d.outside, in.citations...)
		case code:
			d.outside = append(d.outside, codeCitations(text, b.Span)...)
		case numbered:
			d.outside = append(d.outside, citation{Span: b.Span})
		case definition:
		}
	}
	return d
}

// addSentences adds the sentences of a block. Citations in links and in code are outside of them.
func (d *document) addSentences(b Span, in *inline, spans []Span) {
	cited, hidden, linked := in.citations, in.hidden, in.links
	before := func(all []citation, at int) (n int) {
		for n < len(all) && all[n].Start < at {
			n++
		}
		return n
	}
	d.connect(cited)
	for _, span := range spans {
		s := sentence{Sentence: Sentence{Span: span}}
		n := before(cited, span.Start)
		d.outside = append(d.outside, cited[:n]...)
		cited = cited[n:]
		n = before(cited, span.End)
		for _, c := range cited[:n] {
			for len(linked) > 0 && linked[0].End <= c.Start {
				linked = linked[1:]
			}
			if len(linked) > 0 && linked[0].Start < c.Start {
				d.outside = append(d.outside, c)
			} else {
				s.citations = append(s.citations, c)
			}
		}
		cited = cited[n:]
		for len(hidden) > 0 && hidden[0].Start < span.End {
			if hidden[0].Start >= span.Start {
				s.hidden = append(s.hidden, hidden[0])
			}
			hidden = hidden[1:]
		}
		s.Factual = isFactual(d.plain(&s))
		d.sentences = append(d.sentences, s)
	}
	d.outside = append(d.outside, cited...)
	for _, span := range in.hidden {
		if d.text[span.Start] == '`' {
			d.outside = append(d.outside, codeCitations(d.text, span)...)
		}
	}
}

// connect sets what surrounds the groups of citations that only spaces separate.
func (d *document) connect(cited []citation) {
	adjacent := func(i int) bool { return strings.Trim(d.text[cited[i-1].End:cited[i].Start], " \t") == "" }
	for i := 1; i < len(cited); i++ {
		if adjacent(i) {
			cited[i].lead = cited[i-1].lead
		}
	}
	for i := len(cited) - 1; i > 0; i-- {
		if adjacent(i) {
			cited[i-1].follow = cited[i].follow
		}
	}
}

// codeCitations returns the citations in code that can be nothing else: [1] may be the index of a list.
func codeCitations(text string, s Span) (all []citation) {
	for at := s.Start; at < s.End; at++ {
		if text[at] != '[' && text[at] != "【"[0] || text[at] == '[' && !strings.HasPrefix(text[at:s.End], "[^") {
			continue
		}
		if c := citationAt(text[:s.End], at); c.End > at {
			all = append(all, c)
			at = c.End - 1
		}
	}
	return all
}

// plain returns the words of a sentence: without citations, addresses and the targets of links. Code stays.
func (d *document) plain(s *sentence) string {
	var b strings.Builder
	at := s.Start
	cut := func(from, to int) {
		if from >= at {
			b.WriteString(d.text[at:from])
			b.WriteByte(' ')
			at = to
		}
	}
	cited := s.citations
	for _, h := range s.hidden {
		for len(cited) > 0 && cited[0].Start < h.Start {
			cut(cited[0].Start, cited[0].End)
			cited = cited[1:]
		}
		if d.text[h.Start] != '`' {
			cut(h.Start, min(h.End, s.End))
		}
	}
	for _, c := range cited {
		cut(c.Start, c.End)
	}
	b.WriteString(d.text[min(at, s.End):s.End])
	return b.String()
}

// rowSentence returns the row of a table from its first to its last cell.
func rowSentence(text string, b Span) []Span {
	body := strings.Trim(text[b.Start:b.End], " \t\r|")
	if body == "" {
		return nil
	}
	start := b.Start + strings.Index(text[b.Start:b.End], body)
	return []Span{{start, start + len(body)}}
}

// splitSentences returns the sentences of a block of prose.
func splitSentences(text string, b Span, in *inline) (spans []Span) {
	start, atom, cited := b.Start, 0, 0
	keep := func(end int) {
		body := strings.TrimSpace(text[start:end])
		if strings.ContainsFunc(body, isWordRune) {
			from := start + strings.Index(text[start:end], body)
			spans = append(spans, Span{from, from + len(body)})
		}
		start = end
	}
	for at := b.Start; at < b.End; {
		if end := in.after(at, &atom, &cited); end > at {
			at = end
			continue
		}
		c, size := utf8.DecodeRuneInString(text[at:])
		if isTerminator(c) {
			e := ending{text: text[:b.End], in: in, start: start, cited: cited}
			end, ends := e.after(at)
			if ends {
				keep(end)
			}
			at = end
			continue
		}
		at += size
	}
	keep(b.End)
	return spans
}

func isWordRune(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }

// wideTerminators end a sentence without a space after them.
const wideTerminators = "。！？｡．।॥"

// ending decides whether a terminator ends a sentence.
type ending struct {
	text  string
	in    *inline
	start int // of the sentence
	cited int // index of the next citation
}

// after reports whether the terminators at a position end a sentence. Quotation marks, brackets, emphasis and citations after
// them belong to the sentence. end is the end of the sentence, or else of the terminators.
func (e *ending) after(at int) (end int, ends bool) {
	end = at
	wide := false
	for end < len(e.text) {
		c, size := utf8.DecodeRuneInString(e.text[end:])
		if !isTerminator(c) {
			break
		}
		wide = wide || strings.ContainsRune(wideTerminators, c)
		end += size
	}
	dots, terminated := e.text[at:end], end
	end = e.afterClosers(end)
	if end < len(e.text) && !wide && !startsWithSpace(e.text[end:]) {
		return terminated, false
	}
	next := nextRune(e.text[end:])
	if !wide && (unicode.IsLower(next) || dots == "." && isAbbreviated(e.text[e.start:at], e.text[end:], next)) {
		return terminated, false
	}
	return e.afterCitations(end), true
}

// afterClosers returns the end of the closing characters and citations at a position.
func (e *ending) afterClosers(at int) int {
	for at < len(e.text) {
		if next := e.in.afterCitation(at, &e.cited); next > at {
			at = next
			continue
		}
		c, size := utf8.DecodeRuneInString(e.text[at:])
		if guillemet := strings.TrimLeft(e.text[at:min(len(e.text), at+8)], " \u00a0\u202f"); strings.HasPrefix(guillemet, "»") {
			at = strings.Index(e.text[at:], "»") + at + len("»") // French has a space before it
			continue
		}
		if !strings.ContainsRune(closers, c) {
			break
		}
		at += size
	}
	return min(at, len(e.text))
}

// afterCitations returns the end of the citations that follow a sentence after a space, unless the next sentence begins with
// them.
func (e *ending) afterCitations(end int) int {
	at, last := end, end
	for {
		for at < len(e.text) && e.text[at] == ' ' {
			at++
		}
		for e.cited < len(e.in.citations) && e.in.citations[e.cited].End <= at {
			e.cited++
		}
		if e.cited >= len(e.in.citations) || e.in.citations[e.cited].Start != at {
			break
		}
		at = e.in.citations[e.cited].End
		last = at
	}
	if last == end {
		return end
	}
	if last < len(e.text) && !startsWithSpace(e.text[last:]) || unicode.IsLower(nextRune(e.text[last:])) {
		return end
	}
	return last
}

func startsWithSpace(text string) bool {
	c, _ := utf8.DecodeRuneInString(text)
	return unicode.IsSpace(c)
}

// nextRune returns the first character of the next word, or 0.
func nextRune(text string) rune {
	for i, c := range text {
		if isWordRune(c) {
			return c
		}
		if i > maxCitation {
			break
		}
	}
	return 0
}
