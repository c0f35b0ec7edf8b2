package http

import (
	"archive/zip"
	"bytes"
	"io"
	"mime"
	"net"
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"turnstone/http/route"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

func TestAnExportIsAFileThatNoCacheStores(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("a@example.com")
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{"title": "../..\\Über \"it\"; \u202etxt.exe"}).into(t, &made)
	resp := c.expect(200, "GET", "/account/export", nil)
	if resp.header.Get("Cache-Control") != "no-store" || resp.header.Get("Content-Type") != "application/zip" ||
		!strings.HasPrefix(resp.header.Get("Content-Disposition"), "attachment; filename=turnstone-export-2") {
		t.Errorf("%v", resp.header)
	}
	if _, err := zip.NewReader(bytes.NewReader(resp.body), int64(len(resp.body))); err != nil {
		t.Error(err)
	}
	if !contains(w.events(c.account.AccountID), audit.EventAccountExported) {
		t.Error("the audit has no export")
	}
	path := "/conversations/" + made.ConversationID.String() + "/export"
	for query, media := range map[string]string{"": "application/json", "?format=json": "application/json", "?format=markdown": "text/markdown; charset=utf-8"} {
		resp := c.expect(200, "GET", path+query, nil)
		_, params, err := mime.ParseMediaType(resp.header.Get("Content-Disposition"))
		name, extension := params["filename"], ".json"
		if strings.Contains(query, "markdown") {
			extension = ".md"
		}
		if err != nil || name != "Über it txt.exe"+extension || resp.header.Get("Content-Type") != media || resp.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %q %v %v", query, name, resp.header, err)
		}
	}
	c.expect(422, "GET", path+"?format=pdf", nil)
	c.expect(404, "GET", "/conversations/"+protocol.NewConversationID().String()+"/export", nil)
	c.expect(201, "POST", "/conversations", route.Object{"temporary": true}).into(t, &made)
	if resp := c.expect(409, "GET", "/conversations/"+made.ConversationID.String()+"/export", nil); resp.Code != protocol.CodeConflict || resp.Current == nil {
		t.Errorf("%s", resp.body)
	}
}

func TestASecondExportIsRefusedWhileOneIsRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("a@example.com")
	running, err := w.DB.Exports.Begin(t.Context(), c.account.AccountID)
	if err != nil {
		t.Fatal(err)
	}
	resp := c.expect(409, "GET", "/account/export", nil)
	if resp.Code != protocol.CodeConflict || !strings.Contains(string(resp.body), `"started_at"`) || resp.header.Get("Content-Disposition") != "" {
		t.Errorf("%s %v", resp.body, resp.header)
	}
	running.Close()
	c.expect(200, "GET", "/account/export", nil)
}

// A client whose session has ended gets no more of its export, even if it reads slowly, and what it has is no archive.
func TestAnExportEndsWithItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("a@example.com")
	var made protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{"title": "long"}).into(t, &made)
	// Random text does not shrink, so the buffers between the server and the client do not hold it.
	w.database.Admin(t, `
		insert into messages (account_id, message_id, conversation_id, branch_id, depth, role, status, parts)
		select $1, gen_random_uuid(), $2, $3, n, 'user', 'complete', json_build_array(json_build_object('type', 'text', 'text',
			(select string_agg(encode(sha256((n::text || x)::bytea), 'base64'), '') from generate_series(1, 20000) x)))
		from generate_series(1, 40) n`, c.account.AccountID, made.ConversationID, made.ActiveBranchID)
	w.database.Admin(t, `update branches set head_depth = 40 where account_id = $1`, c.account.AccountID)
	server := httptest.NewServer(w)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	request := httptest.NewRequest("GET", "https://"+w.BaseURL.Host+"/account/export", nil)
	request.AddCookie(&stdhttp.Cookie{Name: w.cookieName(), Value: c.token()})
	if err := request.Write(conn); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1000)
	if _, err := io.ReadFull(conn, first); err != nil || !bytes.HasPrefix(first, []byte("HTTP/1.1 200")) {
		t.Fatalf("%s %v", first, err)
	}
	for session := range w.sse.Sessions() {
		w.sse.EndSession(session)
	}
	_ = conn.SetReadDeadline(time.Now().Add(testTimeout))
	rest, _ := io.ReadAll(conn)
	if bytes.HasSuffix(rest, []byte("\r\n0\r\n\r\n")) || bytes.Contains(rest, []byte("manifest.json")) {
		t.Error("the export continued after the end of its session")
	}
	if sessions := w.sse.Sessions(); len(sessions) != 0 {
		t.Errorf("%v are still watched", sessions)
	}
}
