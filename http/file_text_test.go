package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"turnstone/actors/upload"
	"turnstone/http/route"
	"turnstone/persistence"
	"turnstone/persistence/files"
	"turnstone/protocol"
)

// readTexts runs the jobs of the world with a reader of texts until the test ends.
func (w *world) readTexts(read files.ReadText) {
	w.t.Helper()
	jobs, err := w.DB.StartJobs(w.t.Context(), persistence.JobWorkers{ReadText: read, Observe: w.changes.Job})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := jobs.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
}

// text returns a range of the text of a file.
func (c *client) text(file *protocol.File, query string) *protocol.TextRange {
	c.t.Helper()
	var text protocol.TextRange
	c.expect(200, "GET", "/files/"+file.FileID.String()+"/text"+query, nil).into(c.t, &text)
	return &text
}

// awaitText waits until the text of a file was read, and returns the file.
func (c *client) awaitText(file *protocol.File) *protocol.File {
	c.t.Helper()
	var now protocol.File
	c.changes.Await(c.t, "the text is read", func() bool {
		c.expect(200, "GET", "/files/"+file.FileID.String(), nil).into(c.t, &now)
		return now.TextState != protocol.TextPending
	})
	return &now
}

func TestTheTextOfAFileIsReadInRanges(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	file := c.storeFile("the content")
	if pending := c.text(file, ""); file.TextState != protocol.TextPending || pending.State != protocol.TextPending || pending.Text != "" || pending.NextOffset != nil || pending.Blocks == nil {
		t.Errorf("%+v, %+v", file, pending)
	}
	// 100,000 characters of three bytes in three pages, and a chunk that ends inside of a character.
	const pages, perPage = 3, 100_000
	x := &protocol.Extraction{State: protocol.TextDone, Pages: pages, Tokens: 42, Truncated: true, Text: strings.Repeat("潮", pages*perPage/3)}
	for i := range pages {
		x.Blocks = append(x.Blocks, protocol.TextBlock{Kind: protocol.BlockPage, Page: i + 1, Offset: i * perPage, Length: perPage})
	}
	x.Blocks[1].Offset, x.Blocks[1].Length = 99_999, 100_001
	w.readTexts(func(_ context.Context, content io.Reader, mediaType, _ string) (*protocol.Extraction, error) {
		if raw, err := io.ReadAll(content); err != nil || string(raw) != "the content" || mediaType != "text/plain" {
			t.Errorf("%q of the type %s, %v", raw, mediaType, err)
		}
		return x, nil
	})
	if file = c.awaitText(file); file.TextState != protocol.TextDone || file.Pages == nil || *file.Pages != pages || file.Width != nil {
		t.Errorf("%+v", file)
	}
	var whole strings.Builder
	seen := map[int]bool{}
	for offset := 0; ; {
		part := c.text(file, fmt.Sprintf("?offset=%d&limit=10000", offset))
		if part.Offset != offset || len(part.Text) > 10_000 || part.Size != len(x.Text) || part.Tokens != 42 || !part.Truncated {
			t.Fatalf("%d: %+v", offset, part)
		}
		for _, b := range part.Blocks {
			if seen[b.Page] = true; b.Offset >= offset+len(part.Text) || b.Offset+b.Length <= offset {
				t.Errorf("block %+v in the range from %d", b, offset)
			}
		}
		whole.WriteString(part.Text)
		if part.NextOffset == nil {
			break
		}
		offset = *part.NextOffset
	}
	if whole.String() != x.Text || len(seen) != pages {
		t.Errorf("%d bytes, pages %v", whole.Len(), seen)
	}
	if within := c.text(file, "?offset=4&limit=4"); within.Offset != 3 || within.Text != "潮" || *within.NextOffset != 6 {
		t.Errorf("%+v", within)
	}
	if end := c.text(file, "?offset=4000000"); end.Text != "" || end.NextOffset != nil || end.Offset != len(x.Text) {
		t.Errorf("%+v", end)
	}
	for _, query := range []string{"?offset=-1", "?limit=3", "?limit=262145", "?offset=4194305", "?offset=a"} {
		c.expect(422, "GET", "/files/"+file.FileID.String()+"/text"+query, nil)
	}
	w.client().register("b@example.com").expect(404, "GET", "/files/"+file.FileID.String()+"/text", nil)
	if kinds := query[string](w, `select state from feed_items where kind = 'file_text'`); len(kinds) != 1 || kinds[0] != "done" {
		t.Errorf("the feed has %v", kinds)
	}
}

func TestAContentThatCannotBeReadHasAReason(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	encrypted := c.storeFile("encrypted")
	w.readTexts(func(context.Context, io.Reader, string, string) (*protocol.Extraction, error) {
		return &protocol.Extraction{State: protocol.TextFailed, Reason: protocol.TextEncrypted}, nil
	})
	if file := c.awaitText(encrypted); file.TextState != protocol.TextFailed {
		t.Errorf("%+v", file)
	}
	if text := c.text(encrypted, ""); text.Reason == nil || *text.Reason != protocol.TextEncrypted {
		t.Errorf("%+v", text)
	}
}

func TestAReaderThatFailsIsTriedThreeTimes(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	file := c.storeFile("hostile")
	var calls atomic.Int32
	w.readTexts(func(context.Context, io.Reader, string, string) (*protocol.Extraction, error) {
		calls.Add(1)
		return nil, errors.New("the reader crashed")
	})
	c.awaitText(file)
	if text := c.text(file, ""); calls.Load() != 3 || text.State != protocol.TextFailed || *text.Reason != protocol.TextUnreadable {
		t.Errorf("%d calls, %+v", calls.Load(), text)
	}
}

func TestAContentWhoseAttemptsEndTheProcessIsGivenUp(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	file := c.storeFile("hostile")
	w.database.Admin(t, `update file_texts set attempts = 10`)
	w.readTexts(func(context.Context, io.Reader, string, string) (*protocol.Extraction, error) {
		t.Error("the content was read again")
		return nil, errors.New("unexpected")
	})
	c.awaitText(file)
	if text := c.text(file, ""); text.State != protocol.TextFailed || *text.Reason != protocol.TextUnreadable {
		t.Errorf("%+v", text)
	}
}

func TestTheTextsOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	w := quotaWorld(t, files.Quota{Bytes: 1 << 20, Files: 100, TextBytes: 100})
	c, other := signUp(t, w), signUp(t, w)
	first := c.storeFile("a")
	w.readTexts(func(context.Context, io.Reader, string, string) (*protocol.Extraction, error) {
		return &protocol.Extraction{State: protocol.TextDone, Text: strings.Repeat("tide ", 12)}, nil
	})
	c.awaitText(first)
	over := c.storeFile("b")
	c.awaitText(over)
	if text := c.text(over, ""); text.State != protocol.TextFailed || *text.Reason != protocol.TextLimit || text.Text != "" {
		t.Errorf("%+v", text)
	}
	if n := query[int](w, `select count(*) from file_text_chunks`)[0]; n != 1 {
		t.Errorf("%d chunks are stored", n)
	}
	another := other.storeFile("c")
	if file := other.awaitText(another); file.TextState != protocol.TextDone {
		t.Errorf("%+v", file)
	}
	c.do(204, "DELETE", "/files/"+first.FileID.String(), nil) // gives its text back
	chunks := func() int { return query[int](w, `select count(*) from file_text_chunks`)[0] }
	w.changes.Await(t, "one text is left", func() bool { return chunks() == 1 }) // that of the other account
	if file := c.awaitText(c.storeFile("d")); file.TextState != protocol.TextDone || chunks() != 2 {
		t.Errorf("%+v", file)
	}
}

// TestTheFirstFilesOfAnAccountDoNotWaitForTheManyOfAnother reads the files of two accounts with a reader that never ends for
// one of them.
func TestTheFirstFilesOfAnAccountDoNotWaitForTheManyOfAnother(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	busy, other := w.client().register("busy@example.com"), w.client().register("other@example.com")
	for range 30 {
		busy.storeFile("endless")
	}
	file := other.storeFile("short")
	var reading atomic.Int32
	w.readTexts(func(ctx context.Context, content io.Reader, _, _ string) (*protocol.Extraction, error) {
		raw, err := io.ReadAll(content)
		if err != nil || string(raw) == "short" {
			return &protocol.Extraction{State: protocol.TextDone, Text: "short"}, err
		}
		if n := reading.Add(1); n > 1 {
			t.Errorf("%d files of the account are read at the same time", n)
		}
		defer reading.Add(-1)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if read := other.awaitText(file); read.TextState != protocol.TextDone {
		t.Errorf("%+v", read)
	}
	if n := query[int](w, `select count(distinct priority) from river.river_job where kind = 'extract_file'`)[0]; n != 3 {
		t.Errorf("the jobs have %d priorities", n)
	}
}

func TestTheTextOfADeletedFileIsNotRead(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	file, other := c.storeFile("deleted"), c.storeFile("other")
	c.expect(204, "DELETE", "/files/"+file.FileID.String(), nil)
	w.readTexts(func(_ context.Context, content io.Reader, _, _ string) (*protocol.Extraction, error) {
		if raw, err := io.ReadAll(content); err != nil || string(raw) != "other" {
			t.Errorf("%q was read, %v", raw, err)
		}
		return &protocol.Extraction{State: protocol.TextDone, Text: "other"}, nil
	})
	c.awaitText(other)
	c.expect(404, "GET", "/files/"+file.FileID.String()+"/text", nil)
	w.changes.Await(t, "the jobs of both files have run", func() bool { return w.changes.Jobs("extract_file") == 2 })
}

func TestTheTextOfAFileIsFoundAsSoonAsItIsRead(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c, stranger := w.client().register("a@example.com"), w.client().register("b@example.com")
	file := c.storeFile("the content")
	// Page 2 starts in the third section of the search, which has no word in common with the others.
	text := strings.Repeat("ebb and flow \n", 5000) + "Marmalade is a preserve.\n"
	w.readTexts(func(context.Context, io.Reader, string, string) (*protocol.Extraction, error) {
		return &protocol.Extraction{State: protocol.TextDone, Pages: 2, Text: text, Blocks: []protocol.TextBlock{
			{Kind: protocol.BlockPage, Page: 1, Length: 70_000}, {Kind: protocol.BlockPage, Page: 2, Offset: 70_000, Length: len(text) - 70_000},
		}}, nil
	})
	c.awaitText(file)
	var found protocol.List[protocol.SearchResult]
	for path, want := range map[string]int{
		"/search?q=marmalade": 1, "/search?q=marmalade&kind=file": 1, "/search?q=marmalade&kind=message": 0, "/search?q=ebb": 1,
		"/search?q=" + file.Filename: 1, "/search?q=marmalade+ebb": 1, "/search?q=marmalade+nothing": 0,
	} {
		if c.expect(200, "GET", path, nil).into(t, &found); len(found.Data) != want {
			t.Errorf("%s found %+v", path, found.Data)
		}
		if stranger.expect(200, "GET", path, nil).into(t, &found); len(found.Data) != 0 {
			t.Errorf("%s found %+v in another account", path, found.Data)
		}
	}
	c.expect(422, "GET", "/search?q=marmalade&kind=files", nil)
	c.expect(200, "GET", "/search?q=marmalade", nil).into(t, &found)
	if r := found.Data[0]; r.Kind != protocol.SearchFile || *r.FileID != file.FileID || r.Title != file.Filename || *r.Passage != (protocol.SearchPassage{
		Kind: protocol.BlockPage, Page: 2, Offset: 70_000, Length: len(text) - 70_000, Match: 70_000,
	}) || !strings.Contains(r.Snippet.Text, "Marmalade is a preserve.") {
		t.Errorf("%+v, %+v", r, r.Passage)
	}
	c.expect(204, "DELETE", "/files/"+file.FileID.String(), nil)
	if c.expect(200, "GET", "/search?q=marmalade", nil).into(t, &found); len(found.Data) != 0 {
		t.Errorf("a deleted file was found: %+v", found.Data)
	}
}

// smallPicture returns an encoded picture.
func smallPicture(t *testing.T, encode func(io.Writer, image.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(w io.Writer, of image.Image) error { return jpeg.Encode(w, of, nil) }

// readPictures reads every content that begins with "picture" as a picture with a thumbnail.
func readPictures(thumbnail []byte) files.ReadText {
	return func(_ context.Context, content io.Reader, _, _ string) (*protocol.Extraction, error) {
		x := &protocol.Extraction{State: protocol.TextNone}
		if raw, err := io.ReadAll(content); err != nil || !strings.HasPrefix(string(raw), "picture") {
			return x, err
		}
		x.Width, x.Height, x.Thumbnail, x.Picture = 3000, 2000, thumbnail, thumbnail
		return x, nil
	}
}

func TestAPictureHasAThumbnailAsSoonAsItWasRead(t *testing.T) {
	t.Parallel()
	for media, encode := range map[string]func(io.Writer, image.Image) error{"image/jpeg": asJPEG, "image/png": png.Encode} {
		t.Run(media, func(t *testing.T) {
			w := uploadWorld(t, upload.Config{})
			c, stranger := w.client().register("a@example.com"), w.client().register("b@example.com")
			file, other := c.storeFile("picture of the tides"), c.storeFile("a text")
			path := "/files/" + file.FileID.String()
			if file.HasThumbnail {
				t.Errorf("before the content was read: %+v", file)
			}
			c.expect(404, "GET", path+"/thumbnail", nil)
			small := smallPicture(t, encode)
			w.readTexts(readPictures(small))
			if file, other = c.awaitText(file), c.awaitText(other); !file.HasThumbnail || *file.Width != 3000 || other.HasThumbnail {
				t.Errorf("%+v, %+v", file, other)
			}
			sent := c.expect(200, "GET", path+"/thumbnail", nil)
			if !bytes.Equal(sent.body, small) {
				t.Errorf("%q was sent", sent.body)
			}
			for name, want := range map[string]string{
				"Content-Type": media, "Content-Length": fmt.Sprint(len(small)), "Cache-Control": "no-store", "Content-Security-Policy": downloadPolicy,
				"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "Accept-Ranges": "",
			} {
				if got := sent.header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			stranger.expect(404, "GET", path+"/thumbnail", nil)
			c.expect(404, "GET", "/files/"+other.FileID.String()+"/thumbnail", nil)
			c.expect(404, "GET", "/files/"+protocol.DeriveFileID(protocol.NewUploadID()).String()+"/thumbnail", nil)
			for _, listed := range []*reply{
				c.expect(200, "GET", "/files", nil), c.expect(200, "GET", "/files/picker", nil),
				c.expect(200, "POST", "/files/attachment-states", route.Object{"file_ids": []any{file.FileID, other.FileID}}),
			} {
				if body := string(listed.body); strings.Count(body, `"has_thumbnail":true`) != 1 || strings.Count(body, `"has_thumbnail":false`) != 1 {
					t.Errorf("%s", body)
				}
			}
		})
	}
}

func TestAThumbnailStaysWhileAMessageHasItsPicture(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	w.readTexts(readPictures(smallPicture(t, asJPEG)))
	kept, deleted := c.storeFile("picture of the tides"), c.storeFile("picture of the moon")
	c.awaitText(kept)
	c.awaitText(deleted)
	conversation, _ := c.ask(asking("What is this?", []*protocol.File{kept}))
	for _, file := range []*protocol.File{kept, deleted} {
		c.expect(204, "DELETE", "/files/"+file.FileID.String(), nil)
	}
	c.expect(200, "GET", "/files/"+kept.FileID.String()+"/thumbnail", nil)
	c.expect(404, "GET", "/files/"+deleted.FileID.String()+"/thumbnail", nil)
	c.expect(204, "DELETE", "/conversations/"+conversation.String(), nil)
	w.changes.Await(t, "the thumbnails are deleted", func() bool {
		if err := w.DB.Files.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return query[int64](w, `select count(*) from file_texts where thumbnail is not null`)[0] == 0
	})
	c.expect(404, "GET", "/files/"+kept.FileID.String()+"/thumbnail", nil)
}
