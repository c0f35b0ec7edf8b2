package evidence

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"turnstone/protocol/words"
)

// maxNumber is the number from which a source cannot be cited: [1000] may be a year.
const maxNumber = 1000

// Checked is a report after the check of its citations.
type Checked struct {
	Text        string
	Cited       []int // the numbers in the text, ascending
	Sentences   int
	Factual     int // sentences that need a source
	Supported   int // factual sentences with a citation
	Unsupported int // factual sentences that have the marker
	Removed     int // citations that were removed: each number counts
}

// maxPasses is how often citations are removed until nothing changes. A removed citation may leave another one, as in [[1]2], or
// make a line a heading.
const maxPasses = 6

// Check returns a report in which every citation [n] has an excerpt with the number n that supports its sentence, or the part of the
// sentence before it. Other citations are removed, also those in headings, links and code. A factual sentence without a
// citation gets the best one of the excerpts that support it; if there is none, it gets the marker, which is a text such as
// "(not supported by a source)". All other text stays unchanged. Checking the result again changes
// nothing.
func Check(markdown string, excerpts map[int][]string, marker string) Checked {
	c := checker{library: libraryOf(excerpts), marker: marker}
	text, removed := c.withoutUnsupported(withoutMarkers(markdown, marker))
	c.adds = true
	c.pass(text)
	result := c.result
	if c.pass(withoutMarkers(result.Text, marker)); c.result.Text != result.Text { // what was added is read as something else
		c.adds = false
		c.pass(text)
		result = c.result
	}
	result.Removed = removed
	return result
}

// withoutUnsupported removes the citations that do not hold, before any is added, and returns how many.
func (c *checker) withoutUnsupported(text string) (rest string, removed int) {
	for range maxPasses {
		c.pass(text)
		removed += c.result.Removed
		if c.result.Text == text {
			return text, removed
		}
		text = c.result.Text
	}
	return withoutNested(text), removed
}

// checker checks one report.
type checker struct {
	library *library
	marker  string
	adds    bool // citations and markers are added
	work    int  // for tests

	// Of a pass.
	document *document
	edits    []edit
	cited    map[int]bool
	result   Checked
}

// edit replaces a range of a text.
type edit struct {
	Span
	text string
}

// pass checks a text without markers.
func (c *checker) pass(text string) {
	c.document, c.edits, c.cited, c.result = parseDocument(text), nil, map[int]bool{}, Checked{}
	c.work += c.document.work
	for _, outside := range c.document.outside {
		c.replace(outside, nil)
	}
	for i := range c.document.sentences {
		c.sentence(&c.document.sentences[i])
	}
	c.result.Text = applied(text, c.edits)
	c.result.Cited = slices.Sorted(maps.Keys(c.cited))
}

// sentence checks the citations of a sentence, and adds one or the marker.
func (c *checker) sentence(s *sentence) {
	c.result.Sentences++
	parts := c.document.partsOf(s)
	whole := statementOf(c.document.plain(s))
	c.work += s.End - s.Start
	supported, complete := false, true
	for _, part := range parts {
		c.work += part.End - part.Start
		kept := c.part(&part, whole)
		supported = supported || kept.whole
		complete = complete && (kept.any || !part.substantial())
	}
	if !s.Factual {
		return
	}
	c.result.Factual++
	if supported || complete && len(s.citations) > 0 && len(parts) > 0 && slices.ContainsFunc(parts, func(p part) bool { return len(p.citations) > 0 && p.substantial() }) {
		c.result.Supported++
		return
	}
	if number := c.library.best(whole); number > 0 && c.adds {
		c.result.Supported++
		c.insert(s, c.citing(number), true)
		return
	}
	c.result.Unsupported++
	if c.marker != "" && c.adds {
		c.insert(s, c.marker, false)
	}
}

// kept are the citations of a part of a sentence that were not removed.
type kept struct{ any, whole bool }

// part replaces the citations of a part of a sentence.
func (c *checker) part(p *part, whole *statement) (k kept) {
	seen := map[int]bool{}
	for _, cite := range p.citations {
		var numbers []int
		for _, n := range cite.numbers {
			if seen[n] || n >= maxNumber || becomesLink(c.document.text, cite) {
				continue
			}
			all := c.library.supports(n, whole)
			if all || p.substantial() && c.library.supports(n, p.statement) {
				numbers, seen[n] = append(numbers, n), true
				k.any, k.whole = true, k.whole || all
			}
		}
		c.replace(cite, numbers)
	}
	return k
}

// becomesLink reports whether [n] in the place of a citation would be an image, or would begin a link or a definition.
func becomesLink(text string, c citation) bool {
	if strings.HasSuffix(text[:c.Start], "!") || c.lead < c.Start && strings.HasSuffix(text[:withBlanks(text, Span{c.lead, c.lead}).Start], "!") {
		return true
	}
	return c.follow < len(text) && (text[c.follow] == ':' || linkTarget(text, c.follow) > 0)
}

// replace writes the numbers that are left of a citation.
func (c *checker) replace(cite citation, numbers []int) {
	c.result.Removed += max(len(cite.numbers), 1) - len(numbers)
	if len(numbers) == 0 {
		c.edits = append(c.edits, edit{withBlanks(c.document.text, cite.Span), ""})
		return
	}
	var b strings.Builder
	for _, n := range numbers {
		b.WriteString(c.citing(n))
	}
	c.edits = append(c.edits, edit{cite.Span, b.String()})
}

// citing returns the citation of a number, which is cited then.
func (c *checker) citing(number int) string {
	c.cited[number] = true
	return "[" + strconv.Itoa(number) + "]"
}

// insert adds a citation or the marker to a sentence, after a space. A citation is joined to a text of a script without spaces; the
// marker is not, because after a letter Markdown has no emphasis that begins with a bracket.
func (c *checker) insert(s *sentence, text string, joins bool) {
	at := c.document.insertion(s)
	body := c.document.text[s.Start:c.document.beforeCitations(s, at)]
	if last, _ := utf8.DecodeLastRuneInString(body); !joins || !words.Unspaced(last) {
		text = " " + text
	}
	c.edits = append(c.edits, edit{Span{at, at}, text})
}

// withBlanks extends a range by the spaces before it, and at the beginning of a line by those after it: they would be an
// indentation.
func withBlanks(text string, s Span) Span {
	for s.Start > 0 && isBlank(text[s.Start-1]) {
		s.Start--
	}
	if s.Start == 0 || text[s.Start-1] == '\n' {
		for s.End < len(text) && isBlank(text[s.End]) {
			s.End++
		}
	}
	return s
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// applied returns a text with its edits.
func applied(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.Start - b.Start })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.Start > at {
			b.WriteString(text[at:e.Start])
		}
		b.WriteString(e.text)
		at = max(at, e.End)
	}
	b.WriteString(text[at:])
	return b.String()
}

// withoutMarkers removes the markers of an earlier check, with the spaces before them.
func withoutMarkers(text, marker string) string {
	for pass := 0; marker != "" && pass < 2*maxPasses; pass++ {
		var edits []edit
		for at := 0; ; {
			found := strings.Index(text[at:], marker)
			if found < 0 {
				break
			}
			span := Span{at + found, at + found + len(marker)}
			edits = append(edits, edit{withBlanks(text, span), ""})
			at = span.End
		}
		if edits == nil {
			break
		}
		text = applied(text, edits)
	}
	return text
}

// withoutNested removes the first bracket of every citation, so that the rest is none. Only texts of nested brackets, which
// are no citations to a reader either, are changed this way.
func withoutNested(text string) string {
	d := parseDocument(text)
	var edits []edit
	remove := func(c citation) {
		_, size := utf8.DecodeRuneInString(text[c.Start:])
		edits = append(edits, edit{Span{c.Start, c.Start + size}, ""})
	}
	for _, c := range d.outside {
		remove(c)
	}
	for _, s := range d.sentences {
		for _, c := range s.citations {
			remove(c)
		}
	}
	return applied(text, edits)
}
