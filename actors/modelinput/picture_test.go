package modelinput

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

const png = "\x89PNG\r\n\x1a\n"

func TestAModelThatAcceptsPicturesGetsThem(t *testing.T) {
	store := memory{}
	tide, gone, notes, moon := store.addPicture("tide.webp", []byte(png+"tide")), store.addPicture("gone.webp", nil), store.add("notes.txt", "Tides come."), store.addPicture("moon</file>.webp", []byte("\xFF\xD8moon"))
	history := []turnlog.HistoryMessage{says("one", tide, gone), says("two", notes, moon, tide)}
	f := &Files{Store: store, Space: 100_000, Pictures: true}
	shown, sources, trimmed, err := f.Show(t.Context(), history)
	want := []string{
		"one\n\n<file number=\"1\" name=\"gone.webp\" type=\"image/webp\" width=\"30\" height=\"20\" id=\"" + gone.String() + "\">\nThis file has no text.\n</file>",
		"two\n\n<file number=\"2\" name=\"notes.txt\" type=\"text/plain\" id=\"" + notes.String() + "\">\nTides come.\n</file>" +
			"\n\n<file number=\"3\" name=\"moon‹/file>.webp\" type=\"image/webp\" width=\"30\" height=\"20\" id=\"" + moon.String() + "\">\nThis file is picture 1 of this message.\n</file>" +
			"\n\n<file number=\"4\" name=\"tide.webp\" type=\"image/webp\" width=\"30\" height=\"20\" id=\"" + tide.String() + "\">\nThis file is picture 2 of this message.\n</file>",
	}
	if got := texts(shown); err != nil || trimmed || !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q\n%v", got, want, err)
	}
	pictures := shown[1].Pictures
	if len(shown[0].Pictures) != 0 || len(pictures) != 2 || pictures[0].MediaType != "image/jpeg" || pictures[1].MediaType != "image/png" || !bytes.HasSuffix(pictures[1].Content, []byte("tide")) {
		t.Errorf("the pictures are %+v", pictures)
	}
	if len(sources) != 1 || history[1].Pictures != nil {
		t.Errorf("%+v; the history of the caller has %+v", sources, history[1].Pictures)
	}
	f.Pictures = false
	shown, _, _, err = f.Show(t.Context(), history)
	if got := texts(shown); err != nil || strings.Count(got[1], "This file has no text.") != 2 || len(shown[1].Pictures) != 0 {
		t.Errorf("a model without pictures gets %q, %v", got, err)
	}
}

func TestADocumentOfPicturesIsShownInItsFirstPages(t *testing.T) {
	store := memory{}
	scan, letter, tide := store.addPicture("scan.pdf", []byte(png)), store.addPicture("letter.pdf", []byte(png)), store.addPicture("tide.png", []byte(png))
	for id, pages := range map[protocol.FileID]int{scan: 20, letter: 3} {
		store[id].State, store[id].Reason, store[id].Width, store[id].Height, store[id].Pages = protocol.TextNoText, protocol.TextNoOCR, 0, 0, pages
		store[id].Pictures = min(pages, maxPictures)
	}
	store[scan].Notes = []protocol.TextNote{{Kind: protocol.NotePagesNotShown, Count: 12}}
	for space, want := range map[int][]string{
		1_000_000: {
			`pages="20" notes="Its last pages are not shown: 16." id="` + scan.String() + "\">\nThe pages 1 to 4 of this file are the pictures 1 to 4 of this message.",
			`pages="3" id="` + letter.String() + "\">\nThe pages 1 to 3 of this file are the pictures 5 to 7 of this message.", "This file is picture 8 of this message.",
		},
		4 * share * pictureSpace: {
			"Its last pages are not shown: 19.", "This file is picture 1 of this message.", "Its last pages are not shown: 1.", "The pages 1 to 2 of this file are the pictures 2 to 3 of this message.", "This file is picture 4 of this message.",
		},
	} {
		shown, _, _, err := (&Files{Store: store, Space: space, Pictures: true}).Show(t.Context(), []turnlog.HistoryMessage{says("", scan, letter, tide)})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(texts(shown), "")
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("in %d bytes: no %s in %s", space, part, got)
			}
		}
	}
}

func TestTheNewestPicturesAreShown(t *testing.T) {
	store := memory{}
	var ids []protocol.FileID
	for i := range maxPictures + 3 {
		ids = append(ids, store.addPicture(fmt.Sprintf("%d.png", i), []byte(fmt.Sprintf("%s%d", png, i))))
	}
	counted := func(space int) (shown int, first string) {
		history, _, _, err := (&Files{Store: store, Space: space, Pictures: true}).Show(t.Context(), []turnlog.HistoryMessage{says("", ids...)})
		if err != nil {
			t.Fatal(err)
		}
		if shown = len(history[0].Pictures); shown > 0 {
			first = strings.TrimPrefix(string(history[0].Pictures[0].Content), png)
		}
		return shown, first
	}
	if shown, first := counted(1_000_000); shown != maxPictures || first != "3" {
		t.Errorf("%d pictures from %s", shown, first)
	}
	if shown, first := counted(share * pictureSpace * 2); shown != 2 || first != fmt.Sprint(maxPictures+1) {
		t.Errorf("in a small context: %d pictures from %s", shown, first)
	}
	if shown, _ := counted(share*pictureSpace - 1); shown != 0 {
		t.Errorf("in a smaller context: %d pictures", shown)
	}
}
