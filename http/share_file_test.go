package http

import (
	"context"
	"fmt"
	"io"
	stdhttp "net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnstone/actors/upload"
	"turnstone/http/route"
	"turnstone/persistence/files"
	"turnstone/protocol"
	"turnstone/protocol/idtest"
)

// attach makes files those of a stored message.
func (u *user) attach(message string, attached ...*protocol.File) {
	u.t.Helper()
	id := idtest.Parse[protocol.MessageID](u.t, message)
	for _, file := range attached {
		u.database.Admin(u.t, `update messages set attachments = attachments || $2::uuid where message_id = $1`, id, file.FileID)
		u.database.Admin(u.t, `insert into message_files (account_id, message_id, file_id) values ($1, $2, $3)`, u.account.AccountID, id, file.FileID)
	}
}

// named stores a file with a name.
func (u *user) named(name, content string) *protocol.File {
	u.t.Helper()
	file := u.storeFile(content)
	var renamed protocol.File
	u.expect(200, "PATCH", "/files/"+file.FileID.String(), route.Object{"filename": name}).into(u.t, &renamed)
	return &renamed
}

// sharedFiles is a conversation whose question has two files, and a share that carries the first one.
type sharedFiles struct {
	*world
	u                  *user
	conversation, path string
	messages           []string
	shown, hidden      *protocol.File
	created            decodedReply
	token, page        string
}

func shareFiles(t *testing.T, change ...func(*testConfig)) *sharedFiles {
	t.Helper()
	w := uploadWorld(t, upload.Config{}, change...)
	s := &sharedFiles{world: w, u: signUp(t, w)}
	s.conversation = s.u.conversation("Tides")
	s.path = "/conversations/" + s.conversation + "/shares"
	s.messages = s.u.storeMessages(s.conversation, "Read this.", "Done.", "And this.", "Done, too.")
	s.shown, s.hidden = s.u.named("tides 潮.txt", "0123456789"), s.u.named("canary-hidden.txt", "canary-content")
	s.u.attach(s.messages[0], s.shown, s.hidden)
	s.created = s.u.do(201, "POST", s.path, route.Object{"file_ids": []any{s.shown.FileID, s.shown.FileID}})
	s.token, s.page = sharedToken(t, s.created)
	return s
}

func (s *sharedFiles) file(n any) string { return fmt.Sprintf("/shared/%s/files/%v", s.token, n) }

func TestAShareCarriesTheChosenFilesAndNoOthers(t *testing.T) {
	t.Parallel()
	s := shareFiles(t)
	wantField(t, s.created, "file_ids.0", s.shown.FileID.String())
	wantField(t, s.created, "file_ids.1", nil)
	wantField(t, s.u.do(200, "GET", "/shares", nil), "data.0.file_ids.0", s.shown.FileID.String())
	s.u.do(200, "PATCH", "/files/"+s.shown.FileID.String(), route.Object{"filename": "canary-later.txt"}) // the snapshot keeps the name

	shared := s.anybody(200, "/shared/"+s.token)
	wantField(t, shared, "files.0.n", 1.0)
	wantField(t, shared, "files.0.filename", "tides 潮.txt")
	wantField(t, shared, "files.0.media_type", "text/plain")
	wantField(t, shared, "files.0.size", 10.0)
	wantField(t, shared, "files.1", nil)
	wantField(t, shared, "messages.0.attachments.0.n", 1.0)
	wantField(t, shared, "messages.0.attachments.1.n", nil)
	wantField(t, shared, "messages.0.attachments.2", nil)
	wantField(t, shared, "messages.1.attachments.0", nil)
	html := s.anybody(200, s.page)
	for _, want := range []string{`<a href="` + s.file(1) + `" download><bdi>tides 潮.txt</bdi></a> <small>10 bytes</small>`, "<small>File not shared</small>"} {
		if strings.Count(html.text, want) != 1 {
			t.Errorf("the page has not one %s: %s", want, html.text)
		}
	}
	for _, shown := range []decodedReply{shared, html} {
		if strings.Contains(shown.text, "canary") || anyIdentifier.MatchString(shown.text) {
			t.Errorf("it contains more than the share: %s", shown.text)
		}
	}

	content := s.anybody(200, s.file(1))
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Content-Disposition": "attachment; filename=\"tides _.txt\"; filename*=UTF-8''tides%20%E6%BD%AE.txt", "Content-Length": "10",
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow, noarchive", "Referrer-Policy": "no-referrer", "ETag": `"` + s.shown.SHA256 + `"`, "Accept-Ranges": "bytes",
	} {
		if got := content.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if content.text != "0123456789" || content.header.Get("Last-Modified") == "" {
		t.Errorf("%s %v", content.text, content.header)
	}
	for _, n := range []any{0, 2, 50, 51, -1, "x", "01", "1.0", "%31x", "99999999999999999999", s.hidden.FileID, s.shown.FileID} {
		missing := s.anybody(404, s.file(n))
		if unknown := s.anybody(404, "/shared/x/files/1"); !alike(missing.reply, unknown.reply) || !sameHeaders(missing.reply, unknown.reply) {
			t.Errorf("%v: %s %v, want %s %v", n, missing.text, missing.header, unknown.text, unknown.header)
		}
	}

	other, _ := sharedToken(t, s.u.do(201, "POST", s.path, route.Object{"message_id": s.messages[0], "file_ids": []any{s.hidden.FileID, s.shown.FileID}}))
	if first, second := s.anybody(200, "/shared/"+other+"/files/1").text, s.anybody(200, "/shared/"+other+"/files/2").text; first != "canary-content" || second != "0123456789" {
		t.Errorf("the files are %q and %q", first, second)
	}
	s.anybody(404, s.file(2)) // the other share does not add to this one
	none, _ := sharedToken(t, s.u.do(201, "POST", s.path, route.Object{}))
	wantField(t, s.anybody(200, "/shared/"+none), "messages.0.attachments.1.n", nil)
	s.anybody(404, "/shared/"+none+"/files/1")
}

func TestAFileOfAShareIsReadInRangesAndByHEAD(t *testing.T) {
	t.Parallel()
	s := shareFiles(t)
	whole := s.anybody(200, s.file(1))
	etag, modified := whole.header.Get("ETag"), whole.header.Get("Last-Modified")
	for _, tag := range []string{"", etag, modified} {
		part := s.anybody(206, s.file(1), "Range", "bytes=2-4", "If-Range", tag)
		if part.text != "234" || part.header.Get("Content-Range") != "bytes 2-4/10" || part.header.Get("ETag") != etag {
			t.Errorf("If-Range %s: %q %v", tag, part.text, part.header)
		}
	}
	for _, tag := range []string{`"other"`, "W/" + etag, "Thu, 01 Jan 1970 00:00:00 GMT", "x"} {
		if all := s.anybody(200, s.file(1), "Range", "bytes=2-4", "If-Range", tag); all.text != "0123456789" || all.header.Get("Content-Range") != "" {
			t.Errorf("If-Range %s: %q %v", tag, all.text, all.header)
		}
	}
	outside := s.anybody(416, s.file(1), "Range", "bytes=10-")
	if outside.header.Get("Content-Range") != "bytes */10" || outside.header.Get("ETag") != "" {
		t.Errorf("%v", outside.header)
	}
	s.anybody(416, s.file(1), "Range", "bytes=0-1,3-4")
	s.anybody(404, s.file(2), "If-None-Match", "*")
	head := s.client().expect(200, "HEAD", s.file(1), nil)
	if len(head.body) != 0 || head.header.Get("Content-Length") != "10" || head.header.Get("ETag") != etag || head.header.Get("Content-Disposition") != whole.header.Get("Content-Disposition") {
		t.Errorf("HEAD: %q %v", head.body, head.header)
	}
	s.client().expect(404, "HEAD", s.file(2), nil)
	own := s.u.do(206, "GET", "/files/"+s.shown.FileID.String()+"/content", nil, "Range", "bytes=0-0", "If-Range", etag)
	if own.text != "0" || own.header.Get("Last-Modified") != modified {
		t.Errorf("%q %v", own.text, own.header)
	}
}

func TestOnlyFilesOfTheSharedMessagesCanBeShared(t *testing.T) {
	t.Parallel()
	s := shareFiles(t)
	stranger := signUp(t, s.world)
	foreign, unused := stranger.storeFile("Foreign."), s.u.storeFile("Unused.")
	later, sibling := s.u.named("later.txt", "Later."), s.u.named("sibling.txt", "Sibling.")
	s.u.attach(s.messages[2], later)
	scanning := s.u.startUpload(10)
	ask := func(status int, ids ...any) decodedReply {
		t.Helper()
		return s.u.do(status, "POST", s.path, route.Object{"message_id": s.messages[1], "file_ids": ids})
	}
	missing := ask(404, protocol.DeriveFileID(protocol.NewUploadID()))
	for what, id := range map[string]protocol.FileID{"foreign": foreign.FileID, "of an upload that has not ended": protocol.DeriveFileID(scanning.UploadID)} {
		if refused := ask(404, s.shown.FileID, id); !alike(refused.reply, missing.reply) || !sameHeaders(refused.reply, missing.reply) {
			t.Errorf("%s: %s, missing: %s", what, refused.text, missing.text)
		}
	}
	for what, id := range map[string]protocol.FileID{"of no message": unused.FileID, "of a later message": later.FileID} {
		if refused := ask(422, s.shown.FileID, id); refused.at("errors.0.field") != "body.file_ids" {
			t.Errorf("%s: %s", what, refused.text)
		}
	}
	s.u.do(201, "POST", "/conversations/"+s.conversation+"/branches", route.Object{"message_id": s.messages[2], "mode": "edit"})
	edited := s.u.storeMessages(s.conversation, "Edited.", "Done again.")
	s.u.attach(edited[0], sibling)
	s.u.do(422, "POST", s.path, route.Object{"file_ids": []any{later.FileID}}) // on another branch
	s.u.do(422, "POST", s.path, route.Object{"message_id": s.messages[3], "file_ids": []any{sibling.FileID}})
	s.u.do(201, "POST", s.path, route.Object{"message_id": s.messages[3], "file_ids": []any{later.FileID}})
	s.u.do(201, "POST", s.path, route.Object{"file_ids": []any{sibling.FileID, s.shown.FileID}})

	many := make([]any, protocol.MaxSharedFiles+1)
	for i := range many {
		many[i] = s.shown.FileID
	}
	if refused := ask(422, many...); len(refused.text) > 1000 {
		t.Errorf("%s", refused.text)
	}
	ask(201, many[1:]...)
	ask(422, s.shown.FileID, "file_x")
	ask(422, nil)
	stranger.do(404, "POST", s.path, route.Object{"file_ids": []any{foreign.FileID}})
	s.u.do(204, "DELETE", "/files/"+s.hidden.FileID.String(), nil)
	if refused := ask(404, s.hidden.FileID); !alike(refused.reply, missing.reply) {
		t.Errorf("deleted: %s", refused.text)
	}
	if n := query[int64](s.world, `select count(*) from share_files w join files f using (account_id, file_id) where f.filename = 'Foreign.'`)[0]; n != 0 {
		t.Errorf("%d foreign files are shared", n)
	}
}

func TestThePreviewListsTheFilesThatCanBeShared(t *testing.T) {
	t.Parallel()
	s := shareFiles(t)
	later := s.u.named("later.txt", "Later.")
	s.u.attach(s.messages[2], later, s.shown)
	deleted := s.u.named("deleted.txt", "Deleted.")
	s.u.attach(s.messages[0], deleted)
	s.u.do(204, "DELETE", "/files/"+deleted.FileID.String(), nil)
	for query, want := range map[string][]*protocol.File{"?limit=1": {s.shown, s.hidden, later}, "?message_id=" + s.messages[1]: {s.shown, s.hidden}} {
		preview := s.u.do(200, "GET", s.path+"/preview"+query, nil)
		var decoded protocol.SharePreview
		preview.into(t, &decoded)
		if len(decoded.Files) != len(want) || decoded.FileCount != len(want) {
			t.Fatalf("%s: %+v", query, decoded.Files)
		}
		for i, file := range decoded.Files {
			if file != (protocol.ShareableFile{FileID: want[i].FileID, Filename: want[i].Filename, MediaType: "text/plain", Size: want[i].Size}) {
				t.Errorf("%s: %+v, want %+v", query, file, want[i])
			}
		}
		wantField(t, preview, "data.0.attachments.2.n", nil)
		if len(decoded.Data[0].Attachments) != 3 {
			t.Errorf("%+v", decoded.Data[0])
		}
	}
	first := s.u.do(200, "GET", s.path+"/preview?limit=1", nil)
	wantField(t, s.u.do(200, "GET", s.path+"/preview?limit=1&cursor="+first.at("next_cursor").(string), nil), "files.0", nil)
}

func TestADeletedFileIsInNoShareAnyMore(t *testing.T) {
	t.Parallel()
	s := shareFiles(t)
	s.anybody(200, s.page) // cached
	unknown := s.anybody(404, "/shared/x/files/1")
	s.u.do(204, "DELETE", "/files/"+s.shown.FileID.String(), nil)
	s.u.do(200, "GET", "/files/"+s.shown.FileID.String()+"/content", nil) // the message has it
	if gone := s.anybody(404, s.file(1)); !alike(gone.reply, unknown.reply) {
		t.Errorf("%s", gone.text)
	}
	shared, html := s.anybody(200, "/shared/"+s.token), s.anybody(200, s.page)
	wantField(t, shared, "files.0", nil)
	wantField(t, shared, "messages.0.attachments.0.n", nil)
	wantField(t, shared, "messages.0.attachments.1.n", nil)
	if strings.Contains(html.text, "tides") || strings.Count(html.text, "File not shared") != 2 || strings.Contains(shared.text, "tides") {
		t.Errorf("%s %s", shared.text, html.text)
	}
	wantField(t, s.u.do(200, "GET", "/shares", nil), "data.0.file_ids.0", nil)
}

func TestTheFilesOfAShareEndWithIt(t *testing.T) {
	t.Parallel()
	s := shareFiles(t)
	unknown := s.anybody(404, "/shared/sh1_"+strings.Repeat("A", 43)+"/files/1")
	check := func(what string) {
		t.Helper()
		for _, headers := range [][]string{nil, {"Range", "bytes=0-1"}, {"Range", "bytes=99-"}, {"If-None-Match", "*"}, {"If-Modified-Since", "Thu, 01 Jan 2099 00:00:00 GMT"}} {
			if got := s.anybody(404, s.file(1), headers...); !alike(got.reply, unknown.reply) || !sameHeaders(got.reply, unknown.reply) {
				t.Errorf("%s: %s %v", what, got.text, got.header)
			}
		}
		s.client().expect(404, "HEAD", s.file(1), nil)
	}
	again := func() {
		t.Helper()
		s.created = s.u.do(201, "POST", s.path, route.Object{"file_ids": []any{s.shown.FileID}})
		s.token, s.page = sharedToken(t, s.created)
		s.anybody(200, s.file(1))
	}
	s.u.do(204, "DELETE", "/shares/"+s.created.at("share_id").(string), nil)
	check("revoked")
	if n := query[int64](s.world, `select count(*) from share_files`)[0]; n != 0 {
		t.Errorf("%d files are left", n)
	}
	again()
	s.database.Admin(t, `update shares set expires_at = now()`)
	check("expired")
	again()
	s.database.Admin(t, `update accounts set disabled_at = now()`)
	check("of a disabled account")
	s.database.Admin(t, `update accounts set disabled_at = null`)
	s.anybody(200, s.file(1))
	s.u.do(204, "DELETE", "/conversations/"+s.conversation, nil)
	check("of a deleted conversation")
}

func TestALostContentOfASharedFileIsUnavailable(t *testing.T) {
	t.Parallel()
	s := shareFiles(t)
	err := filepath.WalkDir(s.database.ObjectFolder(t), func(at string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			err = os.Remove(at)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lost := s.anybody(503, s.file(1))
	for _, name := range []string{"Content-Disposition", "Accept-Ranges", "ETag", "Last-Modified"} {
		if lost.header.Get(name) != "" {
			t.Errorf("%s: %s", name, lost.header.Get(name))
		}
	}
	if lost.header.Get("Retry-After") == "" || strings.Contains(lost.text, s.shown.FileID.String()) {
		t.Errorf("%v %s", lost.header, lost.text)
	}
	s.client().expect(503, "HEAD", s.file(1), nil)
}

func TestDownloadsOfSharesAreLimited(t *testing.T) {
	t.Parallel()
	s := shareFiles(t)
	s.limiter.Drawn()
	s.u.do(200, "GET", s.file(1), nil) // with a session and a known device
	s.client().at("2001:db8::1").expect(404, "GET", s.file(9), nil)
	if drawn := strings.Join(s.limiter.Drawn(), ", "); drawn != "shared 192.0.2.1, shared 2001:db8::/64" {
		t.Errorf("drawn %s", drawn)
	}
	s.limiter.Refuse()
	wantField(t, s.anybody(429, s.file(1)), "code", "rate_limited")
	s.limiter.BreakDown()
	s.anybody(503, s.file(1))
}

// stuckFiles are files whose contents stop after their first byte, until their readers leave.
type stuckFiles struct {
	*files.Store
	reading chan struct{}
}

func (f stuckFiles) Open(ctx context.Context, _ protocol.AccountID, _ protocol.FileID, _, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader("0"), stuck{ctx, f.reading})), nil
}

type stuck struct {
	ctx     context.Context // of the download
	reading chan struct{}
}

func (s stuck) Read([]byte) (int, error) {
	s.reading <- struct{}{}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func TestADownloadEndsWithItsShare(t *testing.T) {
	t.Parallel()
	const most = 8 // of one address
	reading, aborted := make(chan struct{}), make(chan any)
	s := shareFiles(t)
	s.shares.Files = stuckFiles{s.DB.Files, reading}
	s.shares.Recheck = time.Millisecond
	for range most {
		go func() {
			defer func() { aborted <- recover() }()
			s.client().do("GET", s.file(1), nil)
		}()
		<-reading
	}
	refused := s.anybody(429, s.file(1))
	wantField(t, refused, "code", "too_many_requests")
	if refused.header.Get("Retry-After") == "" {
		t.Errorf("%v", refused.header)
	}
	s.client().at("2001:db8::1").expect(404, "GET", s.file(2), nil)
	select {
	case cause := <-aborted:
		t.Fatalf("a download of a share that exists ended: %v", cause)
	default:
	}
	s.u.do(204, "DELETE", "/shares/"+s.created.at("share_id").(string), nil)
	for range most {
		if cause := <-aborted; cause != stdhttp.ErrAbortHandler {
			t.Errorf("a download ended with %v", cause)
		}
	}
	s.anybody(404, s.file(1)) // no slot is taken any more
}
