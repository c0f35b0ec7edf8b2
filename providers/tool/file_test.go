package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"turnstone/actors/modelinput/modelinputtest"
	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// library has one file in the scope of the conversation, with 40 pages of 1,000 bytes.
type library struct {
	scope   turnlog.Scope
	head    turnlog.FileHead
	text    string
	blocks  []protocol.TextBlock
	queries []string
	finds   string // the query that finds the file
	reads   int    // of the text
}

func newLibrary() *library {
	l := &library{
		scope: turnlog.Scope{AccountID: protocol.NewAccountID(), ConversationID: protocol.NewConversationID()},
		head:  turnlog.FileHead{FileID: protocol.DeriveFileID(protocol.NewUploadID()), Filename: "pilot.pdf", MediaType: "application/pdf", State: protocol.TextDone, Pages: 40},
	}
	for page := 1; page <= 40; page++ {
		text := fmt.Sprintf("Page %d. %s\n", page, strings.Repeat("Ebb and flöw. ", 66))
		l.blocks = append(l.blocks, protocol.TextBlock{Kind: protocol.BlockPage, Page: page, Offset: len(l.text), Length: len(text)})
		l.text += text
	}
	l.head.Size = len(l.text)
	return l
}

func TestTheFileInMemoryIsALibrary(t *testing.T) {
	modelinputtest.RunLibrary(t, func(*testing.T) modelinputtest.Shelf {
		l := newLibrary()
		l.finds = "17"
		return modelinputtest.Shelf{Library: l, Scope: l.scope, File: l.head.FileID, Text: l.text, Blocks: l.blocks, Word: l.finds}
	})
}

func (l *library) ScopedFileHead(_ context.Context, scope turnlog.Scope, file protocol.FileID) (*turnlog.FileHead, error) {
	if scope != l.scope || file != l.head.FileID {
		return nil, protocol.Errorf(protocol.CodeNotFound, "no file")
	}
	return &l.head, nil
}

func (l *library) ProjectFileHeads(context.Context, protocol.AccountID, protocol.ProjectID, int) ([]turnlog.FileHead, error) {
	return []turnlog.FileHead{l.head}, nil
}

func (l *library) FileContent(context.Context, protocol.AccountID, protocol.FileID) (string, []protocol.TextBlock, error) {
	l.reads++
	return l.text, l.blocks, nil
}

func (l *library) SearchFiles(_ context.Context, _ turnlog.Scope, query string, _ int) ([]protocol.SearchResult, error) {
	l.queries = append(l.queries, query)
	if query != l.finds {
		return nil, nil
	}
	b := l.blocks[16]
	return []protocol.SearchResult{{FileID: &l.head.FileID, Passage: &protocol.SearchPassage{Kind: b.Kind, Page: b.Page, Offset: b.Offset, Length: b.Length, Match: b.Offset + 5}}}, nil
}

func (l *library) run(t *testing.T, tool toolbox.Tool, input map[string]any) (toolbox.Result, string) {
	t.Helper()
	encoded, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	result, err := tool.Run(t.Context(), &toolbox.Call{Scope: l.scope, Input: encoded, FirstSource: 220})
	var failure *toolbox.Failure
	if errors.As(err, &failure) {
		return result, string(failure.Code)
	}
	if err != nil {
		t.Fatal(err)
	}
	return result, ""
}

func TestAFileIsReadPageByPageAndPieceByPiece(t *testing.T) {
	l := newLibrary()
	id := l.head.FileID.String()
	result, code := l.run(t, ReadFile{l}, map[string]any{"file_id": id, "first": 17, "last": 18})
	if want := fmt.Sprintf("<file number=\"220\" name=\"pilot.pdf\" type=\"application/pdf\" pages=\"40\" id=%q>\n[page 17]\nPage 17. Ebb", id); code != "" ||
		!strings.HasPrefix(result.Output, want) || strings.Contains(result.Output, "Page 19") || len(result.Sources) != 1 ||
		result.Sources[0].Number != 220 || len(result.Sources[0].Blocks) != 2 || result.Sources[0].Blocks[1].Page != 18 {
		t.Errorf("%s: %.200s, %+v", code, result.Output, result.Sources)
	}
	// The notes lead through the whole text, whatever character an offset is in.
	var read strings.Builder
	for offset := 0; ; {
		result, code := l.run(t, ReadFile{l}, map[string]any{"file_id": id, "offset": offset})
		if code != "" || len(result.Output) > maxRead+2000 {
			t.Fatalf("%s: %d bytes", code, len(result.Output))
		}
		body := result.Output[strings.Index(result.Output, "\n")+1:]
		_, rest, partial := strings.Cut(body, "[This is a part of the text. It continues at the offset ")
		if !partial {
			read.WriteString(body)
			break
		}
		if _, err := fmt.Sscanf(rest, "%d.]", &offset); err != nil {
			t.Fatal(err)
		}
		read.WriteString(rest)
	}
	for page := 1; page <= 40; page++ {
		if !strings.Contains(read.String(), fmt.Sprintf("Page %d. Ebb", page)) {
			t.Errorf("page %d was not read", page)
		}
	}
}

func TestAResultHasABoundedNumberOfPages(t *testing.T) {
	l := newLibrary()
	l.text, l.blocks = "", nil
	for page := 1; page <= 3*maxPages; page++ {
		l.blocks = append(l.blocks, protocol.TextBlock{Kind: protocol.BlockPage, Page: page, Offset: len(l.text), Length: 2})
		l.text += "x\n"
	}
	l.head.Size = len(l.text)
	id := l.head.FileID.String()
	result, code := l.run(t, ReadFile{l}, map[string]any{"file_id": id})
	if code != "" || len(result.Sources[0].Blocks) != maxPages || !strings.Contains(result.Output, fmt.Sprintf("continues at the offset %d.]", 2*maxPages)) {
		t.Errorf("%s: %d pages, %.200s", code, len(result.Sources[0].Blocks), result.Output)
	}
	result, _ = l.run(t, ReadFile{l}, map[string]any{"file_id": id, "offset": 2 * 2 * maxPages})
	if blocks := result.Sources[0].Blocks; len(blocks) != maxPages || blocks[maxPages-1].Page != 3*maxPages || strings.Contains(result.Output, "continues") {
		t.Errorf("the end has %d pages: %.200s", len(blocks), result.Output)
	}
	if result, _ := l.run(t, SearchFiles{nameOnly{l}}, map[string]any{"query": "name"}); len(result.Sources[0].Blocks) != maxPages {
		t.Errorf("a search shows %d pages", len(result.Sources[0].Blocks))
	}
}

// nameOnly finds the file of a library by its name.
type nameOnly struct{ *library }

func (n nameOnly) SearchFiles(context.Context, turnlog.Scope, string, int) ([]protocol.SearchResult, error) {
	return []protocol.SearchResult{{FileID: &n.head.FileID}}, nil
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	l := newLibrary()
	id := l.head.FileID.String()
	for want, input := range map[string]map[string]any{
		"not_found":     {"file_id": protocol.DeriveFileID(protocol.NewUploadID()).String()},
		"invalid_input": {"file_id": "file_1"},
		"no_page":       {"file_id": id, "first": 41},
		"end_of_file":   {"file_id": id, "offset": len(l.text)},
	} {
		if _, code := l.run(t, ReadFile{l}, input); code != want {
			t.Errorf("%v: %s, want %s", input, code, want)
		}
	}
	for _, input := range []map[string]any{{}, {"file_id": id, "offset": -1}, {"file_id": id, "first": "x"}, {"file_id": 7}} {
		if _, code := l.run(t, ReadFile{l}, input); code != "invalid_input" {
			t.Errorf("%v: %s", input, code)
		}
	}
	for state, want := range map[protocol.TextState]string{protocol.TextPending: "not_ready", protocol.TextNone: "no_text", protocol.TextFailed: "no_text"} {
		l.head.State = state
		if _, code := l.run(t, ReadFile{l}, map[string]any{"file_id": id}); code != want {
			t.Errorf("%s: %s, want %s", state, code, want)
		}
	}
}

func TestASearchLeavesOutShortWordsUntilItFindsAFile(t *testing.T) {
	l := newLibrary()
	l.finds = "spring height"
	result, code := l.run(t, SearchFiles{l}, map[string]any{"query": " the spring of  height "})
	if code != "" || !strings.Contains(result.Output, "[page 17]\nPage 17.") || strings.Contains(result.Output, "Page 18") ||
		len(result.Sources) != 1 || result.Sources[0].Number != 220 || result.Sources[0].FileID != l.head.FileID {
		t.Errorf("%s: %s, %+v", code, result.Output, result.Sources)
	}
	if strings.Join(l.queries, "; ") != "the spring of height; the spring height; spring height" {
		t.Errorf("searched %q", l.queries)
	}
	l.queries = nil
	result, code = l.run(t, SearchFiles{l}, map[string]any{"query": strings.Repeat("a ", 1000) + strings.Repeat("潮", 1000)})
	if code != "" || result.Output != "No file matches." || len(l.queries) != maxTries {
		t.Errorf("%s: %q after %d searches", code, result.Output, len(l.queries))
	}
	for _, query := range l.queries {
		if n := len([]rune(query)); n > protocol.MaxQueryRunes {
			t.Errorf("a query of %d characters", n)
		}
	}
	for _, input := range []map[string]any{{}, {"query": " "}, {"query": 1}} {
		if _, code := l.run(t, SearchFiles{l}, input); code != "invalid_input" {
			t.Errorf("%v: %s", input, code)
		}
	}
	// The file was deleted between the search and the reading.
	l.finds, l.head.FileID = "gone", protocol.DeriveFileID(protocol.NewUploadID())
	l.scope.ConversationID = protocol.NewConversationID()
	gone := SearchFiles{l}
	if result, err := gone.Run(t.Context(), &toolbox.Call{Input: json.RawMessage(`{"query":"gone"}`)}); err != nil || result.Output != "No file matches." {
		t.Errorf("%+v, %v", result, err)
	}
}
