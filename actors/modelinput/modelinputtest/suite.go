// Package modelinputtest is the suite for what reads the files of messages and projects: the store on Postgres, and those in memory
// of the tests of model inputs and of tools. Only tests import it.
package modelinputtest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"turnstone/actors/passages/passagestest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Store contains the methods of modelinput.Store. It repeats them because the tests of package modelinput import this package.
type Store interface {
	FileHeads(ctx context.Context, account protocol.AccountID, files []protocol.FileID) ([]turnlog.FileHead, error)
	FilePictures(ctx context.Context, account protocol.AccountID, file protocol.FileID, most int) ([][]byte, error)
	FileContent(ctx context.Context, account protocol.AccountID, file protocol.FileID) (text string, blocks []protocol.TextBlock, err error)
	ProjectFileHeads(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, limit int) ([]turnlog.FileHead, error)
}

// Files is a store without files, and what fills it. Every file is added to the project.
type Files struct {
	Store
	Account    protocol.AccountID
	Project    protocol.ProjectID
	Add        func(name, text string, blocks ...protocol.TextBlock) protocol.FileID
	AddPicture func(name string, content []byte) protocol.FileID
}

// pages is longer than what a store may keep in one row.
const pages = 100

func manyPages() (text string, blocks []protocol.TextBlock) {
	return passagestest.Pages(pages, func(int) string { return strings.Repeat("Ebb and flöw. ", 60) })
}

// Run runs the suite of modelinput.Store.
func Run(t *testing.T, open func(t *testing.T) Files) {
	for name, test := range map[string]func(*testing.T, Files){
		"what is known of files":                    testHeads,
		"a text is read as it was added":            testContent,
		"a picture is read as it was added":         testPictures,
		"the newest files of a project":             testProject,
		"a file that does not exist has none of it": testMissing,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func testHeads(t *testing.T, f Files) {
	text, blocks := manyPages()
	long, short, picture := f.Add("pilot.pdf", text, blocks...), f.Add("note.txt", "Ebb."), f.AddPicture("sea.webp", []byte("sea"))
	heads, err := f.FileHeads(t.Context(), f.Account, []protocol.FileID{short, missing(), picture, long})
	if err != nil || len(heads) != 3 {
		t.Fatalf("%+v, %v", heads, err)
	}
	for _, head := range heads {
		want := turnlog.FileHead{FileID: head.FileID, State: protocol.TextDone}
		switch head.FileID {
		case long:
			want.Filename, want.Size, want.Pages = "pilot.pdf", len(text), pages
		case short:
			want.Filename, want.Size = "note.txt", len("Ebb.")
		case picture:
			want.Filename, want.State, want.Pictures = "sea.webp", protocol.TextNone, 1
		}
		if head.Filename != want.Filename || head.State != want.State || head.Size != want.Size || head.Pages != want.Pages || head.Pictures != want.Pictures {
			t.Errorf("%+v, want %+v", head, want)
		}
	}
}

func testContent(t *testing.T, f Files) {
	text, blocks := manyPages()
	for name, file := range map[string]struct {
		text   string
		blocks []protocol.TextBlock
	}{"long": {text, blocks}, "short": {"Ebb.", nil}} {
		got, gotBlocks, err := f.FileContent(t.Context(), f.Account, f.Add(name, file.text, file.blocks...))
		if err != nil || got != file.text || !slices.Equal(gotBlocks, file.blocks) {
			t.Errorf("%s: %d bytes in %d blocks, %v; want %d in %d", name, len(got), len(gotBlocks), err, len(file.text), len(file.blocks))
		}
	}
}

func testPictures(t *testing.T, f Files) {
	picture, text := f.AddPicture("sea.webp", []byte("sea")), f.Add("note.txt", "Ebb.")
	for _, most := range []int{1, 3} {
		if found, err := f.FilePictures(t.Context(), f.Account, picture, most); err != nil || len(found) != 1 || !bytes.Equal(found[0], []byte("sea")) {
			t.Errorf("at most %d: %q, %v", most, found, err)
		}
	}
	if found, err := f.FilePictures(t.Context(), f.Account, text, 1); err != nil || len(found) != 0 {
		t.Errorf("of a text: %q, %v", found, err)
	}
}

func testProject(t *testing.T, f Files) {
	first, second, third := f.Add("b.txt", "One."), f.Add("c.txt", "Two."), f.Add("a.txt", "Three.")
	for limit, want := range map[int][]protocol.FileID{2: {third, second}, 5: {third, second, first}} {
		heads, err := f.ProjectFileHeads(t.Context(), f.Account, f.Project, limit)
		var got []protocol.FileID
		for _, head := range heads {
			got = append(got, head.FileID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("at most %d: %v, %v; want %v", limit, got, err, want)
		}
	}
}

func testMissing(t *testing.T, f Files) {
	if text, blocks, err := f.FileContent(t.Context(), f.Account, missing()); err != nil || text != "" || len(blocks) != 0 {
		t.Errorf("%q, %v, %v", text, blocks, err)
	}
	if pictures, err := f.FilePictures(t.Context(), f.Account, missing(), 1); err != nil || len(pictures) != 0 {
		t.Errorf("%q, %v", pictures, err)
	}
}

func missing() protocol.FileID { return protocol.DeriveFileID(protocol.NewUploadID()) }
