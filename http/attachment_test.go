package http

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"turnstone/actors/upload"
	"turnstone/http/route"
	"turnstone/persistence/files"
	"turnstone/protocol"
)

// asking returns the body of a chat request with a text and files. more are further fields.
func asking(text string, files []*protocol.File, more ...any) route.Object {
	input := []route.Object{{"type": "text", "text": text}}
	for _, file := range files {
		input = append(input, route.Object{"type": "file", "file_id": file.FileID})
	}
	body := route.Object{"input": input}
	for i := 0; i < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	return body
}

// ask runs a turn to its end, and returns its conversation and its messages, newest first.
func (c *client) ask(body route.Object) (protocol.ConversationID, []protocol.Message) {
	c.t.Helper()
	_, rest, _ := strings.Cut(string(c.expect(200, "POST", "/chat", body).body), "data: ")
	line, _, _ := strings.Cut(rest, "\n")
	_, payload, err := protocol.DecodeEvent([]byte(line))
	started, is := payload.(*protocol.TurnStarted)
	if err != nil || !is {
		c.t.Fatalf("the first event is %s, %v", line, err)
	}
	return started.ConversationID, c.newestFirst(started.ConversationID)
}

// newestFirst returns the messages of a conversation.
func (c *client) newestFirst(conversation protocol.ConversationID) []protocol.Message {
	c.t.Helper()
	var page protocol.List[protocol.Message]
	c.expect(200, "GET", "/conversations/"+conversation.String()+"/messages", nil).into(c.t, &page)
	slices.Reverse(page.Data)
	return page.Data
}

// readAsIs reads contents as UTF-8 texts of one page.
func readAsIs(_ context.Context, content io.Reader, _, _ string) (*protocol.Extraction, error) {
	text, err := io.ReadAll(content)
	return &protocol.Extraction{
		State: protocol.TextDone, Text: string(text), Pages: 1, Tokens: 1,
		Blocks: []protocol.TextBlock{{Kind: protocol.BlockPage, Page: 1, Length: len(text)}},
	}, err
}

func TestAnAnswerCitesTheFileOfItsQuestion(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	file := c.storeFile("Nothing here.\nThe spring tide rises by twelve metres.\n")
	answered := make(chan struct{})
	var conversation protocol.ConversationID
	var messages []protocol.Message
	go func() {
		defer close(answered)
		conversation, messages = c.ask(asking("How high is the spring tide?", []*protocol.File{file, file}))
	}()
	w.changes.Await(t, "the turn has started", func() bool { return query[int64](w, `select count(*) from turns`)[0] == 1 })
	w.readTexts(readAsIs) // the turn waits for it
	<-answered
	if len(messages) != 2 || !slices.Equal(messages[1].Attachments, []protocol.FileID{file.FileID}) {
		t.Fatalf("the messages are %+v", messages)
	}
	checkCited := func(messages []protocol.Message) {
		t.Helper()
		answer := messages[0].Parts[0]
		if answer.Text != "“a.txt” says: The spring tide rises by twelve metres. [1:1]" || len(answer.Citations) != 1 {
			t.Fatalf("the answer is %+v", answer)
		}
		if cited := answer.Citations[0]; cited.Marker != "[1:1]" || *cited.FileID != file.FileID || cited.Title != "a.txt" || cited.Page != 1 || cited.Kind != protocol.BlockPage || int64(cited.Length) != file.Size {
			t.Errorf("the citation is %+v", cited)
		}
	}
	checkCited(messages)
	_, messages = c.ask(asking("And the spring tide?", nil, "conversation_id", conversation))
	checkCited(messages)
	_, messages = c.ask(route.Object{"conversation_id": conversation, "branch": route.Object{"message_id": messages[3].MessageID, "mode": "edit"}, "input": asking("Which spring tide?", []*protocol.File{file})["input"]})
	checkCited(messages)
	_, messages = c.ask(route.Object{"conversation_id": conversation, "branch": route.Object{"message_id": messages[0].MessageID, "mode": "regenerate"}})
	checkCited(messages)
}

func TestTheFilesOfAProjectAreReadInItsConversations(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	u := signUp(t, w)
	c := u.client
	w.readTexts(readAsIs)
	file := c.storeFile("Nothing here.\nThe spring tide rises by twelve metres.\n")
	c.awaitText(file)
	project, other := u.project("Coast"), u.project("Mountains")
	u.addFile(project, file.FileID.String())
	answerIn := func(project any) protocol.Part {
		_, messages := c.ask(asking("How high is the spring tide?", nil, "project_id", project))
		if len(messages[1].Attachments) != 0 {
			t.Errorf("the message has %v", messages[1].Attachments)
		}
		return messages[0].Parts[0]
	}
	if answer := answerIn(project); !strings.Contains(answer.Text, "twelve metres. [1:1]") || len(answer.Citations) != 1 || *answer.Citations[0].FileID != file.FileID {
		t.Errorf("in the project: %+v", answer)
	}
	u.do(204, "DELETE", "/projects/"+project+"/files/"+file.FileID.String(), nil)
	for name, project := range map[string]any{"after the file was removed": project, "in another project": other, "outside": nil} {
		if answer := answerIn(project); strings.Contains(answer.Text, "twelve") || len(answer.Citations) != 0 {
			t.Errorf("%s: %+v", name, answer)
		}
	}
}

func TestAMessageNeverStartsWithoutItsFiles(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c, other := w.client().register("a@example.com"), w.client().register("b@example.com")
	w.readTexts(readAsIs)
	ready, deleted, foreign := c.storeFile("Ready."), c.storeFile("Deleted."), other.storeFile("Foreign.")
	c.expect(204, "DELETE", "/files/"+deleted.FileID.String(), nil)
	missing := &protocol.File{FileID: protocol.DeriveFileID(protocol.NewUploadID())}
	for _, absent := range []*protocol.File{missing, deleted, foreign} {
		refused := c.expect(409, "POST", "/chat", asking("x", []*protocol.File{ready, absent}))
		want := `"files":[{"file_id":"` + ready.FileID.String() + `","state":"ready"},{"file_id":"` + absent.FileID.String() + `","state":"missing"}]`
		if refused.Code != protocol.CodeConflict || !strings.Contains(string(refused.body), want) {
			t.Errorf("%s", refused.body)
		}
	}
	if n := query[int64](w, `select count(*) from conversations`)[0]; n != 0 {
		t.Errorf("%d conversations", n)
	}
	used := c.storeFile("Used.")
	conversation, messages := c.ask(asking("x", []*protocol.File{used}))
	var details protocol.FileDetails
	c.expect(200, "GET", "/files/"+used.FileID.String(), nil).into(t, &details)
	if len(details.References) != 1 || details.References[0].ConversationID != conversation || details.References[0].MessageID != messages[1].MessageID {
		t.Errorf("the file is used in %+v", details.References)
	}
	other.expect(404, "GET", "/files/"+used.FileID.String(), nil)
	c.expect(204, "DELETE", "/files/"+used.FileID.String(), nil)
	if refused := c.expect(409, "POST", "/chat", asking("x", []*protocol.File{used})); !strings.Contains(string(refused.body), `"state":"deleted"`) {
		t.Errorf("%s", refused.body)
	}
	var many []*protocol.File
	for range protocol.MaxAttachments + 1 {
		many = append(many, &protocol.File{FileID: protocol.DeriveFileID(protocol.NewUploadID())})
	}
	c.expect(422, "POST", "/chat", asking("x", many))
	c.expect(422, "POST", "/chat", route.Object{"input": []route.Object{{"type": "file"}}})
	c.expect(422, "POST", "/chat", asking("", nil))
	if _, messages := c.ask(asking("", []*protocol.File{ready})); len(messages) != 2 || !slices.Equal(messages[1].Attachments, []protocol.FileID{ready.FileID}) {
		t.Errorf("a message without a text: %+v", messages)
	}
}

func TestWhatAModelWillGetOfFilesIsKnownBefore(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{}, func(c *testConfig) { c.AttachmentSpace = 4000 })
	c := w.client().register("a@example.com")
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
	path := "/conversations/" + made.ConversationID.String() + "/attachments"
	long, short := c.storeFile(strings.Repeat("The tide comes in. ", 1000)), c.storeFile("The tide.")
	prepare := func() string {
		return string(c.expect(200, "POST", path, route.Object{"file_ids": []any{long.FileID, short.FileID}}).body)
	}
	if got := prepare(); strings.Count(got, `"text_state":"pending","shown":null,"reason":"processing","excerpt":null`) != 2 {
		t.Errorf("%s", got)
	}
	w.readTexts(readAsIs)
	c.awaitText(long)
	c.awaitText(short)
	got := prepare()
	for _, want := range []string{
		`"file_id":"` + long.FileID.String() + `","filename":"a.txt","text_state":"done","shown":"passages","reason":null,"excerpt":"` + strings.Repeat("The tide comes in. ", 27)[:500] + `"`,
		`"file_id":"` + short.FileID.String() + `","filename":"a.txt","text_state":"done","shown":"whole","reason":null,"excerpt":"The tide."`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s", got)
		}
	}
	missing := protocol.DeriveFileID(protocol.NewUploadID())
	if refused := c.expect(409, "POST", path, route.Object{"file_ids": []any{short.FileID, missing}}); !strings.Contains(string(refused.body), `"state":"missing"`) {
		t.Errorf("%s", refused.body)
	}
	c.expect(422, "POST", path, route.Object{"file_ids": []any{}})
	c.expect(422, "POST", path, route.Object{"file_ids": []any{short.FileID, short.FileID}})
	c.expect(404, "POST", "/conversations/"+protocol.NewConversationID().String()+"/attachments", route.Object{"file_ids": []any{short.FileID}})
}

func TestThePreparationOfAMessageWaitsForItsTexts(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{}, func(c *testConfig) { c.AttachmentSpace, c.AttachmentWait = 4000, testTimeout })
	c := w.client().register("a@example.com")
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
	text, damaged := c.storeFile("The tide."), c.storeFile("damaged")
	prepared := make(chan *reply)
	go func() {
		prepared <- c.twin().do("POST", "/conversations/"+made.ConversationID.String()+"/attachments", route.Object{"file_ids": []any{text.FileID, damaged.FileID}})
	}()
	w.readTexts(func(ctx context.Context, content io.Reader, mediaType, _ string) (*protocol.Extraction, error) {
		read, err := readAsIs(ctx, content, mediaType, "")
		if err == nil && read.Text == "damaged" {
			read = &protocol.Extraction{State: protocol.TextFailed, Reason: protocol.TextDamaged}
		}
		return read, err
	})
	got := <-prepared
	for _, want := range []string{`"text_state":"done","shown":"whole","reason":null`, `"text_state":"failed","shown":"nothing","reason":"damaged","excerpt":null`} {
		if got.status != 200 || !strings.Contains(string(got.body), want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
}

func TestWhatWasNotReadOfAFileIsSaid(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{}, func(c *testConfig) { c.AttachmentSpace, c.AttachmentWait = 4000, testTimeout })
	c := w.client().register("a@example.com")
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
	var settings map[string]any
	c.expect(200, "GET", "/account/settings", nil).into(t, &settings)
	settings["language"] = "ja"
	delete(settings, "version")
	c.expect(200, "PUT", "/account/settings", settings, "If-Match", `"v0"`)
	scan, table := c.storeFile("scan"), c.storeFile("table")
	w.readTexts(func(_ context.Context, content io.Reader, _, language string) (*protocol.Extraction, error) {
		raw, err := io.ReadAll(content)
		if language != "ja" {
			t.Errorf("the language of the account is %q", language)
		}
		if string(raw) == "scan" {
			return &protocol.Extraction{State: protocol.TextNoText, Reason: protocol.TextNoOCR, Pages: 2, Notes: []protocol.TextNote{{Kind: protocol.NoteFirstPage, Count: 2}}}, err
		}
		return &protocol.Extraction{State: protocol.TextDone, Text: "a,b", Notes: []protocol.TextNote{{Kind: protocol.NoteEncoding, Value: "big5", Count: 80}}}, err
	})
	for file, want := range map[protocol.FileID]string{
		scan.FileID:  `"state":"no_text","reason":"no_ocr","notes":[{"kind":"first_page","count":2}]`,
		table.FileID: `"state":"done","reason":null,"notes":[{"kind":"encoding","value":"big5","count":80}]`,
	} {
		c.awaitText(&protocol.File{FileID: file})
		if got := c.expect(200, "GET", "/files/"+file.String()+"/text", nil); !strings.Contains(string(got.body), want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
	got := c.expect(200, "POST", "/conversations/"+made.ConversationID.String()+"/attachments", route.Object{"file_ids": []any{scan.FileID, table.FileID}})
	for _, want := range []string{`"text_state":"no_text","shown":"nothing","reason":"no_ocr"`, `"notes":[{"kind":"first_page","count":2}]`, `"shown":"whole"`, `"notes":[{"kind":"encoding","value":"big5","count":80}]`} {
		if !strings.Contains(string(got.body), want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
}

func TestAModelThatAcceptsPicturesIsSaidToGetThem(t *testing.T) {
	t.Parallel()
	for pictures, want := range map[bool][]string{
		false: {`"shown":"nothing","reason":"no_pictures","excerpt":null,"tokens":0,"shown_tokens":0`, `"shown":"whole"`},
		true:  {`"shown":"picture","reason":null,"excerpt":null,"tokens":0,"shown_tokens":1600`, `"shown":"whole"`},
	} {
		w := uploadWorld(t, upload.Config{}, func(c *testConfig) { c.AttachmentSpace, c.AttachmentPictures = 100_000, pictures })
		c := w.client().register("a@example.com")
		picture, text := c.storeFile("picture"), c.storeFile("a text")
		w.readTexts(func(ctx context.Context, content io.Reader, mediaType, _ string) (*protocol.Extraction, error) {
			raw, err := io.ReadAll(content)
			if err != nil || string(raw) != "picture" {
				return readAsIs(ctx, bytes.NewReader(raw), mediaType, "")
			}
			return readPictures(smallPicture(t, asJPEG))(ctx, bytes.NewReader(raw), mediaType, "")
		})
		c.awaitText(picture)
		c.awaitText(text)
		var made protocol.Conversation
		c.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
		got := string(c.expect(200, "POST", "/conversations/"+made.ConversationID.String()+"/attachments", route.Object{"file_ids": []any{picture.FileID, text.FileID}}).body)
		for _, one := range want {
			if strings.Count(got, one) != 1 {
				t.Errorf("accepted: %t: no %s in %s", pictures, one, got)
			}
		}
	}
}

// scan reads every content as a scan of twelve pages, of which models get eight, if the first page has a picture.
func scan(page []byte) files.ReadText {
	return func(context.Context, io.Reader, string, string) (*protocol.Extraction, error) {
		x := &protocol.Extraction{State: protocol.TextNoText, Reason: protocol.TextNoOCR, Pages: 12, Thumbnail: page, Picture: page}
		x.ShowPages(slices.Repeat([][]byte{page}, 7))
		return x, nil
	}
}

func TestThePagesOfAScanArePicturesUntilItIsErased(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{}, func(c *testConfig) { c.AttachmentSpace, c.AttachmentPictures = 100_000, true })
	c := w.client().register("a@example.com")
	first, second := c.storeFile("scan 1"), c.storeFile("scan 2")
	w.readTexts(scan(smallPicture(t, asJPEG)))
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
	path := "/conversations/" + made.ConversationID.String() + "/attachments"
	for _, file := range []*protocol.File{first, second} {
		c.awaitText(file)
		if got := string(c.expect(200, "GET", "/files/"+file.FileID.String()+"/text", nil).body); !strings.Contains(got, `"notes":[{"kind":"pages_not_shown","count":4}]`) {
			t.Errorf("%s", got)
		}
	}
	for _, one := range []struct {
		files []any
		want  []string
	}{
		{[]any{first.FileID}, []string{`"shown":"picture","reason":null,"excerpt":null,"tokens":0,"shown_tokens":12800,"notes":[{"kind":"pages_not_shown","count":4}]`}},
		{[]any{first.FileID, second.FileID}, []string{ // the newest one first
			`"shown_tokens":1600,"notes":[{"kind":"pages_not_shown","count":11}]`, `"shown_tokens":11200,"notes":[{"kind":"pages_not_shown","count":5}]`,
		}},
	} {
		got := string(c.expect(200, "POST", path, route.Object{"file_ids": one.files}).body)
		for _, want := range one.want {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in %s", want, got)
			}
		}
	}
	c.expect(204, "DELETE", "/files/"+first.FileID.String(), nil)
	if err := w.DB.Files.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := query[int](w, `select count(*) from file_pages`)[0]; n != 7 {
		t.Errorf("%d further pages are left of one file", n)
	}
}

func TestFurtherPagesHaveTheSpaceThatTextsLeave(t *testing.T) {
	t.Parallel()
	page := smallPicture(t, asJPEG)
	w := quotaWorld(t, files.Quota{Bytes: 1 << 20, Files: 100, TextBytes: int64(8 * len(page))})
	c := w.client().register("a@example.com")
	first, second := c.storeFile("scan 1"), c.storeFile("scan 2")
	w.readTexts(scan(page))
	notes := map[string]int{}
	for _, file := range []*protocol.File{first, second} {
		c.awaitText(file)
		var read protocol.TextRange
		c.expect(200, "GET", "/files/"+file.FileID.String()+"/text", nil).into(t, &read)
		notes[fmt.Sprint(read.Reason != nil && *read.Reason == protocol.TextNoOCR, read.Notes)]++
	}
	if notes["true [{pages_not_shown  4}]"] != 1 || notes["true [{pages_not_shown  11}]"] != 1 {
		t.Errorf("%v", notes)
	}
}

func TestAFollowUpHasFiles(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	w.readTexts(readAsIs)
	file := c.storeFile("The spring tide rises by twelve metres.")
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
	queue := "/conversations/" + made.ConversationID.String() + "/follow-ups"
	live := c.createFollowUp(queue, endless)
	missing := protocol.DeriveFileID(protocol.NewUploadID())
	c.expect(409, "POST", queue, route.Object{"content": "x", "attachments": []any{missing}})
	c.expect(422, "POST", queue, route.Object{"content": "  ", "attachments": []any{file.FileID}})
	c.expect(409, "POST", "/chat", asking("x", []*protocol.File{{FileID: missing}}, "conversation_id", made.ConversationID, "if_busy", "queue"))
	c.expect(422, "POST", "/chat", asking("x", []*protocol.File{file}, "conversation_id", made.ConversationID, "if_busy", "steer"))
	c.expect(422, "POST", "/chat/steering", route.Object{"type": "input", "turn_id": live.TurnID, "client_steering_id": "1", "input": asking("x", []*protocol.File{file})["input"]})
	var first, second protocol.FollowUp
	c.expect(201, "POST", queue, route.Object{"content": "", "attachments": []any{file.FileID, file.FileID}}).into(t, &first)
	c.expect(202, "POST", "/chat", asking("How high is the spring tide?", []*protocol.File{file}, "conversation_id", made.ConversationID, "if_busy", "queue")).into(t, &second)
	for _, item := range []protocol.FollowUp{first, second} {
		if !slices.Equal(item.Attachments, []protocol.FileID{file.FileID}) {
			t.Errorf("%+v", item)
		}
	}
	// A file that waits in a queue stays, also when it is deleted from the library.
	c.expect(204, "DELETE", "/files/"+file.FileID.String(), nil)
	if err := w.DB.Files.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.interrupt(queue+"/"+second.FollowUpID.String(), live)
	messages := c.newestFirst(made.ConversationID)
	if len(messages) != 4 || messages[0].Status != protocol.MessageComplete {
		t.Fatalf("%+v", messages)
	}
	if !slices.Equal(messages[1].Attachments, []protocol.FileID{file.FileID}) || !strings.Contains(messages[0].Parts[0].Text, "twelve metres") {
		t.Errorf("%+v", messages[:2])
	}
}

func TestTheFilesOfAWaitingFollowUpChange(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	first, second := c.storeFile("One.").FileID, c.storeFile("Two.").FileID
	foreign, missing := w.client().register("b@example.com").storeFile("Theirs.").FileID, protocol.DeriveFileID(protocol.NewUploadID())
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
	queue := "/conversations/" + made.ConversationID.String() + "/follow-ups"
	live := c.createFollowUp(queue, endless)
	var item protocol.FollowUp
	c.expect(201, "POST", queue, route.Object{"content": "Compare", "attachments": []any{first}}).into(t, &item)
	path := queue + "/" + item.FollowUpID.String()
	change := func(status int, fields route.Object) *reply {
		t.Helper()
		fields["state"], fields["version"] = "queued", item.Version
		return c.expect(status, "PATCH", path, fields)
	}
	for _, id := range []protocol.FileID{foreign, missing} {
		if refused := change(409, route.Object{"attachments": []any{first, id}}); !strings.Contains(string(refused.body), `"state":"missing"`) || refused.Code != protocol.CodeConflict {
			t.Errorf("%s", refused.body)
		}
	}
	many := []any{}
	for range protocol.MaxAttachments + 1 {
		many = append(many, protocol.DeriveFileID(protocol.NewUploadID()))
	}
	change(422, route.Object{"attachments": many})
	change(422, route.Object{"content": "", "attachments": []any{}})
	if same := change(200, route.Object{"attachments": []any{first, first}}); same.header.Get("ETag") != `"v1"` {
		t.Errorf("the same files: %s", same.body)
	}
	// A file that the follow-up has may be deleted in the meantime. It stays, but cannot be added.
	c.expect(204, "DELETE", "/files/"+first.String(), nil)
	change(200, route.Object{"content": "", "attachments": []any{first, second}}).into(t, &item)
	if item.Version != 2 || item.Content != "" || !slices.Equal(item.Attachments, []protocol.FileID{first, second}) {
		t.Errorf("%+v", item)
	}
	if stale := c.expect(409, "PATCH", path, route.Object{"state": "queued", "attachments": []any{}, "version": 1}); stale.Code != protocol.CodeStaleVersion {
		t.Errorf("%s", stale.body)
	}
	change(422, route.Object{"attachments": []any{}}) // nothing would be left
	change(200, route.Object{"content": "Alone", "attachments": []any{}}).into(t, &item)
	change(409, route.Object{"attachments": []any{first}})
	change(200, route.Object{"content": "Alone"})
	if alone := c.waiting(queue).Data[0]; alone.Version != 3 || len(alone.Attachments) != 0 {
		t.Errorf("%+v", alone)
	}
	c.interrupt(path, live)
	if refused := c.expect(409, "PATCH", path, route.Object{"state": "queued", "attachments": []any{second}, "version": 4}); refused.Code != protocol.CodeConflict {
		t.Errorf("a follow-up that has started: %s", refused.body)
	}
}

// A file may be deleted from the library before its text was read, while a follow-up with it waits.
func TestTheTextOfADeletedFileIsReadForAQueuedMessage(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	file := c.storeFile("The spring tide rises by twelve metres.")
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
	queue := "/conversations/" + made.ConversationID.String() + "/follow-ups"
	live := c.createFollowUp(queue, endless)
	var item protocol.FollowUp
	c.expect(202, "POST", "/chat", asking("How high is the spring tide?", []*protocol.File{file}, "conversation_id", made.ConversationID, "if_busy", "queue")).into(t, &item)
	c.expect(204, "DELETE", "/files/"+file.FileID.String(), nil)
	w.readTexts(readAsIs)
	c.interrupt(queue+"/"+item.FollowUpID.String(), live)
	messages := c.newestFirst(made.ConversationID)
	if len(messages) != 4 || messages[0].Status != protocol.MessageComplete {
		t.Fatalf("%+v", messages)
	}
	if !strings.Contains(messages[0].Parts[0].Text, "twelve metres") {
		t.Errorf("%+v", messages[:2])
	}
}

func TestAFileStaysWhileAMessageHasIt(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	w.readTexts(readAsIs)
	file := c.storeFile("The spring tide rises by twelve metres.")
	c.awaitText(file)
	conversation, messages := c.ask(asking("Which tide?", []*protocol.File{file}))
	var fork protocol.Conversation
	c.expect(201, "POST", "/conversations/"+conversation.String()+"/branches", route.Object{"message_id": messages[0].MessageID, "mode": "fork"}).into(t, &fork)
	path := "/files/" + file.FileID.String()
	c.expect(204, "DELETE", path, nil)
	totals := func() string {
		return query[string](w, `select format('%s %s', bytes, files) from file_totals`)[0]
	}
	checkReadable := func() {
		t.Helper()
		if err := w.DB.Files.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		var deleted protocol.File
		c.expect(200, "GET", path, nil).into(t, &deleted)
		if content := c.expect(200, "GET", path+"/content", nil); deleted.DeletedAt == nil || string(content.body) != "The spring tide rises by twelve metres." || c.text(file, "").Size != int(file.Size) {
			t.Errorf("%+v, %s", deleted, content.body)
		}
		if totals() != "39 1" {
			t.Errorf("the account stores %s", totals())
		}
	}
	checkReadable()
	var list protocol.List[protocol.File]
	if c.expect(200, "GET", "/files", nil).into(t, &list); len(list.Data) != 0 {
		t.Errorf("the library has %+v", list.Data)
	}
	archive := c.expect(200, "GET", "/account/export", nil).body
	if exported, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive))); err != nil {
		t.Error(err)
	} else if _, err := fs.Stat(exported, "files/"+file.FileID.String()); err != nil {
		t.Errorf("the export: %v", err)
	}
	states := c.expect(200, "POST", "/files/attachment-states", route.Object{"file_ids": []any{file.FileID}})
	if !strings.Contains(string(states.body), `"state":"deleted"`) {
		t.Errorf("%s", states.body)
	}
	c.expect(409, "POST", "/chat", asking("x", []*protocol.File{file}))
	c.expect(404, "PATCH", path, route.Object{"filename": "b.txt"})
	c.expect(404, "DELETE", path, nil)
	purged := func(id protocol.ConversationID) func() bool {
		return func() bool {
			return query[int64](w, fmt.Sprintf(`select count(*) from messages where conversation_id = '%x'`, [16]byte(id)))[0] == 0
		}
	}
	c.expect(204, "DELETE", "/conversations/"+conversation.String(), nil)
	w.changes.Await(t, "the conversation is purged", purged(conversation))
	checkReadable()
	c.expect(204, "DELETE", "/conversations/"+fork.ConversationID.String(), nil)
	w.changes.Await(t, "its copy is purged", purged(fork.ConversationID))
	if err := w.DB.Files.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.expect(404, "GET", path, nil)
	if keys := w.objectKeys("f/"); totals() != "0 0" || len(keys) != 0 {
		t.Errorf("the account stores %s, the objects are %v", totals(), keys)
	}
}

func TestADraftGetsOnlyFilesThatTheAccountHas(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c, other := w.client().register("a@example.com"), w.client().register("b@example.com")
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
	path := "/conversations/" + made.ConversationID.String() + "/draft"
	kept, deleted := c.storeFile("kept"), c.storeFile("deleted")
	c.expect(204, "DELETE", "/files/"+deleted.FileID.String(), nil)
	for name, id := range map[string]protocol.FileID{
		"unknown": protocol.DeriveFileID(protocol.NewUploadID()), "foreign": other.storeFile("foreign").FileID, "deleted": deleted.FileID,
	} {
		refused := c.expect(409, "PUT", path, route.Object{"content": "x", "attachments": []any{kept.FileID, id}})
		want := `"current":{"files":[{"file_id":"` + kept.FileID.String() + `","state":"ready"},{"file_id":"` + id.String() + `","state":"missing"}]}`
		if refused.Code != protocol.CodeConflict || !strings.Contains(string(refused.body), want) {
			t.Errorf("%s: %s", name, refused.body)
		}
	}
	c.expect(200, "PUT", path, route.Object{"content": "x", "attachments": []any{kept.FileID}})
	if stale := c.expect(409, "PUT", path, route.Object{"content": "x", "attachments": []any{deleted.FileID}, "version": 0}); stale.Code != protocol.CodeStaleVersion {
		t.Errorf("a stale version comes first: %s", stale.body)
	}
	c.expect(204, "DELETE", "/files/"+kept.FileID.String(), nil)
	c.expect(200, "PUT", path, route.Object{"content": "more", "attachments": []any{kept.FileID}}) // the draft has it already
}
