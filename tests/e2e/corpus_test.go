package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"turnstone/actors/llm"
	"turnstone/actors/modelinput"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/providers/extract/extracttest"
	"turnstone/providers/model/modeltest"
)

// onlyPrograms returns a folder with some programs, as the PATH of a service.
func onlyPrograms(t *testing.T, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(folder, name))
		}
		if err != nil {
			t.Fatalf("%v: run make debian-test", err)
		}
	}
	return folder
}

// corpus is a service that reads the corpus, and the model that gets it.
type corpus struct {
	site *sitetest.Site

	mu  sync.Mutex
	got map[string]llm.Message // guarded by mu; the last message of the request for a question
}

func newCorpus(t *testing.T) *corpus {
	t.Helper()
	c := &corpus{got: map[string]llm.Message{}}
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Respond: func(request modeltest.Request) modeltest.Step {
		last := request.Messages[len(request.Messages)-1]
		if _, question, asked := strings.Cut(last.Text, "Whence "); asked && strings.Contains(last.Text, "<file ") { // not that for the title
			c.mu.Lock()
			defer c.mu.Unlock()
			c.got[question[:strings.Index(question, "?")]] = last
		}
		return modeltest.Step{Text: []string{"Hence."}}
	}})
	t.Cleanup(server.Close)
	c.site = sitetest.NewSite(t, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+server.URL, "TURNSTONE_MODEL_BALANCED=seer", "TURNSTONE_MODEL_IMAGES=seer",
		"PATH="+onlyPrograms(t, "pdftotext", "pdftoppm", "pdfdetach"))
	c.site.Start()
	return c
}

// filesOfMessage is the limit of the files of a message.
const filesOfMessage = 20

// TestEveryRowOfTheCorpusIsRead uploads all contents, and compares of each its text and its thumbnail, what is downloaded, the
// preview of a message, and what the model got, of as many files as a message may have.
func TestEveryRowOfTheCorpusIsRead(t *testing.T) {
	t.Parallel()
	c := newCorpus(t)
	c.checkAll(t, "generated", extracttest.Rows(), (*extracttest.Row).Is)
	rows, err := extracttest.RealRows()
	if err != nil {
		t.Fatal(err)
	}
	c.checkAll(t, "real", rows, (*extracttest.Row).Has)
	const fewest = 30 // those of modules
	if t.Logf("%d real files were read", len(rows)); len(rows) < fewest {
		t.Error("files of modules are missing")
	}
}

func (c *corpus) checkAll(t *testing.T, kind string, rows []extracttest.Row, is func(*extracttest.Row, *protocol.Extraction) bool) {
	groups := (len(rows) + filesOfMessage - 1) / filesOfMessage
	for group := range groups {
		var of []extracttest.Row
		for i := group; i < len(rows); i += groups { // each has a few pictures, of which a model gets eight
			of = append(of, rows[i])
		}
		t.Run(fmt.Sprintf("%s %d", kind, group+1), func(t *testing.T) {
			t.Parallel()
			c.check(t, of, is)
		})
	}
}

// upload uploads a content. It returns its file, or why there is none.
func upload(t *testing.T, u *sitetest.User, r *extracttest.Row) (file *protocol.FileID, refusal string) {
	t.Helper()
	var upload protocol.Upload
	created := u.Do(t, http.MethodPost, "/files/uploads", map[string]any{
		"filename": r.Filename(), "media_type": r.MediaType, "size": len(r.Content), "purpose": "library",
	})
	if created.Status != http.StatusCreated {
		return nil, fmt.Sprint(created.Status)
	}
	created.Want(t, http.StatusCreated, &upload)
	u.Do(t, http.MethodPut, upload.Path()+"/content", client.Content(r.Content), "Content-Type", r.MediaType).Want(t, http.StatusOK, &upload)
	if upload.FileID == nil {
		return nil, string(upload.Failure.Code)
	}
	return upload.FileID, ""
}

// previewed is what a message is prepared with of a file.
type previewed struct {
	TextState   protocol.TextState `json:"text_state"`
	Shown       *string
	Reason      *string
	ShownTokens int `json:"shown_tokens"`
	Notes       []protocol.TextNote
}

// pictures returns how many pictures the model gets of the file.
func (p *previewed) pictures() int {
	if value(p.Shown) != "picture" {
		return 0
	}
	return p.ShownTokens / llm.PictureTokens
}

// check checks rows as files of one message of a new account.
func (c *corpus) check(t *testing.T, rows []extracttest.Row, is func(*extracttest.Row, *protocol.Extraction) bool) {
	u := sitetest.NewUser(t, c.site.Base)
	var ids []protocol.FileID
	var accepted []extracttest.Row
	for _, r := range rows { // the service reads them meanwhile
		id, refusal := upload(t, u, &r)
		if id != nil {
			ids, accepted = append(ids, *id), append(accepted, r)
			continue
		}
		if want, _ := r.Uploaded(); refusal != strings.TrimPrefix(want, "failed ") {
			t.Errorf("%s: the upload ended with %s", r.Name, refusal)
		}
	}
	conversation := u.NewConversation(t)
	var prepared struct{ Data []previewed }
	sitetest.Eventually(t, "the texts were read", func() bool {
		u.Do(t, http.MethodPost, "/conversations/"+conversation+"/attachments", map[string]any{"file_ids": ids}).Want(t, http.StatusOK, &prepared)
		for _, p := range prepared.Data {
			if p.TextState == protocol.TextPending {
				return false
			}
		}
		return true
	})
	input := []map[string]any{{"type": "text", "text": "Whence " + conversation + "?"}}
	for _, id := range ids {
		input = append(input, map[string]any{"type": "file", "file_id": id})
	}
	u.Chat(t, sitetest.ChatBody{"input": input}.In(conversation)).ReadToEnd(t)
	c.mu.Lock()
	got := c.got[conversation]
	c.mu.Unlock()
	pictures := 0
	for i, r := range accepted {
		x := read(t, u, ids[i])
		if want, _ := r.Uploaded(); !is(&r, x) {
			t.Errorf("%s:\ngot  %s\nwant %s", r.Name, extracttest.Summary(x), want)
		}
		if content := u.Do(t, http.MethodGet, "/files/"+ids[i].String()+"/content", nil); content.Status != http.StatusOK || string(content.Body) != r.Content {
			t.Errorf("%s: the download is %d, %d bytes", r.Name, content.Status, len(content.Body))
		}
		shown := checkPreview(t, &r, x, &prepared.Data[i])
		pictures += prepared.Data[i].pictures()
		checkSection(t, &r, x, shown, sectionOf(got.Text, i+1))
	}
	if len(got.Pictures) != pictures {
		t.Errorf("the model got %d pictures instead of %d", len(got.Pictures), pictures)
	}
}

// read returns what was read of a file, as the routes have it.
func read(t *testing.T, u *sitetest.User, id protocol.FileID) *protocol.Extraction {
	t.Helper()
	var file protocol.File
	u.Get(t, "/files/"+id.String(), &file)
	x := &protocol.Extraction{State: file.TextState, Width: value(file.Width), Height: value(file.Height), Pages: value(file.Pages)}
	for next := new(int); next != nil; {
		var part protocol.TextRange
		u.Get(t, fmt.Sprintf("/files/%s/text?limit=262144&offset=%d", id, *next), &part)
		x.Reason, x.Notes, x.Truncated, x.Tokens, x.Text = value(part.Reason), part.Notes, part.Truncated, part.Tokens, x.Text+part.Text
		for _, b := range part.Blocks {
			if len(x.Blocks) == 0 || b.Offset > x.Blocks[len(x.Blocks)-1].Offset { // it may be in two parts
				x.Blocks = append(x.Blocks, b)
			}
		}
		next = part.NextOffset
	}
	if file.HasThumbnail {
		x.Thumbnail = u.Do(t, http.MethodGet, "/files/"+id.String()+"/thumbnail", nil).Body
	}
	return x
}

func value[T any](of *T) (v T) {
	if of != nil {
		v = *of
	}
	return v
}

// checkPreview compares what a message is prepared with with what was read, and returns what is shown.
func checkPreview(t *testing.T, r *extracttest.Row, x *protocol.Extraction, p *previewed) (shown string) {
	t.Helper()
	shown = value(p.Shown)
	want, reason := "nothing", string(x.Reason)
	switch {
	case (x.State == protocol.TextNone || x.State == protocol.TextNoText) && x.Thumbnail != nil:
		want, reason = "picture", ""
	case x.Text != "":
		want, reason = "whole", ""
	case reason == "":
		reason = "no_text"
	}
	if shown == "passages" && len(x.Text) > 1<<10 {
		want = shown
	}
	notes := x.Notes
	if pictures := p.pictures(); pictures > 0 && x.Pages > pictures {
		notes = protocol.WithPagesNotShown(notes, x.Pages-pictures)
	}
	if p.TextState != x.State || shown != want || value(p.Reason) != reason || fmt.Sprint(p.Notes) != fmt.Sprint(notes) {
		t.Errorf("%s: the preview is %s, %s, reason %q, notes %v instead of %s, %s, %q, %v", r.Name, p.TextState, shown, value(p.Reason), p.Notes, x.State, want, reason, notes)
	}
	return shown
}

// sectionOf returns what a model gets of a file.
func sectionOf(message string, number int) string {
	_, section, _ := strings.Cut(message, fmt.Sprintf(`<file number="%d"`, number))
	section, _, _ = strings.Cut(section, "</file>")
	return section
}

// checkSection compares what the model gets of a file with what was read.
func checkSection(t *testing.T, r *extracttest.Row, x *protocol.Extraction, shown, section string) {
	t.Helper()
	want := []string{}
	switch {
	case shown == "picture" && x.Pages > 1:
		want = append(want, "The pages 1 to ")
	case shown == "picture":
		want = append(want, "This file is picture ")
	case x.State == protocol.TextFailed, x.State == protocol.TextNoText:
		want = append(want, modelinput.CauseOf(x.Reason))
	case shown == "whole" && len(x.Blocks) > 0:
		for _, b := range x.Blocks {
			want = append(want, strings.TrimSpace(x.Text[b.Offset:b.Offset+b.Length]))
		}
	case shown == "whole":
		want = append(want, strings.TrimSpace(x.Text))
	case shown == "nothing":
		want = append(want, "This file ")
	}
	if len(x.Notes) > 0 {
		want = append(want, ` notes="`)
	}
	for _, part := range want {
		if !strings.Contains(section, part) {
			t.Errorf("%s: the model got %.600q without %.200q", r.Name, section, part)
		}
	}
}
