package http

import (
	"strings"
	"testing"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// storeArtifact stores an artifact of a conversation, as a call of the tool write_artifact does.
func (c *client) storeArtifact(w *world, conversation protocol.ConversationID) *protocol.Artifact {
	return c.storeArtifactOf(w, conversation, protocol.ArtifactDocument, "one\ntwo\n")
}

func (c *client) storeArtifactOf(w *world, conversation protocol.ConversationID, kind protocol.ArtifactKind, content string) *protocol.Artifact {
	w.t.Helper()
	made, err := w.DB.Artifacts.WriteByCall(w.t.Context(), &turnlog.ArtifactWrite{
		Scope:  turnlog.Scope{AccountID: c.account.AccountID, ConversationID: conversation},
		TurnID: protocol.NewTurnID(), ToolID: protocol.DeriveToolID(protocol.NewTurnID(), 1), Kind: kind, Title: "Plan / B", Content: &content,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

func TestAnArtifactIsReadChangedComparedAndRestored(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	conversation := u.conversation("Artifacts")
	a := u.storeArtifact(s, u.parse(conversation))
	path := "/artifacts/" + a.ArtifactID.String()

	wantField(t, u.do(200, "GET", "/conversations/"+conversation+"/artifacts", nil), "data.0.artifact_id", a.ArtifactID.String())
	got := u.do(200, "GET", path, nil)
	wantField(t, got, "version", 1.0)
	wantField(t, got, "created_by", "model")
	wantField(t, got, "bytes", 8.0)

	required := u.do(409, "PUT", path, map[string]any{"content": "three"})
	wantField(t, required, "code", "version_required")
	changed := u.do(200, "PUT", path, map[string]any{"content": "one\nthree\n", "title": " New ", "version": 1})
	wantField(t, changed, "version", 2.0)
	wantField(t, changed, "title", "New")
	wantField(t, changed, "created_by", "user")
	wantField(t, u.do(200, "PUT", path, map[string]any{"content": "one\nthree\n"}), "version", 2.0)
	other := "/artifacts/" + u.storeArtifact(s, u.parse(conversation)).ArtifactID.String()
	wantField(t, u.do(200, "PUT", other, map[string]any{"content": "whatever it was before"}, "If-Match", "*"), "version", 2.0)
	wantField(t, u.do(200, "POST", other+"/restore", map[string]any{"version": 1}, "If-Match", "*"), "version", 3.0)
	stale := u.do(409, "PUT", path, map[string]any{"content": "late", "version": 1})
	wantField(t, stale, "code", "stale_version")
	wantField(t, stale, "current.version", 2.0)

	diff := u.do(200, "GET", path+"/diff?from=1", nil)
	wantField(t, diff, "to", 2.0)
	wantField(t, diff, "hunks.0.lines.1.change", "removed")
	wantField(t, diff, "hunks.0.lines.2.text", "three")
	u.do(404, "GET", path+"/diff?from=3", nil)
	u.do(422, "GET", path+"/diff", nil)

	restored := u.do(200, "POST", path+"/restore", map[string]any{"version": 1, "base_version": 2})
	wantField(t, restored, "version", 3.0)
	wantField(t, restored, "title", "Plan / B")
	u.do(409, "POST", path+"/restore", map[string]any{"version": 1, "base_version": 2})
	u.do(422, "POST", path+"/restore", map[string]any{"version": 9, "base_version": 3})

	versions := u.do(200, "GET", path+"/versions?limit=2", nil)
	wantField(t, versions, "data.0.version", 3.0)
	wantField(t, versions, "has_more", true)
	next := u.do(200, "GET", path+"/versions?limit=2&cursor="+versions.at("next_cursor").(string), nil)
	wantField(t, next, "data.0.version", 1.0)
	wantField(t, next, "next_cursor", nil)

	for _, wrong := range []map[string]any{{}, {"content": 1}, {"content": "a\x00b", "version": 3}, {"content": "x", "title": strings.Repeat("é", 201), "version": 3}} {
		u.do(422, "PUT", path, wrong)
	}
	large := u.do(413, "PUT", path, map[string]any{"content": strings.Repeat("x", protocol.MaxArtifactBytes+1), "version": 3})
	wantField(t, large, "code", "too_large")
	wantField(t, u.do(200, "PUT", path, map[string]any{"content": strings.Repeat("x", protocol.MaxArtifactBytes), "version": 3}), "bytes", float64(protocol.MaxArtifactBytes))
}

func TestTheContentOfAnArtifactIsADownloadThatNoBrowserRuns(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	conversation := u.parse(u.conversation("Artifacts"))
	page := u.storeArtifactOf(s, conversation, protocol.ArtifactHTML, "<script>alert(1)</script>")
	got := u.expect(200, "GET", "/artifacts/"+page.ArtifactID.String()+"/content", nil)
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Content-Disposition": `attachment; filename="Plan B.html"`, "Content-Length": "25",
		"Content-Security-Policy": downloadPolicy, "X-Content-Type-Options": "nosniff", "ETag": `"v1"`,
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.header.Get(name), want)
		}
	}
	if string(got.body) != "<script>alert(1)</script>" {
		t.Errorf("%q", got.body)
	}
	for _, format := range []string{"csv", "html", "docx"} {
		u.do(422, "GET", "/artifacts/"+page.ArtifactID.String()+"/content?format="+format, nil)
	}
	u.do(404, "GET", "/artifacts/"+page.ArtifactID.String()+"/content?version=2", nil)

	table := u.storeArtifactOf(s, conversation, protocol.ArtifactTable, "name,sum\r\n=1+1,-5\r\n")
	path := "/artifacts/" + table.ArtifactID.String()
	if stored := u.expect(200, "GET", path+"/content", nil); string(stored.body) != "name,sum\n=1+1,-5\n" {
		t.Errorf("%q", stored.body)
	}
	csv := u.expect(200, "GET", path+"/content?format=csv", nil)
	if string(csv.body) != "name,sum\r\n'=1+1,-5\r\n" || !strings.HasPrefix(csv.header.Get("Content-Type"), "text/csv") {
		t.Errorf("%q, %q", csv.body, csv.header.Get("Content-Type"))
	}
	wantField(t, u.do(200, "PUT", path, map[string]any{"content": string(csv.body)}), "version", 1.0)
	wantField(t, u.do(422, "PUT", path, map[string]any{"content": "a,b\n1", "version": 1}), "errors.0.field", "body.content")
}

func TestArtifactsOfAnotherAccountAreNotFound(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u, stranger := signUp(t, s), signUp(t, s)
	conversation := u.conversation("Mine")
	path := "/artifacts/" + u.storeArtifact(s, u.parse(conversation)).ArtifactID.String()
	for _, request := range []struct {
		method, path string
		body         any
	}{
		{"GET", "/conversations/" + conversation + "/artifacts", nil},
		{"GET", path, nil},
		{"GET", path + "/versions", nil},
		{"GET", path + "/content", nil},
		{"GET", path + "/diff?from=1", nil},
		{"PUT", path, map[string]any{"content": "x", "version": 1}},
		{"POST", path + "/restore", map[string]any{"version": 1}},
		{"PUT", path, "wrong"},
	} {
		stranger.do(404, request.method, request.path, request.body)
	}
	wantField(t, u.do(200, "GET", path, nil), "version", 1.0)
}

func TestADocumentIsDownloadedAsAPageAndForWordProcessors(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	document := u.storeArtifactOf(s, u.parse(u.conversation("Report")), protocol.ArtifactDocument, "# Tides\n\n<script>alert(1)</script>\n")
	path := "/artifacts/" + document.ArtifactID.String() + "/content?format="
	for format, media := range map[string]string{"html": "text/html; charset=utf-8", "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document"} {
		got := u.expect(200, "GET", path+format, nil)
		if got.header.Get("Content-Type") != media || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment;") || !strings.Contains(got.header.Get("Content-Disposition"), "."+format) ||
			got.header.Get("Content-Security-Policy") != downloadPolicy {
			t.Errorf("%s: %v", format, got.header)
		}
		if strings.Contains(string(got.body), "<script>") || len(got.body) < 500 {
			t.Errorf("%s: %s", format, got.body)
		}
	}
	u.do(422, "GET", path+"csv", nil)
	u.do(422, "GET", path+"pdf", nil)
}
