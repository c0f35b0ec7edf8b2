package http

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/actors/upload"
	"turnstone/http/route"
	"turnstone/persistence/imports"
	"turnstone/persistence/imports/importtest"
	"turnstone/protocol"
	"turnstone/protocol/idtest"
	"turnstone/protocol/uploadlog"
)

// receiveFile receives a file of an import as a node does, with the host of uploads.
func (w *world) receiveFile(ctx context.Context, spec *uploadlog.Spec, open func() (io.ReadCloser, error)) (*protocol.Upload, error) {
	spec.CreatedAt = time.Now()
	spec.ExpiresAt = spec.CreatedAt.Add(time.Hour)
	return w.Uploads.(*upload.Host).ReceiveFile(ctx, spec, open)
}

func TestUploadsReceiveTheFilesOfAnImport(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	importtest.RunReceiver(t, signUp(t, w).account.AccountID, w.receiveFile)
}

// importArchive imports an export, and returns the import when its job has ended.
func (c *client) importArchive(archive []byte) *protocol.Import {
	c.t.Helper()
	var made protocol.Import
	c.expect(202, "POST", "/account/imports", rawBody(archive), "Content-Type", "application/zip").into(c.t, &made)
	args := imports.RunArgs{AccountID: c.account.AccountID, ImportID: made.ImportID}
	if err := c.DB.Imports.Continue(c.t.Context(), args, c.receiveFile); err != nil {
		c.t.Fatal(err)
	}
	var done protocol.Import
	c.expect(200, "GET", "/account/imports/"+made.ImportID.String(), nil).into(c.t, &done)
	return &done
}

// unzip returns the files of an archive by their paths.
func unzip(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, file := range reader.File {
		content, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		files[file.Name] = string(text)
	}
	return files
}

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var archive bytes.Buffer
	out := zip.NewWriter(&archive)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		to, err := out.Create(name)
		if err == nil {
			_, err = io.WriteString(to, files[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

var (
	exportedIDs = regexp.MustCompile(`\b(art|conv|msg|br|file|proj|fu|prompt)_[0-7][0-9a-z]{25}`)
	// differs are the values that an import cannot or must not restore: turns, the time of the scan and of the deletion of a file.
	differs = regexp.MustCompile(`"turn_id":"turn_\w+"|"scan":\{[^}]*\}|"deleted_at":"[^"]*"`)
)

// comparable returns the files of an archive that an import restores. Identifiers are replaced by their numbers in the order in
// which they are met.
func comparableArchive(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	files := unzip(t, archive)
	var manifest protocol.ExportManifest
	if err := json.Unmarshal([]byte(files["manifest.json"]), &manifest); err != nil {
		t.Fatal(err)
	}
	delete(manifest.Counts, "usage_records")
	delete(manifest.Counts, "shares")
	delete(manifest.Counts, "research_tasks")
	for _, name := range []string{"manifest.json", "account.json", "settings.json", "usage.json", "shares.json", "research.json"} {
		delete(files, name)
	}
	names := map[string]string{}
	number := func(id string) string {
		if names[id] == "" {
			kind, _, _ := strings.Cut(id, "_")
			names[id] = fmt.Sprintf("%s-%d", kind, len(names))
		}
		return names[id]
	}
	compared := map[string]string{"counts": fmt.Sprint(manifest.Counts)}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		text := differs.ReplaceAllStringFunc(files[path], func(match string) string {
			name, _, _ := strings.Cut(match, ":")
			if name == `"deleted_at"` {
				return name + `:"then"`
			}
			return name + ":null"
		})
		compared[exportedIDs.ReplaceAllStringFunc(path, number)] = exportedIDs.ReplaceAllStringFunc(text, number)
	}
	return compared
}

// everything gives an account everything that an export has.
func everything(t *testing.T, w *world) *user {
	t.Helper()
	u := signUp(t, w)
	id := func(text string) protocol.ConversationID { return u.parse(text) }
	tides, plain := u.project("Tides"), u.project("Plain")
	old := u.project("Old")
	for _, text := range []string{"Be brief.", "Be kind.\n\nUse 日本語."} {
		version := u.do(200, "GET", "/projects/"+tides+"/instructions", nil).at("version")
		u.do(200, "PUT", "/projects/"+tides+"/instructions", route.Object{"content": text}, "If-Match", fmt.Sprintf(`"v%v"`, version))
	}
	u.do(200, "PUT", "/account/instructions", route.Object{"content": "I am a nurse."}, "If-Match", `"v0"`)
	for _, project := range []any{nil, tides, old} { // the same name, once in each
		u.do(201, "POST", "/prompts", route.Object{"project_id": project, "name": "Übersetze", "description": "Into \"any\" language", "text": "Translate {{text}}\n\n日本語 {{#if}}"})
	}
	u.do(200, "PUT", "/projects/"+tides+"/settings", route.Object{"default_profile": "coding", "memory_scope": "project", "tools": route.Object{"now": false}, "approval_policy": "all"}, "If-Match", `"v0"`)
	var kept []*protocol.File
	for _, text := range []string{"The moon.", "The sun.", strings.Repeat("Spring tides. ", 50_000), "gone", "drafted"} {
		kept = append(kept, u.storeFile(text))
	}
	u.addFile(tides, kept[0].FileID.String())
	u.addFile(tides, kept[1].FileID.String())
	u.addFile(plain, kept[1].FileID.String())
	u.do(200, "PATCH", "/files/"+kept[2].FileID.String(), route.Object{"filename": "spring tides ☾.txt"})

	// A conversation with versions of messages, in a project, with files.
	ask := func(conversation any, text string, more route.Object, files ...*protocol.File) {
		u.t.Helper()
		input := []route.Object{{"type": "text", "text": text}}
		for _, file := range files {
			input = append(input, route.Object{"type": "file", "file_id": file.FileID})
		}
		body := route.Object{"conversation_id": conversation, "input": input}
		maps.Copy(body, more)
		u.expect(200, "POST", "/chat", body)
	}
	branched := u.do(201, "POST", "/conversations", route.Object{"title": "Branched ☂", "project_id": tides, "profile": "deep_reasoning", "metadata": route.Object{"colour": "blue"}}).at("conversation_id").(string)
	ask(branched, "Why are there tides? [[script tokens=20 code=go reasoning=5]]", nil, kept[0], kept[3])
	messages := func() []any { return u.do(200, "GET", "/conversations/"+branched+"/messages", nil).at("data").([]any) }
	message := func(n int) string { return messages()[n].(map[string]any)["message_id"].(string) }
	u.do(200, "PUT", "/conversations/"+branched+"/feedback", route.Object{"rating": "down", "reasons": []any{"unclear", "other"}, "comment": "Too \"long\"\n☹"})
	first, answer := message(0), message(1)
	edit := u.do(201, "POST", "/conversations/"+branched+"/branches", route.Object{"message_id": first, "mode": "edit", "name": "Another question"})
	ask(branched, "Why are there winds?", nil, kept[2])
	ask(branched, "And storms?", nil)
	u.do(201, "POST", "/conversations/"+branched+"/branches", route.Object{"message_id": answer, "mode": "regenerate"})
	ask(branched, "", route.Object{"input": []any{}})
	u.do(201, "POST", "/conversations/"+branched+"/branches", route.Object{"message_id": answer, "mode": "regenerate", "name": "Empty"})
	version := u.do(200, "GET", "/conversations/"+branched, nil).at("version")
	u.do(200, "PUT", "/conversations/"+branched+"/active-branch", route.Object{"branch_id": edit.at("branch_id")}, "If-Match", fmt.Sprintf(`"v%v"`, version))
	u.do(200, "PUT", "/conversations/"+branched+"/draft", route.Object{"content": "A draft", "attachments": []any{kept[4].FileID}})
	u.do(204, "DELETE", "/files/"+kept[3].FileID.String(), nil)

	// A tool with its sources, and citations of them.
	w.database.Admin(t, `update messages set parts = $2::json where account_id = $1 and message_id = $3`, u.account.AccountID, fmt.Sprintf(`[
		{"type":"tool","part_id":"%[1]s","tool_id":"tl_01h2xcejqtf2nbrexx3vqjhp41","tool_name":"search_files","kind":"files","title":"Search","input":{"q":"moon"},"state":"succeeded","output":"[1] The moon.",
			"sources":[{"number":1,"file_id":"%[2]s","title":"a.txt","size":9}],"duration_ms":12},
		{"type":"text","part_id":"%[1]s","text":"The moon [1].","citations":[{"index":1,"title":"a.txt","marker":"[1]","file_id":"%[2]s","offset":0,"length":9},{"index":2,"title":"web","url":"https://example.org/"}]},
		{"type":"code","part_id":"%[1]s","language":"日本","filename":"a.go","code":"","truncated":true}]`, protocol.NewPartID(), kept[0].FileID), idtest.Parse[protocol.MessageID](t, answer))

	// The queue of follow-ups.
	for n, state := range []string{"started", "cancelled", "held", "held"} {
		w.database.Admin(t, `insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, attachments, profile, tools, position, version) values ($1, $2, $3, $4, $5, array[$6::uuid], 'coding', '{"web_search": false, "off": ["calculate"]}', $7, 2)`,
			u.account.AccountID, protocol.NewFollowUpID(), id(branched), state, "follow-up "+state, kept[0].FileID, n)
	}

	// Pinned, archived, unread and empty conversations, and one of an archived project.
	set := func(conversation, name string, body route.Object) {
		u.t.Helper()
		version := u.do(200, "GET", "/conversations/"+conversation, nil).at("version")
		u.do(200, "PUT", "/conversations/"+conversation+"/"+name, body, "If-Match", fmt.Sprintf(`"v%v"`, version))
	}
	for _, title := range []string{"one", "two", "three"} {
		c := u.conversation(title)
		ask(c, title, nil)
		if title != "two" {
			set(c, "pin", route.Object{"pinned": true})
		}
		if title == "three" {
			set(c, "archive", route.Object{"archived": true})
			u.do(200, "PUT", "/conversations/"+c+"/read", route.Object{"message_id": u.do(200, "GET", "/conversations/"+c+"/messages", nil).at("data.1.message_id")})
		}
	}
	u.expect(200, "POST", "/chat", route.Object{"input": []route.Object{{"type": "text", "text": "A conversation without a title"}}, "project_id": plain})
	u.do(201, "POST", "/conversations", route.Object{"title": "Empty", "project_id": old, "metadata": route.Object{"a": "b"}})
	u.do(200, "PUT", "/projects/"+old+"/archive", route.Object{"archived": true}, "If-Match", `"v1"`)
	u.do(201, "POST", "/conversations/"+branched+"/shares", route.Object{})
	made := u.storeArtifact(w, u.parse(branched))
	u.do(200, "PUT", "/artifacts/"+made.ArtifactID.String(), route.Object{"content": "by hand", "title": "Changed", "version": 1})
	w.database.Admin(t, `update messages set parts = json_build_array(json_build_object('type', 'artifact', 'part_id', parts -> 0 ->> 'part_id', 'artifact_id', $2::text, 'version', 2, 'title', 'Changed'))
		where message_id = (select message_id from messages where account_id = $1 and conversation_id = $3 and role = 'assistant' order by message_id limit 1)`,
		u.account.AccountID, made.ArtifactID.String(), u.parse(branched))
	// Times in the past show what an import keeps.
	for _, table := range []string{"conversations", "branches", "messages", "follow_ups", "projects", "project_instructions", "account_instructions", "prompts", "files"} {
		w.database.Admin(t, fmt.Sprintf(`update %s set created_at = created_at - interval '40 days' where account_id = $1`, table), u.account.AccountID)
	}
	return u
}

func TestAnExportImportedAndExportedAgainIsTheSame(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	w.readTexts(readAsIs)
	u := everything(t, w)
	export := func(u *user) []byte {
		t.Helper()
		w.changes.Await(t, "the texts are read", func() bool { return query[int](w, `select count(*) from file_texts where state = 'pending'`)[0] == 0 })
		return u.expect(200, "GET", "/account/export", nil).body
	}
	archive := export(u)
	other := signUp(t, w)
	done := other.importArchive(archive)
	if done.State != protocol.ImportCompleted || done.Failure != nil || done.Skipped != 0 || done.Imported != 6 || done.Projects != 3 || done.Files != 5 || done.Artifacts != 1 || *done.Source != protocol.ImportFromTurnstone {
		t.Errorf("%+v", done)
	}
	if want := map[protocol.ImportReason]int64{protocol.ImportSharesSkipped: 1, protocol.ImportAccountKept: 1}; !maps.Equal(done.Report.Reasons, want) {
		t.Errorf("the report has %v, want %v: %+v", done.Report.Reasons, want, done.Report.Entries)
	}
	want, got := comparableArchive(t, archive), comparableArchive(t, export(other))
	compareArchives(t, want, got)
	if bytes.Contains(export(other), []byte(u.account.AccountID.String())) {
		t.Error("the second archive names the first account")
	}
	// The content of every file is the same, and can be read by its new account alone.
	for _, file := range unzipFiles(t, export(other)) {
		content := other.expect(200, "GET", "/files/"+file.FileID.String()+"/content", nil).body
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != file.SHA256 {
			t.Errorf("%s has another content", file.Filename)
		}
		u.expect(404, "GET", "/files/"+file.FileID.String(), nil)
	}
	// Once more, into both accounts: nothing is doubled.
	for _, c := range []*user{other, u} {
		again := c.importArchive(archive)
		if again.State != protocol.ImportCompleted || again.Imported+again.Projects+again.Files != 0 || again.Report.Reasons[protocol.ImportAlreadyImported] != 6+3+3+5 {
			t.Errorf("again: %+v", again)
		}
		compareArchives(t, want, comparableArchive(t, export(c)))
	}
	// What an import has made is forgotten with it.
	const made = `select count(*)::int from import_items where item_id is not null`
	if n := query[int](w, made)[0]; n != 3+5 {
		t.Errorf("%d projects and files of the import are known", n)
	}
	for _, sql := range []string{`delete from files where account_id = $1`, `update conversations set project_id = null where account_id = $1`, `delete from projects where account_id = $1`} {
		if _, err := w.DB.Exec(t.Context(), other.account.AccountID, sql, other.account.AccountID); err != nil {
			t.Fatal(err)
		}
	}
	if n := query[int](w, made)[0]; n != 0 {
		t.Errorf("%d rows are left without an item", n)
	}
}

// unzipFiles returns the list of the files of an archive.
func unzipFiles(t *testing.T, archive []byte) []protocol.File {
	t.Helper()
	var list struct {
		Files []protocol.File `json:"files"`
	}
	if err := json.Unmarshal([]byte(unzip(t, archive)["files.json"]), &list); err != nil || len(list.Files) == 0 {
		t.Fatalf("%d files, %v", len(list.Files), err)
	}
	return list.Files
}

func compareArchives(t *testing.T, want, got map[string]string) {
	t.Helper()
	for path, text := range want {
		if got[path] == text {
			continue
		}
		at := 0
		for at < min(len(text), len(got[path])) && text[at] == got[path][at] {
			at++
		}
		from := max(0, at-150)
		t.Errorf("%s differs:\n got …%s\nwant …%s", path, got[path][min(from, len(got[path])):min(at+150, len(got[path]))], text[from:min(at+150, len(text))])
	}
	for path := range got {
		if _, is := want[path]; !is {
			t.Errorf("%s is new", path)
		}
	}
}

// The files of an archive are checked like uploads, and the report names what is wrong with each.
func TestFilesOfAHostileArchiveAreChecked(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	type entry struct {
		content, stored string // stored: in the archive
		size            int    // 0: that of content
	}
	files := map[string]string{"manifest.json": `{"format":"turnstone.export"}`}
	var list []string
	for _, e := range []entry{
		{content: eicar(), stored: eicar()}, {content: "good", stored: "evil"}, {content: "long", stored: "long!"}, {content: "short", stored: "short", size: 1 << 40}, {content: "The moon.", stored: "The moon."},
	} {
		id, sum := protocol.DeriveFileID(protocol.NewUploadID()), sha256.Sum256([]byte(e.content))
		if e.size == 0 {
			e.size = len(e.content)
		}
		files["files/"+id.String()] = e.stored
		item := fmt.Sprintf(`{"file_id":%q,"filename":"../%d.txt","media_type":"text/plain","size":%d,"sha256":"%x","path":"../../etc/passwd"}`, id, len(list), e.size, sum)
		list = append(list, item, item) // each is named twice
	}
	files["files.json"] = `{"files":[` + strings.Join(list, ",") + `]}`
	done := c.importArchive(zipped(t, files))
	want := map[protocol.ImportReason]int64{
		protocol.ImportFilesRefused: 2, // malware, also when it is named again
		protocol.ImportFilesDamaged: 6, protocol.ImportAlreadyImported: 1,
	}
	if done.State != protocol.ImportCompleted || done.Files != 1 || !maps.Equal(done.Report.Reasons, want) {
		t.Errorf("%+v, %+v", done, done.Report)
	}
	if names := query[string](w, `select filename from files`); !slices.Equal(names, []string{".._8.txt"}) {
		t.Errorf("the files are %q", names)
	}
	if open := query[int](w, `select count(*) from uploads where state not in ('ready', 'rejected', 'cancelled')`); open[0] != 0 {
		t.Errorf("%d sessions are open", open[0])
	}
	if totals := query[int](w, `select sessions + reserved from file_totals`); totals[0] != 0 {
		t.Errorf("%d is reserved", totals[0])
	}
}
