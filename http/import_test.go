package http

import (
	"io"
	"net"
	stdhttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/http/auth"
	"turnstone/http/route"
	"turnstone/persistence/erasure"
	"turnstone/persistence/imports"
	"turnstone/protocol"
)

const claudeExport = `[{"uuid":"x","name":"Imported","chat_messages":[{"uuid":"1","sender":"human","text":"hello"}]}]`

func TestAnImportIsReceivedShownAndCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("a@example.com")
	for media, status := range map[string]int{"": 415, "text/plain": 415, "multipart/form-data": 415, "application/zip": 202} {
		resp := c.expect(status, "POST", "/account/imports", rawBody(claudeExport), "Content-Type", media)
		if status == 202 && resp.header.Get("Location") == "" {
			t.Errorf("%v", resp.header)
		}
	}
	c.expect(415, "POST", "/account/imports", rawBody(claudeExport), "Content-Type", "application/zip", "Content-Encoding", "gzip")
	open := c.expect(409, "POST", "/account/imports", rawBody(claudeExport))
	if open.Code != protocol.CodeConflict || !strings.Contains(string(open.body), `"state":"queued"`) {
		t.Errorf("%s", open.body)
	}
	var list protocol.List[protocol.Import]
	c.expect(200, "GET", "/account/imports", nil).into(t, &list)
	if len(list.Data) != 1 {
		t.Fatalf("%+v", list)
	}
	path := "/account/imports/" + list.Data[0].ImportID.String()
	var cancelled protocol.Import
	c.expect(200, "DELETE", path, nil).into(t, &cancelled)
	if cancelled.State != protocol.ImportCancelled {
		t.Errorf("%+v", cancelled)
	}
	c.expect(409, "DELETE", path, nil)
	c.expect(404, "DELETE", "/account/imports/"+protocol.NewImportID().String(), nil)
	c.expect(400, "POST", "/account/imports", rawBody(""))
	var made protocol.Import
	c.expect(202, "POST", "/account/imports", rawBody(claudeExport)).into(t, &made)
	if err := runImport(w, c.account.AccountID, made.ImportID); err != nil {
		t.Fatal(err)
	}
	resp := c.expect(200, "GET", "/account/imports/"+made.ImportID.String(), nil)
	resp.into(t, &made)
	if made.State != protocol.ImportCompleted || made.Imported != 1 || resp.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%+v %v", made, resp.header)
	}
	if !strings.Contains(string(resp.body), `"reasons":{}`) || !strings.Contains(string(resp.body), `"entries":[]`) {
		t.Errorf("%s", resp.body)
	}
}

// runImport runs the job of an import.
func runImport(w *world, account protocol.AccountID, id protocol.ImportID) error {
	return w.DB.Imports.Continue(w.t.Context(), imports.RunArgs{AccountID: account, ImportID: id}, nil)
}

func TestAnUploadOfAnImportIsReplayedByItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("a@example.com")
	const key = "Idempotency-Key"
	post := func(status int, body string, headers ...string) *reply {
		t.Helper()
		return c.expect(status, "POST", "/account/imports", rawBody(body), append([]string{"Content-Type", "application/json"}, headers...)...)
	}
	post(400, "", key, "k") // after an error, the key is free
	large := "[" + strings.Repeat(" ", 20<<20) + claudeExport[1:]
	first := post(202, large, key, "k")
	again := post(202, large, key, "k")
	if string(again.body) != string(first.body) || again.header.Get("Location") != first.header.Get("Location") || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("first %s, then %s %v", first.body, again.body, again.header)
	}
	if other := post(422, claudeExport, key, "k"); other.Code != protocol.CodeIdempotencyMismatch {
		t.Errorf("%s", other.body)
	}
	post(409, large) // another import is open
	if n := query[int](w, `select count(*) from imports where state = 'queued'`); n[0] != 1 {
		t.Errorf("%d imports are queued", n[0])
	}
	// A repeat costs no quota, and gets the first response also when the import has ended.
	var made protocol.Import
	first.into(t, &made)
	c.expect(200, "DELETE", "/account/imports/"+made.ImportID.String(), nil)
	if again := post(202, large, key, "k"); string(again.body) != string(first.body) || again.header.Get("RateLimit") != "" {
		t.Errorf("%s %v", again.body, again.header)
	}
	// Of two requests at the same time, one proceeds.
	body, writer := io.Pipe()
	replied := make(chan int, 1)
	go func() {
		request := httptest.NewRequest("POST", "https://"+w.BaseURL.Host+"/account/imports", body)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set(auth.CSRFHeader, c.csrf)
		request.Header.Set(key, "two")
		request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: c.token()})
		response := httptest.NewRecorder()
		w.noteReads(response, request)
		replied <- response.Code
	}()
	if _, err := io.WriteString(writer, "["); err != nil {
		t.Fatal(err)
	}
	w.changes.Await(t, "the import is being received", func() bool {
		return slices.Contains(query[string](w, `select state from imports`), "receiving")
	})
	if busy := post(409, claudeExport, key, "two"); busy.Code != protocol.CodeIdempotencyBusy {
		t.Errorf("%s", busy.body)
	}
	if _, err := io.WriteString(writer, claudeExport[1:]); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	if status := <-replied; status != 202 {
		t.Errorf("the first request got %d", status)
	}
}

// The upload of a session that ends is aborted.
func TestAnUploadEndsWithItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("a@example.com")
	end := w.beginImport(c, "")
	w.changes.Await(t, "the import is being received", func() bool { return slices.Equal(query[string](w, `select state from imports`), []string{"receiving"}) })
	end()
	if states := query[string](w, `select state from imports`); len(states) != 1 || states[0] != "failed" {
		t.Errorf("the import is %v", states)
	}
}

// The body of a repeated request is read too, to compare it with that of the first, and for as long as it takes.
func TestARepeatedUploadEndsWithItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("a@example.com")
	c.expect(202, "POST", "/account/imports", rawBody(claudeExport), "Content-Type", "application/json", "Idempotency-Key", "k")
	end := w.beginImport(c, "k")
	w.changes.Await(t, "the session is watched", func() bool { return len(w.sse.Sessions()) == 1 })
	end()
}

// noteReads serves a request, and notifies changes before each read of its body.
func (w *world) noteReads(response stdhttp.ResponseWriter, request *stdhttp.Request) {
	request.Body = &notedBody{request.Body, w.changes.Notify}
	w.ServeHTTP(response, request)
}

type notedBody struct {
	io.ReadCloser
	note func()
}

// Read implements io.Reader.
func (b *notedBody) Read(p []byte) (int, error) {
	b.note()
	return b.ReadCloser.Read(p)
}

// beginImport sends the beginning of an import, and returns a function that ends the session of the upload and expects 401.
func (w *world) beginImport(c *client, key string) (end func()) {
	t := w.t
	t.Helper()
	server := httptest.NewServer(stdhttp.HandlerFunc(w.noteReads))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	body, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	request := httptest.NewRequest("POST", "https://"+w.BaseURL.Host+"/account/imports", body)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(auth.CSRFHeader, c.csrf)
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: c.token()})
	go func() { _ = request.Write(conn) }()
	if _, err := io.WriteString(writer, "["); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		for session := range w.sse.Sessions() {
			w.sse.EndSession(session)
		}
		_ = conn.SetReadDeadline(time.Now().Add(testTimeout))
		status := make([]byte, len("HTTP/1.1 401"))
		if _, err := io.ReadFull(conn, status); err != nil || string(status) != "HTTP/1.1 401" {
			t.Errorf("%s %v", status, err)
		}
	}
}

func TestAnAccountIsErasedOnceItIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("a@example.com")
	device := c.newSession()
	c.expect(201, "POST", "/conversations", route.Object{"title": "a title"})
	c.expect(201, "POST", "/projects", route.Object{"name": "Kitchen"})
	query[int64](w, `insert into shares (account_id, share_id, conversation_id, token_hash, title, message_count, page_count, expires_at)
		select account_id, gen_random_uuid(), conversation_id, sha256('x'), 'x', 1, 1, now() + interval '1 day' from conversations returning 1`)
	resp := c.expect(409, "DELETE", "/account", nil)
	var problem struct {
		Current struct {
			Confirmation protocol.Confirmation `json:"confirmation"`
		} `json:"current"`
	}
	resp.into(t, &problem)
	confirmation := problem.Current.Confirmation
	if resp.Code != protocol.CodeConfirmation || confirmation.WillDelete["conversations"] != 1 || confirmation.WillDelete["sessions"] != 2 ||
		confirmation.WillDelete["projects"] != 1 || confirmation.WillDelete["shares"] != 1 {
		t.Errorf("%s", resp.body)
	}
	device.expect(409, "DELETE", "/account", nil, "X-Confirm", confirmation.Token) // of another session
	c.expect(201, "POST", "/conversations", route.Object{"title": "another"})
	c.expect(409, "DELETE", "/account", nil, "X-Confirm", confirmation.Token) // the counts have changed
	c.expect(409, "DELETE", "/account", nil).into(t, &problem)
	done := c.expect(202, "DELETE", "/account", nil, "X-Confirm", problem.Current.Confirmation.Token)
	var erased protocol.Erasure
	done.into(t, &erased)
	if erased.ErasureID.IsZero() || erased.WillDelete["conversations"] != 2 || erased.WillDelete["projects"] != 1 || done.header.Get("Clear-Site-Data") == "" || c.token() != "" {
		t.Errorf("%s %v", done.body, done.header)
	}
	device.expect(401, "GET", "/conversations", nil)
	c.expect(401, "GET", "/conversations", nil)
	w.client().expect(401, "POST", "/auth/login", route.Object{"email": "a@example.com", "password": testPassword})
	again := w.client().register("a@example.com")
	if again.account.AccountID == c.account.AccountID {
		t.Error("the account is the same")
	}
	for finished := false; !finished; {
		var err error
		if finished, err = w.DB.Erasures.Step(t.Context(), erasure.EraseArgs{AccountID: c.account.AccountID, ErasureID: erased.ErasureID}, 10); err != nil {
			t.Fatal(err)
		}
	}
	if left := query[int64](w, `select count(*) from conversations where account_id = $1`, c.account.AccountID); left[0] != 0 {
		t.Errorf("%d conversations are left", left[0])
	}
	again.expect(200, "GET", "/conversations", nil)
}
