package tool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"turnstone/actors/modelinput"
	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

//go:embed search_files.md
var searchFilesDescription string

// SearchFiles finds files by their names and their texts.
type SearchFiles struct{ Files Files }

const (
	maxFound   = 6       // files of one call
	maxPassage = 4 << 10 // bytes that are shown of each
	maxTries   = 5       // searches of one call
)

// Spec implements toolbox.Tool.
func (SearchFiles) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "search_files", Kind: "files", Title: "Search files", Description: searchFilesDescription, Effect: protocol.EffectRead, Risk: protocol.RiskLow,
		Reversibility: protocol.Reversible, Repeatable: true, Private: true, Untrusted: true,
		Timeout: 30 * time.Second,
		Schema:  json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"Words that the passage has."}},"required":["query"],"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool.
func (s SearchFiles) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	var in struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil || strings.TrimSpace(in.Query) == "" {
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_input", Detail: "A query is needed."}
	}
	found, err := s.find(ctx, call.Scope, strings.TrimSpace(in.Query))
	if err != nil {
		return toolbox.Result{}, err
	}
	var result toolbox.Result
	for i := range found {
		section, source, err := s.passage(ctx, call, &found[i], len(result.Sources))
		if err != nil {
			return toolbox.Result{}, err
		}
		if source != nil {
			result.Output += section
			result.Sources = append(result.Sources, *source)
		}
	}
	if len(result.Sources) == 0 {
		return toolbox.Result{Output: "No file matches.", Empty: true}, nil
	}
	result.Output, result.Framed = strings.TrimSpace(result.Output), true
	return result, nil
}

// find searches with all words. While nothing is found, it leaves out the shortest one.
func (s SearchFiles) find(ctx context.Context, scope turnlog.Scope, query string) ([]protocol.SearchResult, error) {
	words := strings.Fields(query)
	for range maxTries {
		text := []rune(strings.Join(words, " "))
		found, err := s.Files.SearchFiles(ctx, scope, string(text[:min(len(text), protocol.MaxQueryRunes)]), maxFound)
		if err != nil || len(found) > 0 || len(words) == 1 {
			return found, err
		}
		words = withoutShortest(words)
	}
	return nil, nil
}

// passage returns the passage of a file that matches; nil if the file was deleted meanwhile.
func (s SearchFiles) passage(ctx context.Context, call *toolbox.Call, found *protocol.SearchResult, before int) (string, *protocol.Source, error) {
	head, err := s.Files.ScopedFileHead(ctx, call.Scope, *found.FileID)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	text, blocks, err := s.Files.FileContent(ctx, call.AccountID, head.FileID)
	if err != nil {
		return "", nil, err
	}
	start, end := 0, min(maxPassage, len(text))
	if p := found.Passage; p != nil {
		start, end = around(text, p)
	}
	end = min(end, pagesEnd(blocks, start))
	section, source := modelinput.Excerpt(call.FirstSource+before, head, text, blocks, boundary(text, start), boundary(text, end), "")
	return section, &source, nil
}

// around returns the range that is shown for a passage: its page, or some text around it.
func around(text string, p *protocol.SearchPassage) (start, end int) {
	if p.Kind != "" && p.Length <= maxPassage {
		return p.Offset, p.Offset + p.Length
	}
	start = max(0, p.Match-maxPassage/4)
	return start, min(start+maxPassage, len(text))
}

// boundary returns the start of the character at a byte.
func boundary(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return min(at, len(text))
}

// withoutShortest returns words without the shortest of them.
func withoutShortest(words []string) []string {
	shortest := slices.MinFunc(words, func(a, b string) int { return cmp.Compare(utf8.RuneCountInString(a), utf8.RuneCountInString(b)) })
	at := slices.Index(words, shortest)
	return slices.Delete(words, at, at+1)
}
