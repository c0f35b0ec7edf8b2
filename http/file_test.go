package http

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	stdhttp "net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/actors/upload"
	"turnstone/http/auth"
	"turnstone/http/route"
	"turnstone/persistence"
	"turnstone/persistence/files"
	"turnstone/protocol"
)

const insertFileSQL = `
	insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at)
	values ($1, $2, $3, 'text/plain', $4, $5, sha256('x'), 'none', 'test', now(), now(), now())`

// listedFile is a file that has a row and no content.
type listedFile struct {
	name string
	kind protocol.FileKind
	size int64
	id   string // set by storeRows
}

// storeRows stores the rows of files, the oldest first.
func (u *user) storeRows(list []listedFile) {
	u.t.Helper()
	batch := &pgx.Batch{}
	for i := range list {
		id := protocol.DeriveFileID(protocol.NewUploadID())
		list[i].id = id.String()
		batch.Queue(insertFileSQL, u.account.AccountID, id, list[i].name, string(list[i].kind), list[i].size)
	}
	if err := u.DB.Send(u.t.Context(), u.account.AccountID, batch); err != nil {
		u.t.Fatal(err)
	}
}

// addFile adds a file to a project.
func (u *user) addFile(project, file string) decodedReply {
	u.t.Helper()
	return u.do(200, "POST", "/projects/"+project+"/files", route.Object{"file_id": file})
}

// deleteProject deletes a project that has no live work.
func (u *user) deleteProject(id string) {
	u.t.Helper()
	version := fmt.Sprintf(`"v%v"`, u.do(200, "GET", "/projects/"+id, nil).at("version"))
	first := u.do(409, "DELETE", "/projects/"+id, nil, "If-Match", version)
	u.do(200, "DELETE", "/projects/"+id, nil, "If-Match", version, "X-Confirm", first.at("current.confirmation.token").(string))
}

func namesOf(list []listedFile, keep func(listedFile) bool) (names []string) {
	for _, f := range slices.Backward(list) {
		if keep(f) {
			names = append(names, f.name)
		}
	}
	return names
}

func TestFilesAreListedInEveryOrderPageByPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u, stranger := signUp(t, w), signUp(t, w)
	// Postgres and Go change some of these characters to lower case differently.
	words := []string{"Äpfel", "apple", "Birne", "İzmir", "潮汐", "STRAẞE", "100%_sure"}
	var list []listedFile
	for i := range 47 {
		list = append(list, listedFile{name: fmt.Sprintf("%s %02d.txt", words[i%len(words)], i), kind: protocol.FileKinds[i%len(protocol.FileKinds)], size: int64(1 + i%5)})
	}
	u.storeRows(list)
	byName := query[string](w, `select filename from files order by lower(filename), file_id`)
	bySize := query[string](w, `select filename from files order by size desc, file_id desc`)
	byAge := namesOf(list, func(listedFile) bool { return true })
	for path, want := range map[string][]string{
		"/files?limit=5":             byAge,
		"/files?limit=4&sort=newest": byAge,
		"/files?limit=1&sort=name":   byName,
		"/files?limit=3&sort=size":   bySize,
		"/files?limit=2&kind=image":  namesOf(list, func(f listedFile) bool { return f.kind == protocol.FileImage }),
		"/files?limit=2&q=%20B":      namesOf(list, func(f listedFile) bool { return strings.HasPrefix(f.name, "Birne") }),
		"/files?limit=2&q=%C3%84PF":  namesOf(list, func(f listedFile) bool { return strings.HasPrefix(f.name, "Äpfel") }),
		"/files?limit=2&q=%25_":      namesOf(list, func(f listedFile) bool { return strings.HasPrefix(f.name, "100%_sure") }),
		"/files?limit=2&q=%C4%B0Z":   namesOf(list, func(f listedFile) bool { return strings.HasPrefix(f.name, "İzmir") }),
	} {
		found, pages := u.allPages(path, "filename")
		if !slices.Equal(found, want) || len(pages) < 2 {
			t.Errorf("%s: %q in %d pages, want %q", path, found, len(pages), want)
		}
	}
	for _, query := range []string{"q=nothing", "kind=text&q=Birne%2000", "project_id=" + u.project("Empty")} {
		wantField(t, u.do(200, "GET", "/files?"+query, nil), "data.0", nil)
	}
	cursor := "cursor=" + u.do(200, "GET", "/files?limit=2&sort=name", nil).at("next_cursor").(string)
	for _, query := range []string{cursor, cursor + "&sort=size", cursor + "&sort=name&q=a", cursor + "&sort=name&kind=text", "kind=book", "sort=oldest", "q=" + strings.Repeat("a", 161), "limit=101", "project_id=x"} {
		u.do(422, "GET", "/files?"+query, nil)
	}
	stranger.do(422, "GET", "/files?sort=name&"+cursor, nil)
	wantField(t, stranger.do(200, "GET", "/files", nil), "data.0", nil)
	wantField(t, stranger.do(200, "GET", "/files?project_id="+u.project("Theirs"), nil), "data.0", nil)
}

func TestThePickerReturnsAFewOfTheNewestFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := signUp(t, w)
	var list []listedFile
	for i := range 25 {
		list = append(list, listedFile{name: fmt.Sprintf("%s %02d", []string{"Tides", "Winds"}[i%2], i), kind: protocol.FileText, size: 1})
	}
	u.storeRows(list)
	for query, want := range map[string][]string{
		"":                 {"Tides 24", "Winds 23", "Tides 22"},
		"?q=wind":          {"Winds 23", "Winds 21", "Winds 19"},
		"?q=TIDES&limit=2": {"Tides 24", "Tides 22"},
		"?q=none":          nil,
	} {
		picked := u.do(200, "GET", "/files/picker"+query, nil)
		wantField(t, picked, "next_cursor", nil)
		wantField(t, picked, "has_more", false)
		for i, name := range want {
			wantField(t, picked, fmt.Sprintf("data.%d.filename", i), name)
		}
	}
	wantField(t, u.do(200, "GET", "/files/picker?limit=20", nil), "data.20", nil)
	for _, query := range []string{"limit=0", "limit=21", "q=" + strings.Repeat("a", 161)} {
		u.do(422, "GET", "/files/picker?"+query, nil)
	}
}

func TestThePickerStartsWithRecentFilesAndThoseOfTheProject(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	w.readTexts(readAsIs) // for which messages wait
	u := signUp(t, w)
	files := map[string]*protocol.File{}
	for _, name := range []string{"used", "used again", "of the project", "old", "new"} {
		files[name] = u.storeFile(name)
		u.do(200, "PATCH", "/files/"+files[name].FileID.String(), route.Object{"filename": name})
	}
	project := u.project("Tides")
	for _, name := range []string{"used again", "of the project"} {
		u.addFile(project, files[name].FileID.String())
	}
	u.ask(asking("x", []*protocol.File{files["used again"]}))
	u.ask(asking("x", []*protocol.File{files["used"]}))
	u.ask(asking("x", []*protocol.File{files["used again"]}))
	inside := u.do(201, "POST", "/projects/"+project+"/conversations", route.Object{}).at("conversation_id").(string)
	for query, want := range map[string][]string{
		"?conversation_id=" + inside:              {"used again", "used", "of the project", "new", "old"},
		"?conversation_id=" + inside + "&limit=3": {"used again", "used", "of the project"},
		"?q=O&conversation_id=" + inside:          {"of the project", "old"},
		"":                                        {"used again", "used", "new", "old", "of the project"},
		"?conversation_id=" + protocol.NewConversationID().String(): {"used again", "used", "new", "old", "of the project"},
	} {
		picked, got := u.do(200, "GET", "/files/picker"+query, nil), []string(nil)
		for _, file := range picked.at("data").([]any) {
			got = append(got, file.(map[string]any)["filename"].(string))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

func TestTheFilesOfAnUnknownOrDeletedProjectAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := signUp(t, w)
	list := []listedFile{{name: "a.txt", kind: protocol.FileText, size: 1}}
	u.storeRows(list)
	project := u.project("Tides")
	u.addFile(project, list[0].id)
	wantField(t, u.do(200, "GET", "/files?project_id="+project, nil), "data.0.file_id", list[0].id)
	u.deleteProject(project)
	for _, id := range []string{project, protocol.NewProjectID().String()} {
		for _, path := range []string{"/files", "/conversations"} {
			if data := u.do(200, "GET", path+"?project_id="+id, nil).at("data").([]any); len(data) != 0 {
				t.Errorf("%s of %s: %v", path, id, data)
			}
		}
	}
	u.do(422, "GET", "/files?project_id=x", nil)
}

func TestAFileThatIsMissingForeignOrDeletedHasTheSameState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u, stranger := signUp(t, w), signUp(t, w)
	own, theirs := []listedFile{{name: "a", kind: protocol.FileText, size: 1}, {name: "b", kind: protocol.FileText, size: 1}}, []listedFile{{name: "c", kind: protocol.FileText, size: 1}}
	u.storeRows(own)
	stranger.storeRows(theirs)
	u.do(204, "DELETE", "/files/"+own[1].id, nil)
	missing := []string{protocol.DeriveFileID(protocol.NewUploadID()).String(), theirs[0].id, own[1].id}
	ids := append([]string{own[0].id, own[0].id}, missing...)
	states := u.do(200, "POST", "/files/attachment-states", route.Object{"file_ids": ids})
	for i, id := range ids {
		at := fmt.Sprintf("data.%d.", i)
		wantField(t, states, at+"file_id", id)
		if slices.Contains(missing, id) {
			wantField(t, states, at+"state", "missing")
			wantField(t, states, at+"file", nil)
			continue
		}
		wantField(t, states, at+"state", "ready")
		wantField(t, states, at+"file.filename", "a")
	}
	many := make([]string, 51)
	for i := range many {
		many[i] = protocol.DeriveFileID(protocol.NewUploadID()).String()
	}
	wantField(t, u.do(200, "POST", "/files/attachment-states", route.Object{"file_ids": many[1:]}), "data.49.state", "missing")
	for _, refused := range [][]string{{}, {"file_x"}, {protocol.NewUploadID().String()}, many} {
		u.do(422, "POST", "/files/attachment-states", route.Object{"file_ids": refused})
	}
}

func TestARenameFollowsTheVersionRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := signUp(t, w)
	list := []listedFile{{name: "old.txt", kind: protocol.FileText, size: 1}}
	u.storeRows(list)
	path := "/files/" + list[0].id
	renamed := u.do(200, "PATCH", path, route.Object{"filename": " ../new\u202e\u0007  name.txt "}, "If-Match", `"v1"`)
	wantField(t, renamed, "filename", ".._new name.txt")
	wantField(t, renamed, "version", 2.0)
	if renamed.header.Get("ETag") != `"v2"` {
		t.Errorf("ETag %s", renamed.header.Get("ETag"))
	}
	for _, stale := range []decodedReply{
		u.do(409, "PATCH", path, route.Object{"filename": "x"}, "If-Match", `"v1"`),
		u.do(409, "PATCH", path, route.Object{"filename": "x", "version": 1}),
		u.do(409, "DELETE", path, nil, "If-Match", `"v1"`),
	} {
		wantField(t, stale, "code", "stale_version")
		wantField(t, stale, "current.filename", ".._new name.txt")
		wantField(t, stale, "current.version", 2.0)
	}
	u.do(422, "PATCH", path, route.Object{"filename": "x", "version": 2}, "If-Match", `"v1"`)
	for _, name := range []string{"", "...", "\u200b", strings.Repeat("ü", 256)} {
		u.do(422, "PATCH", path, route.Object{"filename": name})
	}
	wantField(t, u.do(200, "PATCH", path, route.Object{"filename": "last.txt"}), "version", 3.0) // the last writer wins
	wantField(t, u.do(200, "GET", path, nil), "filename", "last.txt")
	u.do(204, "DELETE", path, nil, "If-Match", `"v3"`)
	u.do(404, "PATCH", path, route.Object{"filename": "x"})
}

func TestADeletedFileLeavesTheLibraryItsProjectsAndTheObjectStore(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	u := signUp(t, w)
	file, kept := u.storeFile("To be deleted.").FileID.String(), u.storeFile("To be kept.").FileID.String()
	first, second := u.project("First"), u.project("Second")
	for _, project := range []string{first, second} {
		u.addFile(project, file)
	}
	u.addFile(first, kept)
	wantField(t, u.do(200, "GET", "/projects/"+first, nil), "file_count", 2.0)
	u.do(204, "DELETE", "/files/"+file, nil)
	for method, path := range map[string]string{"GET": "/files/" + file, "DELETE": "/files/" + file, "PATCH": "/files/" + file} {
		u.do(404, method, path, route.Object{"filename": "x"})
	}
	u.do(404, "GET", "/files/"+file+"/content", nil)
	u.do(404, "POST", "/projects/"+second+"/files", route.Object{"file_id": file})
	if found, _ := u.allPages("/files?limit=100", "file_id"); !slices.Equal(found, []string{kept}) {
		t.Errorf("the library has %v", found)
	}
	wantField(t, u.do(200, "GET", "/projects/"+first, nil), "file_count", 1.0)
	wantField(t, u.do(200, "GET", "/projects/"+second, nil), "file_count", 0.0)
	wantField(t, u.do(200, "GET", "/projects/"+second+"/files", nil), "data.0", nil)
	work := u.do(200, "GET", "/projects/"+second+"/work-history", nil)
	wantField(t, work, "data.0.kind", "file_removed")
	wantField(t, work, "data.0.file_id", file)
	wantField(t, work, "data.0.by", "user")
	if totals := query[string](w, `select format('%s %s %s %s', bytes, files, reserved, sessions) from file_totals`); !slices.Equal(totals, []string{"11 1 0 0"}) {
		t.Errorf("the account stores %v", totals)
	}
	if keys := w.objectKeys("f/"); len(keys) != 2 {
		t.Errorf("before the purge: %v", keys)
	}
	runner, err := w.DB.StartJobs(t.Context(), persistence.JobWorkers{Observe: w.changes.Job})
	if err != nil {
		t.Fatal(err)
	}
	w.changes.Await(t, "one file is left", func() bool {
		return len(w.objectKeys("f/")) == 1 && query[int64](w, `select count(*) from files`)[0] == 1
	})
	if err := runner.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if resp := u.do(200, "GET", "/files/"+kept+"/content", nil); resp.text != "To be kept." {
		t.Errorf("%s", resp.text)
	}
}

func TestFilesAreAddedToAProjectAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u, stranger := signUp(t, w), signUp(t, w)
	own, theirs := []listedFile{{name: "a", kind: protocol.FileText, size: 1}, {name: "b", kind: protocol.FileText, size: 1}}, []listedFile{{name: "c", kind: protocol.FileText, size: 1}}
	u.storeRows(own)
	stranger.storeRows(theirs)
	a, b := own[0].id, own[1].id
	project := u.project("Kitchen")
	path := "/projects/" + project + "/files"
	added := u.addFile(project, a)
	wantField(t, added, "project_ids.0", project)
	wantField(t, added, "version", 2.0)
	wantField(t, u.addFile(project, a), "version", 2.0) // repeated
	first := u.expect(200, "POST", path, route.Object{"file_id": a}, "Idempotency-Key", "add")
	u.do(200, "PATCH", "/files/"+a, route.Object{"filename": "renamed.txt"})
	again := u.expect(200, "POST", path, route.Object{"file_id": a}, "Idempotency-Key", "add")
	if again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("ETag") != first.header.Get("ETag") || again.header.Get("Location") != "" || !bytes.Equal(again.body, first.body) {
		t.Errorf("first %s %v, repeated %s %v", first.body, first.header, again.body, again.header)
	}
	u.addFile(project, b)
	wantField(t, u.do(200, "GET", "/projects/"+project, nil), "file_count", 2.0)
	for _, list := range []string{path + "?limit=1", "/files?limit=1&project_id=" + project} {
		if found, _ := u.allPages(list, "file_id"); !slices.Equal(found, []string{b, a}) {
			t.Errorf("%s: %v", list, found)
		}
	}
	for _, id := range []string{theirs[0].id, protocol.DeriveFileID(protocol.NewUploadID()).String()} {
		u.do(404, "POST", path, route.Object{"file_id": id})
		u.do(404, "DELETE", path+"/"+id, nil)
	}
	u.do(422, "POST", path, route.Object{"file_id": "file_x"})
	u.do(204, "DELETE", path+"/"+a, nil)
	u.do(404, "DELETE", path+"/"+a, nil)
	wantField(t, u.do(200, "GET", "/files/"+a, nil), "project_ids.0", nil)
	work := u.do(200, "GET", "/projects/"+project+"/work-history", nil)
	for i, want := range []struct{ kind, file string }{{"file_removed", a}, {"file_added", b}, {"file_added", a}} {
		wantField(t, work, fmt.Sprintf("data.%d.kind", i), want.kind)
		wantField(t, work, fmt.Sprintf("data.%d.file_id", i), want.file)
	}
	wantField(t, work, "data.3.kind", "project_created")

	version := u.do(200, "GET", "/projects/"+project, nil).at("version")
	u.do(200, "PUT", "/projects/"+project+"/archive", route.Object{"archived": true, "version": version})
	for method, at := range map[string]string{"POST": path, "DELETE": path + "/" + b} {
		wantField(t, u.do(409, method, at, route.Object{"file_id": a}), "current.state", "archived")
	}
	if found, _ := u.allPages(path+"?limit=5", "file_id"); !slices.Equal(found, []string{b}) {
		t.Errorf("the archived project has %v", found)
	}
	u.deleteProject(project)
	u.do(404, "GET", path, nil)
	u.do(404, "POST", path, route.Object{"file_id": a})
	u.do(404, "DELETE", path+"/"+b, nil)
	wantField(t, u.do(200, "GET", "/files/"+b, nil), "project_ids.0", nil)
}

func TestAnUploadForAProjectBecomesOneOfItsFiles(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	u := signUp(t, w)
	project := u.project("Kitchen")
	made := u.startUpload(10, "purpose", "project", "project_id", project)
	wantField(t, u.do(200, "GET", "/projects/"+project, nil), "file_count", 0.0)
	u.send(200, made, "0123456789")
	wantField(t, u.do(200, "GET", "/projects/"+project, nil), "file_count", 1.0)
	wantField(t, u.do(200, "GET", "/projects/"+project+"/files", nil), "data.0.file_id", protocol.DeriveFileID(made.UploadID).String())
	wantField(t, u.do(200, "GET", "/projects/"+project+"/work-history", nil), "data.0.kind", "file_added")
	version := u.do(200, "GET", "/projects/"+project, nil).at("version")
	body := route.Object{"filename": "a.txt", "media_type": "text/plain", "size": 10, "purpose": "project", "project_id": project}
	u.do(200, "PUT", "/projects/"+project+"/archive", route.Object{"archived": true, "version": version})
	archived := u.do(409, "POST", "/files/uploads", body)
	wantField(t, archived, "current.state", "archived")
	u.do(200, "PUT", "/projects/"+project+"/archive", route.Object{"archived": false, "version": archived.at("current.version")})
	other := u.startUpload(10, "purpose", "project", "project_id", project)
	u.deleteProject(project)
	u.do(404, "POST", "/files/uploads", body)
	u.send(200, other, "0123456789") // becomes a file of the library only
	if kinds := query[string](w, `select kind from project_work where file_id is not null`); len(kinds) != 1 {
		t.Errorf("the history of the deleted project has %v", kinds)
	}
	if found, _ := u.allPages("/files?limit=5", "file_id"); len(found) != 2 {
		t.Errorf("the library has %v", found)
	}
}

func TestAnUploadDoesNotChangeItsConversation(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	u := signUp(t, w)
	id := u.conversation("Tides")
	before, list := u.do(200, "GET", "/conversations/"+id, nil).text, u.do(200, "GET", "/conversations", nil).text
	u.send(200, u.startUpload(10, "purpose", "attachment", "conversation_id", id), "0123456789")
	if after := u.do(200, "GET", "/conversations/"+id, nil).text; after != before {
		t.Errorf("%s, before %s", after, before)
	}
	if after := u.do(200, "GET", "/conversations", nil).text; after != list {
		t.Errorf("%s, before %s", after, list)
	}
}

// until reads items up to one of a kind about an identifier.
func (s *feedStream) until(kind, id string) protocol.FeedItem {
	s.t.Helper()
	for {
		if item := s.next(); item.Type == kind && item.ID == id {
			return item
		}
	}
}

func TestTheFeedReportsUploadsAndFiles(t *testing.T) {
	t.Parallel()
	w := (&feedWorld{}).start(t, func(t *testing.T, change ...func(*testConfig)) *world {
		return uploadWorld(t, upload.Config{}, change...)
	})
	u := signUp(t, w.world)
	project, conversation := u.project("Kitchen"), u.conversation("Tides")
	stream := w.feed(u.client, "")
	stream.want(protocol.FeedStarted, "")
	made := u.startUpload(10, "conversation_id", conversation)
	if item := stream.want("upload.changed", made.UploadID.String()); item.State != string(protocol.UploadPending) || item.ConversationID == nil || item.ConversationID.String() != conversation {
		t.Errorf("%+v", item)
	}
	u.send(200, made, "0123456789")
	file := protocol.DeriveFileID(made.UploadID).String()
	for added, ready := false, false; !added || !ready; { // the feed may leave out the states before
		switch item := stream.next(); item.Type {
		case "upload.changed":
			ready = item.State == string(protocol.UploadReady)
		case "file.changed":
			added = item.ID == file && item.Version != nil && *item.Version == 1
		default:
			t.Fatalf("%+v", item)
		}
	}
	u.do(200, "PATCH", "/files/"+file, route.Object{"filename": "b.txt"})
	if item := stream.want("file.changed", file); item.Version == nil || *item.Version != 2 {
		t.Errorf("%+v", item)
	}
	u.addFile(project, file)
	stream.until("file.changed", file)
	u.do(204, "DELETE", "/files/"+file, nil)
	stream.until("file.deleted", file)
	cancelled := u.startUpload(10)
	stream.until("upload.changed", cancelled.UploadID.String())
	u.do(200, "DELETE", cancelled.Path(), nil)
	if item := stream.until("upload.changed", cancelled.UploadID.String()); item.State != string(protocol.UploadCancelled) {
		t.Errorf("%+v", item)
	}
}

// quotaWorld returns a world whose accounts have a quota.
func quotaWorld(t *testing.T, quota files.Quota) *world {
	t.Helper()
	return uploadWorld(t, upload.Config{}, func(c *testConfig) {
		db, err := persistence.Open(t.Context(), persistence.Config{URL: c.database.URL, Objects: c.database.Objects(t), FileQuota: quota, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		c.use(db)
	})
}

// uploadOf returns the body of a request for an upload of a size.
func uploadOf(size int) route.Object {
	return route.Object{"filename": "a.txt", "media_type": "text/plain", "size": size, "purpose": "library"}
}

func TestAnAccountStoresNoMoreBytesThanItsQuota(t *testing.T) {
	t.Parallel()
	w := quotaWorld(t, files.Quota{Bytes: 100, Files: 100})
	u := signUp(t, w)
	file := u.storeFile(strings.Repeat("a", 60))
	wantRest := func(size, rest int) {
		t.Helper()
		resp := u.do(413, "POST", "/files/uploads", uploadOf(size))
		wantField(t, resp, "code", "too_large")
		if detail := resp.at("detail").(string); !strings.Contains(detail, fmt.Sprintf("have %d bytes of storage left", rest)) {
			t.Errorf("%s", detail)
		}
	}
	wantRest(41, 40)
	open := u.startUpload(40)
	wantRest(1, 0)
	u.do(200, "DELETE", open.Path(), nil) // gives its bytes back
	open = u.startUpload(30)
	u.send(200, open, strings.Repeat("b", 30))
	wantRest(11, 10)
	u.do(204, "DELETE", "/files/"+file.FileID.String(), nil)
	u.startUpload(70)
	signUp(t, w).startUpload(100) // the quota of another account
}

func TestAnAccountHasNoMoreFilesThanItsQuota(t *testing.T) {
	t.Parallel()
	u := signUp(t, quotaWorld(t, files.Quota{Bytes: 1 << 20, Files: 2}))
	file := u.storeFile("a")
	open := u.startUpload(10) // becomes the second file
	resp := u.do(429, "POST", "/files/uploads", uploadOf(1))
	wantField(t, resp, "code", "too_many_files")
	if resp.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	u.send(200, open, "0123456789")
	u.do(429, "POST", "/files/uploads", uploadOf(1))
	u.do(204, "DELETE", "/files/"+file.FileID.String(), nil)
	u.startUpload(1)
}

func TestAnAccountHasAtMostAHundredOpenUploads(t *testing.T) {
	t.Parallel()
	u := signUp(t, uploadWorld(t, upload.Config{}))
	var last *protocol.Upload
	for range 100 {
		last = u.startUpload(1)
	}
	wantField(t, u.do(429, "POST", "/files/uploads", uploadOf(1)), "code", "too_many_uploads")
	u.do(200, "DELETE", last.Path(), nil)
	u.startUpload(1)
}

func TestTwoUploadsNeverTakeTheSameRestOfAQuota(t *testing.T) {
	t.Parallel()
	w := quotaWorld(t, files.Quota{Bytes: 100, Files: 100})
	u := signUp(t, w)
	statuses := make([]int, 20)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() { statuses[i] = u.twin().do("POST", "/files/uploads", uploadOf(60)).status })
	}
	all.Wait()
	if slices.Sort(statuses); statuses[0] != 201 || statuses[1] != 413 || statuses[len(statuses)-1] != 413 {
		t.Errorf("%v", statuses)
	}
}

func TestAContentThatCannotBeReadHasNoHeadersOfTheFile(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	u := signUp(t, w)
	path := "/files/" + u.storeFile("0123456789").FileID.String() + "/content"
	truncated := 0
	err := filepath.WalkDir(w.database.ObjectFolder(t), func(at string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			truncated++
			err = os.Truncate(at, 0)
		}
		return err
	})
	if err != nil || truncated == 0 {
		t.Fatalf("%d objects were truncated: %v", truncated, err)
	}
	resp := u.do(503, "GET", path, nil)
	for _, name := range []string{"Content-Disposition", "Content-Length", "Accept-Ranges"} {
		if value := resp.header.Get(name); value != "" && value != fmt.Sprint(len(resp.body)) {
			t.Errorf("%s: %s", name, value)
		}
	}
}

func TestTheContentForAnUploadOfAnotherAccountIsNotRead(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c, stranger := w.client().register("a@example.com"), w.client().register("b@example.com")
	for what, id := range map[string]string{
		"foreign": stranger.startUpload(10).UploadID.String(), "missing": protocol.NewUploadID().String(),
		"malformed": "upl_x", "of another kind": protocol.DeriveFileID(protocol.NewUploadID()).String(),
	} {
		for _, encoding := range []string{"identity", "gzip"} {
			request := httptest.NewRequest("PUT", "https://"+w.BaseURL.Host+"/files/uploads/"+id+"/content", unreadBody{t})
			request.ContentLength = 10
			request.Header.Set("Content-Type", "text/plain")
			request.Header.Set("Content-Encoding", encoding)
			request.Header.Set(auth.CSRFHeader, c.csrf)
			request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: c.token()})
			recorder := httptest.NewRecorder()
			w.ServeHTTP(recorder, request)
			if recorder.Code != 404 {
				t.Errorf("%s, %s: %d %s", what, encoding, recorder.Code, recorder.Body)
			}
		}
	}
}

func TestAFileIsDeletedWhileItIsAddedToAProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := signUp(t, w)
	project := u.project("Kitchen")
	list := make([]listedFile, 10)
	for i := range list {
		list[i] = listedFile{name: "a", kind: protocol.FileText, size: 1}
	}
	u.storeRows(list)
	path := "/projects/" + project + "/files"
	var all sync.WaitGroup
	ask := func(method, path string, body route.Object, allowed ...int) {
		all.Go(func() {
			if resp := u.twin().do(method, path, body); !slices.Contains(allowed, resp.status) {
				t.Errorf("%s %s: %d %s", method, path, resp.status, resp.body)
			}
		})
	}
	for pair := range slices.Chunk(list, 2) { // more would wait for connections to the database, not for one another
		for _, f := range pair {
			ask("POST", path, route.Object{"file_id": f.id}, 200, 404)
			ask("DELETE", path+"/"+f.id, nil, 204, 404)
			ask("DELETE", "/files/"+f.id, nil, 204)
		}
		all.Wait()
	}
	wantField(t, u.do(200, "GET", "/projects/"+project, nil), "file_count", 0.0)
	wantField(t, u.do(200, "GET", path, nil), "data.0", nil)
}

func TestAnExportHasTheContentsOfFiles(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	u := signUp(t, w)
	file := u.storeFile("The tide comes in.")
	archive := u.do(200, "GET", "/account/export", nil).body
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"files/" + file.FileID.String(): "The tide comes in.", "files.json": `"path":"files/` + file.FileID.String() + `"`} {
		text, err := fs.ReadFile(files, path)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v", path, text, err)
		}
	}
}
