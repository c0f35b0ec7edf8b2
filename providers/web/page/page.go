package page

import (
	"fmt"
	"strings"

	"turnstone/protocol"
)

// Page is what was read at an address.
type Page struct {
	URL       string // after redirects
	Status    int
	MediaType string
	Language  string // as the page says; "": it does not
	Title     string
	Published string // a date, as 2026-05-01; "": unknown
	Canonical string // the address on the same host that the page calls its own; "": none
	Author    string // or authors, as the page says; "": it does not
	DOI       string // as the page says; "": it does not
	Text      string // Markdown
	Words     int
	Blocks    []protocol.TextBlock // the pages, sheets, slides or chapters of a document, in Text
	// Notes say in sentences what is special about this page, for example that it is only a part.
	Notes []string
}

func (p *Page) note(sentence string) { p.Notes = append(p.Notes, sentence) }

// finish bounds the text, and counts its words.
func (p *Page) finish(cut bool) {
	p.Words = len(strings.Fields(p.Text))
	if cut {
		p.note("The page is larger than 10 MiB. This is its beginning.")
	}
	if end := structuralEnd(p.Text, maxText); end < len(p.Text) {
		p.note(fmt.Sprintf("The page has %d words. This is its beginning.", p.Words))
		p.Text = p.Text[:end]
		for i, b := range p.Blocks {
			if b.Offset >= end {
				p.Blocks = p.Blocks[:i]
				break
			}
			p.Blocks[i].Length = min(b.Length, end-b.Offset)
		}
	}
	if p.Words == 0 && len(p.Notes) == 0 {
		p.note("The page has no text.")
	}
}
