package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"turnstone/actors/modelinput"
	"turnstone/actors/toolbox"
	"turnstone/protocol"
)

//go:embed read_file.md
var readFileDescription string

// ReadFile returns a part of the text of a file.
type ReadFile struct{ Files Files }

const (
	maxRead   = 24 << 10 // bytes of one call: about 8,000 tokens
	wordSpace = 256      // bytes in which the end of a word is looked for
	maxPages  = 200      // of one file in one result, whose event names them all
)

// Spec implements toolbox.Tool.
func (ReadFile) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "read_file", Kind: "files", Title: "Read a file", Description: readFileDescription, Effect: protocol.EffectRead, Risk: protocol.RiskLow,
		Reversibility: protocol.Reversible, Repeatable: true, Private: true, Untrusted: true,
		Timeout: 15 * time.Second,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"file_id":{"type":"string","description":"The id of the file."},` +
			`"first":{"type":"integer","minimum":1,"description":"The first page, sheet, slide or chapter."},` +
			`"last":{"type":"integer","minimum":1,"description":"The last one. Default: the first."},` +
			`"offset":{"type":"integer","minimum":0,"description":"Read from this byte of the text instead."}},` +
			`"required":["file_id"],"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool.
func (r ReadFile) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	var in struct {
		FileID protocol.FileID `json:"file_id"`
		First  int             `json:"first"`
		Last   int             `json:"last"`
		Offset int             `json:"offset"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil || in.FileID.IsZero() || in.First < 0 || in.Last < 0 || in.Offset < 0 {
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_input", Detail: "The id of a file is needed, and numbers must not be negative."}
	}
	head, err := readable(ctx, r.Files, call.Scope, in.FileID)
	if err != nil {
		return toolbox.Result{}, err
	}
	text, blocks, err := r.Files.FileContent(ctx, call.AccountID, in.FileID)
	if err != nil {
		return toolbox.Result{}, err
	}
	start, end := min(in.Offset, len(text)), len(text)
	for start < len(text) && start > 0 && !utf8.RuneStart(text[start]) {
		start--
	}
	if in.First > 0 {
		var found bool
		if start, end, found = pages(blocks, in.First, max(in.First, in.Last)); !found {
			return toolbox.Result{}, &toolbox.Failure{Code: "no_page", Detail: fmt.Sprintf("The file has no text on this page. It has %d.", max(head.Pages, 1))}
		}
	}
	if start == len(text) {
		return toolbox.Result{}, &toolbox.Failure{Code: "end_of_file", Detail: fmt.Sprintf("The text has %d bytes.", len(text))}
	}
	note := ""
	if cut := min(readEnd(text, start), pagesEnd(blocks, start)); cut < end {
		end, note = cut, fmt.Sprintf("[This is a part of the text. It continues at the offset %d.]", cut)
	}
	section, source := modelinput.Excerpt(call.FirstSource, head, text, blocks, start, end, note)
	return toolbox.Result{Output: strings.TrimSpace(section), Framed: true, Sources: []protocol.Source{source}}, nil
}

// pages returns the range of some pages.
func pages(blocks []protocol.TextBlock, first, last int) (start, end int, found bool) {
	for _, b := range blocks {
		if b.Page < first || b.Page > last {
			continue
		}
		if !found {
			start, found = b.Offset, true
		}
		end = b.Offset + b.Length
	}
	return start, end, found
}

// pagesEnd returns where maxPages pages end that follow an offset.
func pagesEnd(blocks []protocol.TextBlock, start int) int {
	shown := 0
	for _, b := range blocks {
		if end := b.Offset + b.Length; end > start {
			if shown++; shown == maxPages {
				return end
			}
		}
	}
	return math.MaxInt
}

// readEnd returns the end of a part that starts at an offset, at the end of a word if there is one.
func readEnd(text string, start int) int {
	end := start + maxRead
	if end >= len(text) {
		return len(text)
	}
	for !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexFunc(text[end-wordSpace:end], unicode.IsSpace); space > 0 {
		end += space - wordSpace
	}
	return end
}
