package machine

import (
	"fmt"
	"strings"
	"testing"

	"turnstone/protocol"
)

func TestCitationsNameFilesAndPagesThatTheModelHasRead(t *testing.T) {
	one, two := protocol.DeriveFileID(protocol.NewUploadID()), protocol.DeriveFileID(protocol.NewUploadID())
	m := &Machine{sources: []protocol.Source{
		{Number: 1, FileID: one, Title: "notes.txt", Size: 40},
		{Number: 2, FileID: two, Title: "report.pdf", Size: 99, Blocks: []protocol.TextBlock{{Kind: protocol.BlockPage, Page: 12, Offset: 30, Length: 7}}},
	}}
	for text, want := range map[string][]protocol.Citation{
		"":                    {},
		"No citation.":        {},
		"[3] [2:11] [02] [x]": {},
		"[2:12":               {},
		"As [1] says.":        {{Index: 1, Marker: "[1]", Title: "notes.txt", FileID: &one, Length: 40}},
		"Twelve [2:12]. Again [2:12], and [1].": {
			{Index: 1, Marker: "[2:12]", Title: "report.pdf", FileID: &two, Kind: protocol.BlockPage, Page: 12, Offset: 30, Length: 7},
			{Index: 2, Marker: "[1]", Title: "notes.txt", FileID: &one, Length: 40},
		},
	} {
		got := m.cite(text)
		if got == nil || len(got) != len(want) {
			t.Errorf("%q: %+v", text, got)
			continue
		}
		for i := range want {
			a, b := got[i], want[i]
			if *a.FileID != *b.FileID {
				t.Errorf("%q: citation %d is of another file", text, i)
			}
			a.FileID, b.FileID = nil, nil
			if a != b {
				t.Errorf("%q: %+v, want %+v", text, a, b)
			}
		}
	}
	many := &Machine{sources: []protocol.Source{{Number: 1, FileID: one, Blocks: make([]protocol.TextBlock, 2*maxCitations)}}}
	var text strings.Builder
	for i := range many.sources[0].Blocks {
		many.sources[0].Blocks[i].Page = i + 1
		fmt.Fprintf(&text, "[1:%d]", i+1)
	}
	if got := many.cite(text.String()); len(got) != maxCitations {
		t.Errorf("%d citations", len(got))
	}
	if got := many.cite(strings.Repeat("[", 100) + "1:7]"); len(got) != 1 {
		t.Errorf("after brackets: %+v", got)
	}
	if got := many.cite(strings.Repeat("[", 1<<20) + "1:7]"); len(got) != 0 {
		t.Errorf("after too many brackets: %+v", got)
	}
	if got := new(Machine).cite("[1]"); got == nil || len(got) != 0 {
		t.Errorf("without files: %+v", got)
	}
}
