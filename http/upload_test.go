package http

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	stdhttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/actors/upload"
	"turnstone/http/auth"
	"turnstone/http/route"
	"turnstone/persistence/files"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/uploadlog"
	"turnstone/providers/model/scripted"
	"turnstone/providers/scanner/scannertest"
	"turnstone/providers/scanner/signatures"
)

// uploadWorld returns a world whose node receives files.
func uploadWorld(t *testing.T, with upload.Config, change ...func(*testConfig)) *world {
	t.Helper()
	return newWorld(t, append(change, func(c *testConfig) {
		c.uploads = with
		c.Turns = nodeOn(t, c, scripted.New(scripted.Options{}), nil, func() { t.Error("the node was fenced") })
	})...)
}

// startUpload creates an upload for a text.
func (c *client) startUpload(size int, more ...string) *protocol.Upload {
	c.t.Helper()
	body := route.Object{"filename": "a.txt", "media_type": "text/plain", "size": size, "purpose": "library"}
	for i := 0; i < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	var made protocol.Upload
	c.expect(201, "POST", "/files/uploads", body).into(c.t, &made)
	return &made
}

func contentPath(u *protocol.Upload) string { return u.Path() + "/content" }

// send sends a content with one request.
func (c *client) send(status int, u *protocol.Upload, content string, headers ...string) *reply {
	c.t.Helper()
	return c.expect(status, "PUT", contentPath(u), rawBody(content), append([]string{"Content-Type", "text/plain"}, headers...)...)
}

func (c *client) upload(u *protocol.Upload) *protocol.Upload {
	c.t.Helper()
	var current protocol.Upload
	c.expect(200, "GET", u.Path(), nil).into(c.t, &current)
	return &current
}

// storeFile uploads a text and returns its file.
func (c *client) storeFile(content string) *protocol.File {
	c.t.Helper()
	var ready protocol.Upload
	c.send(200, c.startUpload(len(content)), content).into(c.t, &ready)
	if ready.State != protocol.UploadReady {
		c.t.Fatalf("%+v", ready)
	}
	var file protocol.File
	c.expect(200, "GET", "/files/"+ready.FileID.String(), nil).into(c.t, &file)
	return &file
}

func TestAnArchivedProjectHasNoUploads(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	var project protocol.Project
	c.expect(201, "POST", "/projects", route.Object{"name": "Tides"}).into(t, &project)
	path := "/projects/" + project.ProjectID.String()
	into := []string{"purpose", "project", "project_id", project.ProjectID.String()}
	ready := c.startUpload(5, into...)
	c.send(200, ready, "tides")
	first, second, elsewhere := c.startUpload(5, into...), c.startUpload(5, into...), c.startUpload(5)
	// An outdated version cancels nothing.
	c.expect(409, "PUT", path+"/archive", route.Object{"archived": true, "version": project.Version + 9})
	if u := c.upload(first); u.State != protocol.UploadPending {
		t.Errorf("%+v", u)
	}
	c.expect(200, "GET", path, nil).into(t, &project)
	c.expect(200, "PUT", path+"/archive", route.Object{"archived": true, "version": project.Version}).into(t, &project)
	if project.State != protocol.ProjectArchived || project.FileCount != 1 {
		t.Errorf("%+v", project)
	}
	for u, want := range map[*protocol.Upload]protocol.UploadState{
		ready: protocol.UploadReady, first: protocol.UploadCancelled, second: protocol.UploadCancelled, elsewhere: protocol.UploadPending,
	} {
		if now := c.upload(u); now.State != want {
			t.Errorf("%+v, want %s", now, want)
		}
	}
	c.send(409, first, "tides")
	c.expect(200, "PUT", path+"/archive", route.Object{"archived": false, "version": project.Version})
	c.send(200, elsewhere, "tides")
}

func TestAnArchiveCancelsAnUploadWhoseContentIsBeingReceived(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	server := httptest.NewServer(w)
	defer server.Close()
	var project protocol.Project
	c.expect(201, "POST", "/projects", route.Object{"name": "Tides"}).into(t, &project)
	u, conn := c.halfUpload(server.Listener.Addr().String(), "purpose", "project", "project_id", project.ProjectID.String())
	c.expect(200, "PUT", "/projects/"+project.ProjectID.String()+"/archive", route.Object{"archived": true, "version": project.Version})
	if status := statusOf(t, conn); status != "409" {
		t.Errorf("the writer gets %s", status)
	}
	_ = conn.Close()
	if now := c.upload(u); now.State != protocol.UploadCancelled {
		t.Errorf("%+v", now)
	}
}

func TestAContentIsReceivedScannedAndDownloaded(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	content := strings.Repeat("Tides come twice a day. ", 10_000)
	u := c.startUpload(len(content), "filename", "../潮汐\u202e.txt", "sha256", fmt.Sprintf("%X", sha256.Sum256([]byte(content))))
	if u.State != protocol.UploadPending || u.Filename != ".._潮汐.txt" || u.LastSequence != 1 || !u.ExpiresAt.Equal(u.CreatedAt.Add(time.Hour)) {
		t.Errorf("%+v", u)
	}
	var ready protocol.Upload
	c.send(200, u, content).into(t, &ready)
	if ready.State != protocol.UploadReady || ready.ReceivedBytes != int64(len(content)) || ready.FileID == nil || *ready.FileID != protocol.DeriveFileID(u.UploadID) {
		t.Fatalf("%+v", ready)
	}
	events := string(c.expect(200, "GET", u.Path()+"/events", nil).body)
	if !strings.Contains(events, "event: upload.finished") || !strings.Contains(events, fmt.Sprintf("id: %d\n", ready.LastSequence)) {
		t.Errorf("%s", events)
	}
	c.expect(204, "GET", u.Path()+"/events", nil, "Last-Event-ID", fmt.Sprint(ready.LastSequence))
	c.expect(422, "GET", u.Path()+"/events?after=x", nil)
	path := "/files/" + ready.FileID.String()
	var file protocol.File
	resp := c.expect(200, "GET", path, nil)
	resp.into(t, &file)
	hash := sha256.Sum256([]byte(content))
	if file.SHA256 != hex.EncodeToString(hash[:]) || file.MediaType != "text/plain" || file.Kind != protocol.FileText || file.Scan.Engine != (signatures.Scanner{}).Engine() ||
		resp.header.Get("ETag") != `"v1"` {
		t.Errorf("%+v", file)
	}
	whole := c.expect(200, "GET", path+"/content", nil)
	for name, want := range map[string]string{
		"Content-Disposition": "attachment; filename=..___.txt; filename*=UTF-8''.._%E6%BD%AE%E6%B1%90.txt", "Content-Type": "text/plain; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
		"Cache-Control": "no-store", "Content-Length": fmt.Sprint(len(content)), "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := whole.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if string(whole.body) != content {
		t.Error("the content has changed")
	}
	if left := w.objectKeys("q/"); len(left) != 1 {
		t.Errorf("before the reaper: %v", left)
	}
	if err := w.DB.Uploads.Reap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := w.objectKeys("q/"); len(left) != 0 {
		t.Errorf("in quarantine: %v", left)
	}
}

// objectKeys returns the keys in the object store that start with a prefix.
func (w *world) objectKeys(prefix string) (keys []string) {
	w.t.Helper()
	found, err := w.database.Objects(w.t).List(w.t.Context(), prefix, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, one := range found {
		keys = append(keys, one.Key)
	}
	return keys
}

func TestARangeOfAFileIsDownloaded(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	path := "/files/" + c.storeFile("0123456789").FileID.String() + "/content"
	for header, want := range map[string]string{
		"bytes=0-4": "01234 bytes 0-4/10", "bytes=5-": "56789 bytes 5-9/10", "bytes=-3": "789 bytes 7-9/10", "bytes=8-100": "89 bytes 8-9/10",
		"bytes=-100": "0123456789 bytes 0-9/10", "bytes= 1-1": "1 bytes 1-1/10",
	} {
		resp := c.expect(206, "GET", path, nil, "Range", header)
		if got := string(resp.body) + " " + resp.header.Get("Content-Range"); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	for _, header := range []string{"bytes=10-", "bytes=4-3", "bytes=-0", "bytes=0-1,3-4", "bytes=a-b", "bytes=-", "bytes=1", "bytes=99999999999999999999-"} {
		if resp := c.expect(416, "GET", path, nil, "Range", header); resp.Code != protocol.CodeRange || resp.header.Get("Content-Range") != "bytes */10" {
			t.Errorf("%s: %s %v", header, resp.body, resp.header)
		}
	}
	c.expect(200, "GET", path, nil, "Range", "lines=1-2")
}

func TestADownloadHasValidatorsAndHonoursThem(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	file := c.storeFile("0123456789")
	path := "/files/" + file.FileID.String() + "/content"
	whole := c.expect(200, "GET", path, nil)
	etag, modified := whole.header.Get("ETag"), whole.header.Get("Last-Modified")
	if etag != `"`+file.SHA256+`"` || modified != file.CreatedAt.UTC().Format(stdhttp.TimeFormat) {
		t.Fatalf("%v", whole.header)
	}
	later := file.CreatedAt.Add(time.Hour).UTC().Format(stdhttp.TimeFormat)
	const ranged = "bytes=0-4"
	for _, request := range []struct {
		status  int
		headers []string
	}{
		{200, []string{"If-None-Match", etag}}, // there is no 304
		{206, []string{"Range", ranged, "If-Range", etag}},
		{206, []string{"Range", ranged, "If-Range", modified}},
		{200, []string{"Range", ranged, "If-Range", "W/" + etag}},
		{200, []string{"Range", ranged, "If-Range", `"other"`}},
		{200, []string{"Range", ranged, "If-Range", later}},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			resp := c.expect(request.status, method, path, nil, request.headers...)
			if resp.header.Get("ETag") != etag || resp.header.Get("Last-Modified") != modified {
				t.Errorf("%s %v: %q %v", method, request.headers, resp.body, resp.header)
			}
		}
	}
	if refused := c.expect(416, "GET", path, nil, "Range", "bytes=99-"); refused.header.Get("ETag") != "" {
		t.Errorf("an error has the ETag of the file: %v", refused.header)
	}
}

func TestAnUploadIsRefusedBeforeItStarts(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{}, func(c *testConfig) { c.MaxUploadBytes = 1000 })
	c := w.client().register("a@example.com")
	foreign := w.client().register("b@example.com")
	var project protocol.Project
	foreign.expect(201, "POST", "/projects", route.Object{"name": "Theirs"}).into(t, &project)
	for _, one := range []struct {
		field  string
		value  any
		status int
	}{
		{"size", 0, 422},
		{"size", -1, 422},
		{"size", 1001, 413},
		{"filename", "...", 422},
		{"filename", strings.Repeat("a", 300), 422},
		{"media_type", "text/", 422},
		{"media_type", "application/x-msdownload", 415},
		{"media_type", "image/vnd.adobe.photoshop", 415},
		{"sha256", "abc", 422},
		{"purpose", "fun", 422},
		{"purpose", "project", 422}, // without a project
		{"project_id", project.ProjectID.String(), 404},
		{"project_id", protocol.NewProjectID().String(), 404},
		{"conversation_id", protocol.NewConversationID().String(), 404},
	} {
		body := route.Object{"filename": "a.txt", "media_type": "text/plain", "size": 10, "purpose": "library"}
		body[one.field] = one.value
		c.expect(one.status, "POST", "/files/uploads", body)
	}
	if made := query[int64](w, `select count(*) from uploads`); made[0] != 0 {
		t.Errorf("%d sessions exist", made[0])
	}
}

func TestAContentThatIsRefusedLeavesItsSessionUsable(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	hash := sha256.Sum256([]byte("0123456789"))
	u := c.startUpload(10, "sha256", hex.EncodeToString(hash[:]))
	for _, one := range []struct {
		what    string
		status  int
		content string
		headers []string
		failure protocol.UploadFailureCode // empty: the body was not read
	}{
		{"compressed", 415, "0123456789", []string{"Content-Encoding", "gzip"}, ""},
		{"a part", 400, "0123456789", []string{"Content-Range", "bytes 0-9/10"}, ""},
		{"another type", 415, "0123456789", []string{"Content-Type", "application/pdf"}, ""},
		{"no type", 415, "0123456789", []string{"Content-Type", ""}, ""},
		{"longer", 413, "0123456789x", nil, ""},
		{"shorter", 400, "012345678", nil, ""},
		{"empty", 400, "", nil, ""},
		{"another hash", 400, "9876543210", nil, protocol.UploadHashMismatch},
	} {
		resp := c.send(one.status, u, one.content, one.headers...)
		current := c.upload(u)
		if current.State != protocol.UploadPending || current.ReceivedBytes != 0 || one.failure != "" && current.Failure.Code != one.failure {
			t.Errorf("%s: %s leaves %+v", one.what, resp.body, current)
		}
	}
	var ready protocol.Upload
	c.send(200, u, "0123456789", "Content-Type", "application/octet-stream").into(t, &ready)
	if ready.State != protocol.UploadReady {
		t.Errorf("%+v", ready)
	}
	if resp := c.send(409, u, "0123456789"); resp.Code != protocol.CodeUploadFinished {
		t.Errorf("%s", resp.body)
	}
	c.expect(409, "DELETE", u.Path(), nil)
	if keys := w.objectKeys("f/"); len(keys) != 1 {
		t.Errorf("%v", keys)
	}
}

func TestACancelledOrExpiredUploadTakesNoContent(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	u := c.startUpload(10)
	c.expect(200, "DELETE", u.Path(), nil)
	for _, method := range []string{"PUT", "DELETE"} {
		if resp := c.expect(409, method, map[string]string{"PUT": contentPath(u), "DELETE": u.Path()}[method], rawBody("0123456789"), "Content-Type", "text/plain"); resp.Code != protocol.CodeUploadFinished {
			t.Errorf("%s: %s", method, resp.body)
		}
	}
	u = c.startUpload(10)
	w.database.Admin(t, `update uploads set expires_at = now() - interval '1 second' where upload_id = $1`, u.UploadID)
	if current := c.upload(u); current.State != protocol.UploadExpired {
		t.Errorf("%+v", current)
	}
	c.send(410, u, "0123456789")
	c.expect(410, "DELETE", u.Path(), nil)
	// The stream ends with the session, which a lease round ends.
	if events := c.expect(200, "GET", u.Path()+"/events?after=0", nil, "Accept", "text/event-stream").body; !strings.Contains(string(events), `"state":"expired"`) {
		t.Errorf("%s", events)
	}
	if totals := query[string](w, `select format('%s %s %s %s', bytes, files, reserved, sessions) from file_totals`); !slices.Equal(totals, []string{"0 0 0 0"}) {
		t.Errorf("%v", totals)
	}
}

// eicar returns the content that every scanner for malware finds.
func eicar() string {
	reversed := []byte(`*H+H$!ELIF-TSET-SURIVITNA-DRADNATS-RACIE$}7)CC7)^P(45XZP\4[PA@%P!O5X`)
	slices.Reverse(reversed)
	return string(reversed)
}

func TestMalwareInQuarantineCountsForTheQuota(t *testing.T) {
	t.Parallel()
	w := quotaWorld(t, files.Quota{Bytes: 100, Files: 100})
	u := signUp(t, w)
	rejected := u.startUpload(len(eicar()))
	u.send(200, rejected, eicar())
	resp := u.do(413, "POST", "/files/uploads", uploadOf(101-len(eicar())))
	if detail := resp.at("detail").(string); !strings.Contains(detail, fmt.Sprintf("Rejected uploads take up %d bytes for up to 7 days.", len(eicar()))) {
		t.Error(detail)
	}
	w.database.Admin(t, `update uploads set reap_at = now() where state = 'rejected'`)
	if err := w.DB.Uploads.Reap(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.startUpload(100)
}

func TestMalwareIsNeverReadable(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	u := c.startUpload(len(eicar()))
	var rejected protocol.Upload
	c.send(200, u, eicar()).into(t, &rejected)
	if rejected.State != protocol.UploadRejected || rejected.FileID != nil || rejected.Failure.Code != protocol.UploadMalware {
		t.Fatalf("%+v", rejected)
	}
	c.expect(404, "GET", "/files/"+protocol.DeriveFileID(u.UploadID).String()+"/content", nil)
	if published, kept := w.objectKeys("f/"), w.objectKeys("q/"); len(published) != 0 || len(kept) != 1 {
		t.Errorf("published %v, in quarantine %v", published, kept)
	}
	if err := w.DB.Uploads.Reap(t.Context()); err != nil || len(w.objectKeys("q/")) != 1 {
		t.Errorf("the quarantine ends too early: %v", err)
	}
	w.database.Admin(t, `update uploads set reap_at = now()`)
	if err := w.DB.Uploads.Reap(t.Context()); err != nil || len(w.objectKeys("q/")) != 0 {
		t.Errorf("the quarantine does not end: %v", err)
	}
	if !slices.Contains(w.events(c.account.AccountID), "file.infected") {
		t.Errorf("the audit has %v", w.events(c.account.AccountID))
	}
}

// unreadBody fails the test if it is read.
type unreadBody struct{ t *testing.T }

func (r unreadBody) Read([]byte) (int, error) {
	r.t.Error("the body was read")
	return 0, io.EOF
}

func TestWhileADependencyIsDownTheBodyIsNotRead(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, with := range map[string]upload.Config{
		"scanner": {Scanner: &scannertest.Fake{NotReady: down}}, "disk": {Guard: func() error { return &protocol.Error{Code: protocol.CodeUnavailable, Detail: "The disk is full."} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := uploadWorld(t, with)
			c := w.client().register("a@example.com")
			if with.Guard != nil { // it refuses the session too
				c.expect(503, "POST", "/files/uploads", route.Object{"filename": "a.txt", "media_type": "text/plain", "size": 10, "purpose": "library"})
				return
			}
			u := c.startUpload(10)
			request := httptest.NewRequest("PUT", "https://"+w.BaseURL.Host+contentPath(u), unreadBody{t})
			request.ContentLength = 10
			request.Header.Set("Content-Type", "text/plain")
			request.Header.Set(auth.CSRFHeader, c.csrf)
			request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: c.token()})
			recorder := httptest.NewRecorder()
			w.ServeHTTP(recorder, request)
			if recorder.Code != 503 || recorder.Header().Get("Retry-After") == "" || c.upload(u).State != protocol.UploadPending {
				t.Errorf("%d %s", recorder.Code, recorder.Body)
			}
		})
	}
}

func TestAScanIsRepeatedUntilThereIsAVerdict(t *testing.T) {
	t.Parallel()
	scanner := &scannertest.Fake{Results: make(chan error, 3)}
	scanner.Results <- errors.New("the daemon has ended")
	scanner.Results <- &protocol.Error{Code: protocol.CodeUnavailable}
	scanner.Results <- nil
	w := uploadWorld(t, upload.Config{Scanner: scanner})
	c := w.client().register("a@example.com")
	var ready protocol.Upload
	c.send(200, c.startUpload(10), "0123456789").into(t, &ready)
	if ready.State != protocol.UploadReady {
		t.Errorf("%+v", ready)
	}
}

// countingScanner counts the scans that run at the same time.
type countingScanner struct {
	scannertest.Fake
	running atomic.Int64
	changes clocktest.Changes // of running
}

func (s *countingScanner) Scan(ctx context.Context, body io.Reader, size int64) (protocol.ScanVerdict, error) {
	s.running.Add(1)
	defer s.running.Add(-1)
	s.changes.Notify()
	return s.Fake.Scan(ctx, body, size)
}

// A scan of a content that is being received takes as long as its client. Further contents are scanned after their transfer.
func TestSlowClientsDoNotOccupyTheScanner(t *testing.T) {
	t.Parallel()
	const clients, each, limit = 2, 20, 32
	scanner := &countingScanner{}
	w := uploadWorld(t, upload.Config{Scanner: scanner})
	server := httptest.NewServer(w)
	defer server.Close()
	var last net.Conn
	for n := range clients {
		c := w.client().register(fmt.Sprintf("a%d@example.com", n))
		for range each {
			_, conn := c.halfUpload(server.Listener.Addr().String())
			defer func() { _ = conn.Close() }()
			last = conn
		}
	}
	_, _ = io.WriteString(last, "56789")
	if status := statusOf(t, last); status != "200" {
		t.Errorf("the last client gets %s", status)
	}
	scanner.changes.Await(t, "every slot of the scanner is used", func() bool { return scanner.running.Load() >= limit })
	if running := scanner.running.Load(); running != limit { // that of the last client has ended
		t.Errorf("%d contents are scanned, want %d", running, limit)
	}
}

func TestTheSameKeyCreatesOneSession(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	body := route.Object{"filename": "a.txt", "media_type": "text/plain", "size": 10, "purpose": "library"}
	var all sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		all.Go(func() {
			if resp := c.twin().do("POST", "/files/uploads", body, keyField, "k"); resp.status == 201 {
				var made protocol.Upload
				resp.into(t, &made)
				ids[i] = made.UploadID.String()
			} else {
				t.Errorf("%d %s", resp.status, resp.body)
			}
		})
	}
	all.Wait()
	if slices.Sort(ids); len(slices.Compact(ids)) != 1 {
		t.Errorf("%v", ids)
	}
	body["size"] = 11
	var problem struct{ Current protocol.Upload }
	resp := c.expect(409, "POST", "/files/uploads", body, keyField, "k")
	resp.into(t, &problem)
	if resp.Code != protocol.CodeIdempotencyReused || problem.Current.UploadID.String() != ids[0] {
		t.Errorf("%s", resp.body)
	}
}

// rawUpload sends the head of a request with a content over a new connection.
func (c *client) rawUpload(address string, u *protocol.Upload, length string) net.Conn {
	c.t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nCookie: %s=%s\r\n%s: %s\r\nContent-Type: text/plain\r\n%s\r\n\r\n",
		contentPath(u), c.BaseURL.Host, c.cookieName(), c.token(), auth.CSRFHeader, c.csrf, length)
	if err != nil {
		c.t.Fatal(err)
	}
	return conn
}

// halfUpload starts an upload of 10 bytes, sends the first half of its content, and waits until the service receives it.
func (c *client) halfUpload(address string, more ...string) (*protocol.Upload, net.Conn) {
	c.t.Helper()
	u := c.startUpload(10, more...)
	conn := c.rawUpload(address, u, "Content-Length: 10")
	if _, err := io.WriteString(conn, "01234"); err != nil {
		c.t.Fatal(err)
	}
	c.changes.Await(c.t, "the content is being received", func() bool { return c.upload(u).State == protocol.UploadReceiving })
	return u, conn
}

func statusOf(t *testing.T, conn net.Conn) string {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(testTimeout))
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, status); err != nil {
		t.Fatalf("no response: %v", err)
	}
	return string(status[len("HTTP/1.1 "):])
}

func TestAChunkedBodyOfAnotherSizeIsRefused(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	server := httptest.NewServer(w)
	defer server.Close()
	u := c.startUpload(10)
	for _, one := range []struct{ body, status string }{
		{"b\r\n0123456789x\r\n0\r\n\r\n", "413"},
		{"5\r\n01234\r\n6\r\n56789x\r\n0\r\n\r\n", "413"},
		{"9\r\n012345678\r\n0\r\n\r\n", "400"},
		{"0\r\n\r\n", "400"},
		{"zz\r\n0123456789", "400"},
		{"a\r\n0123456789\r\n0\r\n\r\n", "200"},
	} {
		conn := c.rawUpload(server.Listener.Addr().String(), u, "Transfer-Encoding: chunked")
		if _, err := io.WriteString(conn, one.body); err != nil {
			t.Fatal(err)
		}
		if status := statusOf(t, conn); status != one.status {
			t.Errorf("%q: %s, want %s", one.body, status, one.status)
		}
		_ = conn.Close()
	}
	if current := c.upload(u); current.State != protocol.UploadReady {
		t.Errorf("%+v", current)
	}
}

// cuts is the number of connections that are cut.
const cuts = 500

func TestAConnectionThatEndsAtAnyByteLeavesTheSessionUsable(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	var closed atomic.Int64 // connections
	var changes clocktest.Changes
	server := httptest.NewUnstartedServer(w)
	server.Config.ConnState = func(_ net.Conn, state stdhttp.ConnState) {
		if state == stdhttp.StateClosed {
			closed.Add(1)
			changes.Notify()
		}
	}
	server.Start()
	defer server.Close()
	content := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	random := rand.New(rand.NewPCG(1, 2))
	u := c.startUpload(len(content))
	for n := range int64(cuts) {
		conn := c.rawUpload(server.Listener.Addr().String(), u, fmt.Sprintf("Content-Length: %d", len(content)))
		_, _ = conn.Write(content[:random.IntN(len(content))])
		_ = conn.Close()
		changes.Await(t, "the request has ended", func() bool { return closed.Load() > n })
		if current := c.upload(u); current.State != protocol.UploadPending || current.ReceivedBytes != 0 {
			t.Fatalf("after cut %d: %+v", n+1, current)
		}
	}
	conn := c.rawUpload(server.Listener.Addr().String(), u, fmt.Sprintf("Content-Length: %d", len(content)))
	_, _ = conn.Write(content)
	if status := statusOf(t, conn); status != "200" {
		t.Errorf("the whole content gets %s", status)
	}
	_ = conn.Close()
	if states := query[string](w, `select distinct state from uploads`); !slices.Equal(states, []string{"ready"}) {
		t.Errorf("%v", states)
	}
}

func TestASecondWriterIsRefusedAndTheFirstContinues(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	server := httptest.NewServer(w)
	defer server.Close()
	u, first := c.halfUpload(server.Listener.Addr().String())
	if resp := c.send(409, u, "0123456789"); resp.Code != protocol.CodeConflict || !strings.Contains(string(resp.body), `"state":"receiving"`) {
		t.Errorf("%s", resp.body)
	}
	_, _ = io.WriteString(first, "56789")
	if status := statusOf(t, first); status != "200" {
		t.Errorf("the first writer gets %s", status)
	}
	_ = first.Close()
}

func TestACancelEndsAReceptionAtOnce(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	server := httptest.NewServer(w)
	defer server.Close()
	u, conn := c.halfUpload(server.Listener.Addr().String())
	c.expect(200, "DELETE", u.Path(), nil)
	if status := statusOf(t, conn); status != "409" {
		t.Errorf("the writer gets %s", status)
	}
	_ = conn.Close()
}

func TestDifferencesBetweenRowsAndObjectsAreFound(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	kept, lost := c.storeFile("Kept."), c.storeFile("Lost.")
	store := w.database.Objects(t)
	name := query[string](w, `select object_name from files where file_id = $1`, lost.FileID)[0]
	if err := store.Delete(t.Context(), uploadlog.ObjectKey(c.account.AccountID, name)); err != nil {
		t.Fatal(err)
	}
	orphan := uploadlog.ObjectKey(c.account.AccountID, "00000000000000000000000000000000")
	if _, err := store.Put(t.Context(), orphan, strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		in   time.Duration // from now
		want files.Differences
	}{{0, files.Differences{Missing: 1}}, {9 * 24 * time.Hour, files.Differences{Orphans: 1, Missing: 1}}} {
		if found, err := w.DB.Files.Reconcile(t.Context(), time.Now().Add(step.in)); err != nil || found != step.want {
			t.Errorf("in %s: %+v, %v", step.in, found, err)
		}
	}
	if _, err := store.Stat(t.Context(), orphan); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("the orphan: %v", err)
	}
	c.expect(200, "GET", "/files/"+kept.FileID.String()+"/content", nil)
	c.expect(503, "GET", "/files/"+lost.FileID.String()+"/content", nil)
	if !slices.Contains(w.events(c.account.AccountID), "integrity.missing_object") {
		t.Errorf("the audit has %v", w.events(c.account.AccountID))
	}
}

func TestOneOfSeveralCancelsEndsAnUpload(t *testing.T) {
	t.Parallel()
	w := uploadWorld(t, upload.Config{})
	c := w.client().register("a@example.com")
	for range 20 {
		u := c.startUpload(10)
		statuses := make([]int, 6)
		var all sync.WaitGroup
		for i := range statuses {
			device := c.twin()
			all.Go(func() { statuses[i] = device.do("DELETE", u.Path(), nil).status })
		}
		all.Wait()
		slices.Sort(statuses)
		if !slices.Equal(statuses, []int{200, 409, 409, 409, 409, 409}) {
			t.Errorf("the responses are %v", statuses)
		}
		if current := c.upload(u); current.State != protocol.UploadCancelled {
			t.Errorf("%+v", current)
		}
	}
}

// overtakenStore calls then after a claim for a content, before the host has the claim.
type overtakenStore struct {
	upload.Store
	then func()
}

func (s *overtakenStore) ClaimPending(ctx context.Context, account protocol.AccountID, upload protocol.UploadID, node protocol.NodeID) (*uploadlog.Claim, error) {
	claim, err := s.Store.ClaimPending(ctx, account, upload, node)
	s.then()
	return claim, err
}

func TestAContentThatACancelOvertakesGetsTheEndOfItsUpload(t *testing.T) {
	t.Parallel()
	store := &overtakenStore{}
	w := uploadWorld(t, upload.Config{Store: store}, func(c *testConfig) { store.Store = c.DB.Uploads })
	c := w.client().register("a@example.com")
	u := c.startUpload(10)
	store.then = func() { c.twin().expect(200, "DELETE", u.Path(), nil) }
	if refused := c.send(409, u, "0123456789"); refused.Code != protocol.CodeUploadFinished {
		t.Errorf("the content of a cancelled upload: %s", refused.body)
	}
}

// The cancel may run on another node, or its actor may have ended.
func TestAContentThatACancelOvertakesElsewhereGetsTheEndOfItsUpload(t *testing.T) {
	t.Parallel()
	store := &overtakenStore{}
	w := uploadWorld(t, upload.Config{Store: store}, func(c *testConfig) { store.Store = c.DB.Uploads })
	c := w.client().register("a@example.com")
	u := c.startUpload(10)
	store.then = func() {
		w.database.Admin(t, `update uploads set state = 'cancelled', owner = null, owner_epoch = owner_epoch + 1, finished_at = now() where account_id = $1`, c.account.AccountID)
	}
	if refused := c.send(409, u, "0123456789"); refused.Code != protocol.CodeUploadFinished {
		t.Errorf("the content of a cancelled upload: %s", refused.body)
	}
}
