package http

import (
	"slices"
	"testing"

	"turnstone/actors/upload"
	"turnstone/http/route"
	"turnstone/protocol"
)

// attach uploads a text as an attachment, for a conversation or, with "", for none.
func (c *client) attach(content, conversation string) *protocol.File {
	c.t.Helper()
	more := []string{"purpose", "attachment"}
	if conversation != "" {
		more = append(more, "conversation_id", conversation)
	}
	var ready protocol.Upload
	c.send(200, c.startUpload(len(content), more...), content).into(c.t, &ready)
	var file protocol.File
	c.expect(200, "GET", "/files/"+ready.FileID.String(), nil).into(c.t, &file)
	return &file
}

func TestAFileOfATemporaryConversationEndsWithItUnlessItIsUsedElsewhere(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	w.readTexts(readAsIs) // for which messages wait
	c := w.client().register("a@example.com")
	var temporary, other protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{"temporary": true}).into(t, &temporary)
	c.expect(201, "POST", "/conversations", route.Object{}).into(t, &other)
	id := temporary.ConversationID.String()
	files := map[string]*protocol.File{
		"sent": c.attach("sent", ""), "only uploaded": c.attach("only uploaded", id), "of the draft": c.attach("of the draft", ""),
		"kept": c.attach("kept", id), "of a project": c.attach("of a project", id), "of another message": c.attach("of another message", id),
		"of another draft": c.attach("of another draft", id), "of the library": c.storeFile("of the library"), "first sent elsewhere": c.attach("first sent elsewhere", ""),
	}
	var project protocol.Project
	c.expect(201, "POST", "/projects", route.Object{"name": "Tides"}).into(t, &project)
	c.expect(200, "POST", "/projects/"+project.ProjectID.String()+"/files", route.Object{"file_id": files["of a project"].FileID})
	c.ask(asking("x", []*protocol.File{files["first sent elsewhere"]}))
	c.ask(asking("x", []*protocol.File{files["sent"], files["of another message"], files["of the library"], files["first sent elsewhere"]}, "conversation_id", id))
	c.ask(asking("x", []*protocol.File{files["of another message"]}))
	c.expect(200, "PUT", "/conversations/"+id+"/draft", route.Object{"content": "x", "attachments": []any{files["of the draft"].FileID}})
	c.expect(200, "PUT", "/conversations/"+other.ConversationID.String()+"/draft", route.Object{"content": "x", "attachments": []any{files["of another draft"].FileID}})
	read := func(name string) (file protocol.File) {
		c.expect(200, "GET", "/files/"+files[name].FileID.String(), nil).into(t, &file)
		return file
	}
	if read("kept").Kept || read("sent").Kept || !read("of the library").Kept || !read("first sent elsewhere").Kept || read("of the draft").Kept {
		t.Error("the files do not say which of them end with the conversation")
	}
	c.expect(422, "PATCH", "/files/"+files["kept"].FileID.String(), route.Object{})
	c.expect(200, "PATCH", "/files/"+files["kept"].FileID.String(), route.Object{"kept": true})
	if kept := read("kept"); !kept.Kept || kept.Filename != "a.txt" {
		t.Errorf("%+v", kept)
	}
	late := c.startUpload(4, "purpose", "attachment", "conversation_id", id)

	c.expect(204, "DELETE", "/conversations/"+id, nil)
	c.send(200, late, "late")
	if done, err := w.DB.Conversations.PurgeConversation(t.Context(), protocol.AccountID(query[[16]byte](w, `select account_id from accounts`)[0]), temporary.ConversationID, 1000); !done || err != nil {
		t.Fatal(done, err)
	}
	if err := w.DB.Files.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sent", "only uploaded", "of the draft"} {
		c.expect(404, "GET", "/files/"+files[name].FileID.String(), nil)
		c.expect(404, "GET", "/files/"+files[name].FileID.String()+"/content", nil)
		delete(files, name)
	}
	bytes := 0
	for name := range files {
		read(name)
		bytes += len(name)
	}
	if keys := w.objectKeys("f/"); len(keys) != len(files) {
		t.Errorf("the object store has %v", keys)
	}
	type totals struct{ bytes, files int64 }
	stored := totals{query[int64](w, `select bytes from file_totals`)[0], query[int64](w, `select files from file_totals`)[0]}
	if stored != (totals{int64(bytes), int64(len(files))}) {
		t.Errorf("the account stores %+v, want %d bytes", stored, bytes)
	}
	var list protocol.List[protocol.File]
	c.expect(200, "GET", "/files", nil).into(t, &list)
	if len(list.Data) != len(files) || slices.ContainsFunc(list.Data, func(f protocol.File) bool { return f.DeletedAt != nil }) {
		t.Errorf("the library has %+v", list.Data)
	}
}
