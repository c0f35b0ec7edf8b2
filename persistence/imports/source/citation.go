package source

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"turnstone/protocol"
)

// In a text of ChatGPT, private characters enclose the reference to a source or a thing, and separate its fields.
const (
	markStart, markEnd, markBetween = "\ue200", "\ue201", "\ue202"
	maxCitations                    = 500 // of one text
	maxCited                        = 50  // of one mark
)

// reference is an element of "content_references": what stands for a mark.
type reference struct {
	Mark  text           `json:"matched_text"`
	Type  text           `json:"type"`
	Alt   text           `json:"alt"`
	Name  text           `json:"name"`
	Title text           `json:"title"`
	URL   text           `json:"url"`
	Items []referredPage `json:"items"`
}

type referredPage struct {
	Title      text `json:"title"`
	URL        text `json:"url"`
	Supporting []struct {
		Title text `json:"title"`
		URL   text `json:"url"`
	} `json:"supporting_websites"`
}

// oldReference is an element of "citations": the source for a range of characters.
type oldReference struct {
	Start    int `json:"start_ix"`
	End      int `json:"end_ix"`
	Metadata struct {
		Title text `json:"title"`
		Name  text `json:"name"`
		URL   text `json:"url"`
	} `json:"metadata"`
}

// privateMarks are the characters for marks. None of them is a text for people.
var privateMarks = regexp.MustCompile("[\ue200-\ue20f]")

// resolve replaces the marks in the texts of a message by citations and names. The citations of ranges are those of the first text.
func (c *Conversation) resolve(parts []protocol.Part, references []reference, old []oldReference) {
	marks := make(map[string]*reference, len(references))
	for i := range references {
		if mark := string(references[i].Mark); marks[mark] == nil {
			marks[mark] = &references[i]
		}
	}
	for i := range parts {
		if parts[i].Type != protocol.PartText {
			continue
		}
		c.citeRanges(&parts[i], old)
		old = nil
		if privateMarks.MatchString(parts[i].Text) {
			c.resolveMarks(&parts[i], marks)
		}
	}
}

func (c *Conversation) resolveMarks(p *protocol.Part, marks map[string]*reference) {
	r := resolving{part: p, references: marks, numbers: map[string]int{}}
	var out strings.Builder
	rest := p.Text
	for {
		before, mark, found := strings.Cut(rest, markStart)
		out.WriteString(before)
		if !found {
			break
		}
		fields, after, ends := strings.Cut(mark, markEnd)
		if !ends { // the text ends within a mark
			out.WriteString(mark)
			r.lost++
			break
		}
		if words := r.words(fields); out.Len()+len(words) <= maxString { // a mark can stand for a text of any length
			out.WriteString(words)
		} else {
			r.lost++
		}
		rest = after
	}
	text := out.String()
	p.Text = privateMarks.ReplaceAllString(text, "")
	r.lost += utf8.RuneCountInString(text) - utf8.RuneCountInString(p.Text)
	c.note(protocol.ImportTextChanged, r.lost)
}

// citeRanges adds the citations of ranges of the text.
func (c *Conversation) citeRanges(p *protocol.Part, old []oldReference) {
	if len(old) == 0 {
		return
	}
	runes := []rune(p.Text)
	for _, from := range old {
		title := cmpText(from.Metadata.Title, from.Metadata.Name)
		if title == "" && from.Metadata.URL == "" {
			continue // the place of no source
		}
		if len(p.Citations) == maxCitations {
			c.note(protocol.ImportTextChanged, 1)
			continue
		}
		citation := protocol.Citation{Index: len(p.Citations) + 1, Title: title, URL: protocol.WebAddress(from.Metadata.URL)}
		if from.Start >= 0 && from.Start < from.End && from.End <= len(runes) {
			citation.Marker = string(runes[from.Start:from.End])
		}
		if len(citation.Marker) > maxName || privateMarks.MatchString(citation.Marker) {
			citation.Marker = ""
		}
		p.Citations = append(p.Citations, citation)
	}
}

func cmpText(texts ...text) string {
	for _, t := range texts {
		if t != "" {
			return titleLine(string(t))
		}
	}
	return ""
}

// titleLine returns a text as a line that is short enough for a title.
func titleLine(text string) string {
	line, _ := shortLine(text, protocol.MaxTitle)
	return line
}

// resolving is a text whose marks are replaced.
type resolving struct {
	part       *protocol.Part
	references map[string]*reference
	numbers    map[string]int // of the citations, by their addresses and titles
	lost       int            // marks without a meaning
}

// words returns what stands for a mark.
func (r *resolving) words(fields string) string {
	kind, rest, _ := strings.Cut(fields, markBetween)
	if name := entityName(kind, rest); name != "" {
		return name
	}
	from := r.references[markStart+fields+markEnd]
	if from == nil {
		r.lost++
		return ""
	}
	var cited strings.Builder
	r.lost += max(0, len(from.Items)-maxCited)
	for _, page := range from.Items[:min(len(from.Items), maxCited)] {
		cited.WriteString(r.cite(cmpText(page.Title), string(page.URL)))
		for _, more := range page.Supporting[:min(len(page.Supporting), maxCited)] {
			cited.WriteString(r.cite(cmpText(more.Title), string(more.URL)))
		}
	}
	if len(from.Items) == 0 && (from.URL != "" || strings.HasSuffix(kind, "cite")) {
		cited.WriteString(r.cite(cmpText(from.Title, from.Name), string(from.URL)))
	}
	switch {
	case cited.Len() > 0:
		return cited.String()
	case from.Name != "":
		return string(from.Name)
	case from.Alt == "":
		r.lost++
	}
	return string(from.Alt)
}

// entityName returns the name in a mark of a person, a place or another thing.
func entityName(kind, rest string) string {
	if kind != "entity" {
		return ""
	}
	var fields []text
	const named = 2 // the kind of the thing, and its name
	if json.Unmarshal([]byte(rest), &fields, lenient) != nil || len(fields) < named {
		return ""
	}
	return string(fields[1])
}

// cite returns the number of a source in the text.
func (r *resolving) cite(title, address string) string {
	if title == "" && address == "" {
		return ""
	}
	key := address + "\x00" + title
	number := r.numbers[key]
	if number == 0 {
		if len(r.part.Citations) == maxCitations {
			r.lost++
			return ""
		}
		number = len(r.part.Citations) + 1
		r.numbers[key] = number
		if title == "" {
			title = titleLine(address)
		}
		r.part.Citations = append(r.part.Citations, protocol.Citation{Index: number, Title: title, URL: protocol.WebAddress(address), Marker: marker(number)})
	}
	return marker(number)
}

func marker(number int) string { return "[" + strconv.Itoa(number) + "]" }
