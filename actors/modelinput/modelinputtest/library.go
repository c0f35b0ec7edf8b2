package modelinputtest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Library contains the methods of tool.Files. It repeats them because the tests of package tool import this package.
type Library interface {
	ScopedFileHead(ctx context.Context, scope turnlog.Scope, file protocol.FileID) (*turnlog.FileHead, error)
	ProjectFileHeads(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, limit int) ([]turnlog.FileHead, error)
	FileContent(ctx context.Context, account protocol.AccountID, file protocol.FileID) (text string, blocks []protocol.TextBlock, err error)
	SearchFiles(ctx context.Context, scope turnlog.Scope, query string, limit int) ([]protocol.SearchResult, error)
}

// Shelf is a library with one file in a scope. Only one of its pages has the word.
type Shelf struct {
	Library
	Scope  turnlog.Scope
	File   protocol.FileID
	Text   string
	Blocks []protocol.TextBlock
	Word   string
}

// RunLibrary runs the suite of tool.Files.
func RunLibrary(t *testing.T, open func(t *testing.T) Shelf) {
	s := open(t)
	head, err := s.ScopedFileHead(t.Context(), s.Scope, s.File)
	if err != nil || head.FileID != s.File || head.State != protocol.TextDone || head.Size != len(s.Text) || head.Pages != len(s.Blocks) {
		t.Errorf("%+v, %v", head, err)
	}
	other := s.Scope
	other.AccountID = protocol.NewAccountID()
	for name, in := range map[string]struct {
		scope turnlog.Scope
		file  protocol.FileID
	}{"a file that does not exist": {s.Scope, missing()}, "the scope of another account": {other, s.File}} {
		if head, err := s.ScopedFileHead(t.Context(), in.scope, in.file); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s: %+v, %v", name, head, err)
		}
	}
	if text, blocks, err := s.FileContent(t.Context(), s.Scope.AccountID, s.File); err != nil || text != s.Text || !slices.Equal(blocks, s.Blocks) {
		t.Errorf("%d bytes in %d blocks, %v", len(text), len(blocks), err)
	}
	if found, err := s.SearchFiles(t.Context(), s.Scope, "xyzzy", 5); err != nil || len(found) != 0 {
		t.Errorf("a word that no file has: %+v, %v", found, err)
	}
	found, err := s.SearchFiles(t.Context(), s.Scope, s.Word, 5)
	if err != nil || len(found) != 1 || found[0].FileID == nil || *found[0].FileID != s.File || found[0].Passage == nil {
		t.Fatalf("the word: %+v, %v", found, err)
	}
	p := found[0].Passage
	if p.Offset < 0 || p.Match < p.Offset || p.Match >= p.Offset+p.Length || p.Offset+p.Length > len(s.Text) || !strings.HasPrefix(s.Text[p.Match:], s.Word) {
		t.Errorf("the passage is %+v", p)
	}
}
