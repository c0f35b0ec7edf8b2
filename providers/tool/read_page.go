package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/providers/web/page"
)

//go:embed read_page.md
var readPageDescription string

// ReadPage reads a web page.
type ReadPage struct{ Web *Web }

// Spec implements toolbox.Tool.
func (r ReadPage) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "read_page", Kind: "web_search", Title: "Read a web page", Description: readPageDescription, Effect: protocol.EffectRead, Risk: protocol.RiskLow, Reversibility: protocol.Reversible,
		Untrusted: true, Describe: describePage, Unavailable: r.Web.Unavailable,
		Timeout: 90 * time.Second, // a large PDF takes 45 s
		Schema:  json.RawMessage(`{"type":"object","properties":{"url":{"type":"string","minLength":1,"maxLength":4096,"description":"The address of the page, with https://."}},"required":["url"],"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool.
func (r ReadPage) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	var in struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil || strings.TrimSpace(in.URL) == "" {
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_input", Detail: "The address of a page is needed."}
	}
	if err := r.Web.begin(ctx, call, "web_pages", "web pages", r.Web.PagesPerDay); err != nil {
		return toolbox.Result{}, err
	}
	read, err := r.Web.Pages.Read(ctx, in.URL, label(call))
	if err != nil {
		return toolbox.Result{}, err
	}
	return framedPage(call, read), nil
}

// framedPage returns a page in a frame, below what is to be said about it.
func framedPage(call *toolbox.Call, read *page.Page) toolbox.Result {
	attributes := foreign.Attribute("number", strconv.Itoa(call.FirstSource)) + foreign.Attribute("title", read.Title) + foreign.Attribute("url", read.URL) +
		foreign.Attribute("status", strconv.Itoa(read.Status)) + foreign.Attribute("type", read.MediaType)
	for _, one := range []struct{ name, value string }{{"language", read.Language}, {"published", read.Published}} {
		if one.value != "" {
			attributes += foreign.Attribute(one.name, one.value)
		}
	}
	attributes += foreign.Attribute("words", strconv.Itoa(read.Words))
	text, blocks, notes := read.Text, read.Blocks, read.Notes
	if len(blocks) > maxPages {
		text, blocks, notes = text[:blocks[maxPages].Offset], blocks[:maxPages], append(notes, fmt.Sprintf("These are the first %d pages of the document.", maxPages))
	}
	output := foreign.Frame(foreign.WebPage, attributes, numbered(text, blocks))
	if len(notes) > 0 {
		output = strings.Join(notes, " ") + "\n\n" + output
	}
	title := foreign.Clean(read.Title)
	if title == "" {
		title = read.URL
	}
	return toolbox.Result{
		Output: output, Framed: true, Empty: read.Words == 0,
		Sources: []protocol.Source{{Number: call.FirstSource, URL: protocol.WebAddress(read.URL), Title: title, Size: len(read.Text), Blocks: blocks}},
	}
}

// numbered returns a text with the number of each page, sheet, slide or chapter before it.
func numbered(text string, blocks []protocol.TextBlock) string {
	var b strings.Builder
	at := 0
	for _, block := range blocks {
		b.WriteString(text[at:block.Offset])
		fmt.Fprintf(&b, "[%s %d]\n", block.Kind, block.Page)
		at = block.Offset
	}
	b.WriteString(text[at:])
	return b.String()
}
