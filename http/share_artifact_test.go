package http

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	stdhttp "net/http"
	"strings"
	"testing"
	"time"

	"turnstone/http/route"
	"turnstone/protocol"
	"turnstone/protocol/idtest"
)

// sharedArtifacts is a conversation with a page, a table and another artifact, and a share that carries the first two. The answer
// names the page and the other one.
type sharedArtifacts struct {
	*world
	u                   *user
	conversation        string
	path                string
	messages            []string
	shown, table, other *protocol.Artifact
	created             decodedReply
	token, page         string
}

func shareArtifacts(t *testing.T) *sharedArtifacts {
	t.Helper()
	w, _ := conversationWorld(t)
	s := &sharedArtifacts{world: w, u: signUp(t, w)}
	s.conversation = s.u.conversation("Tides")
	s.path = "/conversations/" + s.conversation + "/shares"
	s.messages = s.u.storeMessages(s.conversation, "Write it.", "Done.")
	of := s.u.parse(s.conversation)
	s.shown = s.u.storeArtifactOf(w, of, protocol.ArtifactHTML, "<script>alert(1)</script>")
	s.table = s.u.storeArtifactOf(w, of, protocol.ArtifactTable, "name,sum\n=1+1,-5\n")
	s.other = s.u.storeArtifactOf(w, of, protocol.ArtifactDocument, "canary-other")
	w.database.Admin(t, `update messages set parts = (select json_agg(part) from (
			select value as part from json_array_elements(parts)
			union all select json_build_object('type', 'artifact', 'part_id', $2::text, 'artifact_id', id, 'version', 1, 'kind', 'html', 'title', 'canary-title') from unnest($3::text[]) id) p)
		where message_id = $1`, idtest.Parse[protocol.MessageID](t, s.messages[1]), protocol.NewPartID().String(), []string{s.shown.ArtifactID.String(), s.other.ArtifactID.String()})
	s.share()
	return s
}

func (s *sharedArtifacts) share() {
	s.t.Helper()
	s.created = s.u.do(201, "POST", s.path, route.Object{"artifact_ids": []any{s.shown.ArtifactID, s.table.ArtifactID, s.shown.ArtifactID}})
	s.token, s.page = sharedToken(s.t, s.created)
}

func (s *sharedArtifacts) artifact(n any) string {
	return fmt.Sprintf("/shared/%s/artifacts/%v", s.token, n)
}

func TestAShareCarriesTheChosenArtifactsAndNoOthers(t *testing.T) {
	t.Parallel()
	s := shareArtifacts(t)
	for _, of := range []decodedReply{s.created, s.u.do(200, "GET", "/shares/"+s.created.at("share_id").(string), nil)} {
		wantField(t, of, "artifact_ids.0", s.shown.ArtifactID.String())
		wantField(t, of, "artifact_ids.1", s.table.ArtifactID.String())
		wantField(t, of, "artifact_ids.2", nil)
	}
	s.u.do(200, "PUT", "/artifacts/"+s.shown.ArtifactID.String(), route.Object{"content": "canary-later", "title": "canary-later", "version": 1}) // the share keeps its copy

	shared := s.anybody(200, "/shared/"+s.token)
	wantField(t, shared, "artifacts.0.n", 1.0)
	wantField(t, shared, "artifacts.0.kind", "html")
	wantField(t, shared, "artifacts.0.title", "Plan / B")
	wantField(t, shared, "artifacts.0.version", 1.0)
	wantField(t, shared, "artifacts.0.bytes", 25.0)
	wantField(t, shared, "artifacts.1.kind", "table")
	wantField(t, shared, "artifacts.2", nil)
	wantField(t, shared, "messages.1.parts.1.type", "artifact")
	wantField(t, shared, "messages.1.parts.1.n", 1.0)
	wantField(t, shared, "messages.1.parts.2", nil)
	html := s.anybody(200, s.page)
	link := `<a href="` + s.artifact(1) + `" download><bdi>Plan / B</bdi></a> <small>Page`
	for text, count := range map[string]int{link + "</small>": 1, link + " · 25 bytes</small>": 1, `<a href="` + s.artifact(2) + `?format=csv" download><bdi>Plan / B</bdi></a> <small>Table · 17 bytes</small>`: 1} {
		if strings.Count(html.text, text) != count {
			t.Errorf("the page has not %d × %s: %s", count, text, html.text)
		}
	}
	for _, shown := range []decodedReply{shared, html} {
		if strings.Contains(shown.text, "canary") || anyIdentifier.MatchString(shown.text) {
			t.Errorf("it contains more than the share: %s", shown.text)
		}
	}
	none, page := sharedToken(t, s.u.do(201, "POST", s.path, route.Object{"artifact_ids": []any{}}))
	wantField(t, s.anybody(200, "/shared/"+none), "artifacts.0", nil)
	wantField(t, s.anybody(200, "/shared/"+none), "messages.1.parts.1", nil)
	s.anybody(404, "/shared/"+none+"/artifacts/1")
	if html := s.anybody(200, page); strings.Contains(html.text, "Artifacts") {
		t.Errorf("%s", html.text)
	}
}

func TestAnArtifactOfAShareIsADownloadThatNoBrowserRuns(t *testing.T) {
	t.Parallel()
	s := shareArtifacts(t)
	content := s.anybody(200, s.artifact(1))
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Content-Disposition": `attachment; filename="Plan _ B.html"; filename*=UTF-8''Plan%20_%20B.html`, "Content-Length": "25",
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": downloadPolicy, "Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow, noarchive", "Referrer-Policy": "no-referrer", "ETag": `"` + s.shown.SHA256 + `"`, "Accept-Ranges": "bytes",
	} {
		if got := content.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	at, _ := time.Parse(time.RFC3339Nano, s.created.at("created_at").(string))
	if content.text != "<script>alert(1)</script>" || content.header.Get("Last-Modified") != at.UTC().Format(stdhttp.TimeFormat) {
		t.Errorf("%s %v", content.text, content.header)
	}
	part := s.anybody(206, s.artifact(1), "Range", "bytes=1-6", "If-Range", content.header.Get("ETag"))
	if part.text != "script" || part.header.Get("Content-Range") != "bytes 1-6/25" {
		t.Errorf("%q %v", part.text, part.header)
	}
	s.anybody(416, s.artifact(1), "Range", "bytes=25-")
	head := s.client().expect(200, "HEAD", s.artifact(1), nil)
	if len(head.body) != 0 || head.header.Get("Content-Length") != "25" || head.header.Get("Content-Disposition") != content.header.Get("Content-Disposition") {
		t.Errorf("HEAD: %q %v", head.body, head.header)
	}

	stored, guarded := s.anybody(200, s.artifact(2)), s.anybody(200, s.artifact(2)+"?format=csv")
	sum := sha256.Sum256([]byte(guarded.text))
	if stored.text != "name,sum\n=1+1,-5\n" || guarded.text != "name,sum\r\n'=1+1,-5\r\n" || guarded.header.Get("ETag") != `"`+hex.EncodeToString(sum[:])+`"` || stored.header.Get("ETag") == guarded.header.Get("ETag") {
		t.Errorf("%q %q %v", stored.text, guarded.text, guarded.header)
	}
	wantField(t, s.anybody(422, s.artifact(1)+"?format=csv"), "errors.0.field", "query.format")
}

func TestOnlyArtifactsOfTheSharedConversationCanBeShared(t *testing.T) {
	t.Parallel()
	s := shareArtifacts(t)
	stranger := signUp(t, s.world)
	foreign := stranger.storeArtifact(s.world, stranger.parse(stranger.conversation("Foreign")))
	elsewhere := s.u.storeArtifact(s.world, s.u.parse(s.u.conversation("Elsewhere")))
	ask := func(status int, ids ...any) decodedReply {
		t.Helper()
		return s.u.do(status, "POST", s.path, route.Object{"artifact_ids": ids})
	}
	missing := ask(404, protocol.NewArtifactID())
	for what, id := range map[string]protocol.ArtifactID{"foreign": foreign.ArtifactID, "of another conversation": elsewhere.ArtifactID} {
		if refused := ask(404, s.shown.ArtifactID, id); !alike(refused.reply, missing.reply) || !sameHeaders(refused.reply, missing.reply) {
			t.Errorf("%s: %s, missing: %s", what, refused.text, missing.text)
		}
	}
	many := make([]any, 21) // one more than a share may have
	for i := range many {
		many[i] = s.shown.ArtifactID
	}
	ask(422, many...)
	ask(201, many[1:]...)
	ask(422, "art_x")
	s.database.Admin(t, `update artifacts set bytes = 1048576 where conversation_id = $1`, s.u.parse(s.conversation))
	texts := make([]string, 0, 6)
	for range cap(texts) {
		texts = append(texts, strings.Repeat("long ", 250_000))
	}
	s.u.storeMessages(s.conversation, texts...)
	ask(201)
	wantField(t, ask(422, s.shown.ArtifactID, s.table.ArtifactID), "errors.0.field", "body.artifact_ids")
}

func TestThePreviewListsTheArtifactsThatCanBeShared(t *testing.T) {
	t.Parallel()
	s := shareArtifacts(t)
	var preview protocol.SharePreview
	first := s.u.do(200, "GET", s.path+"/preview?limit=1", nil)
	first.into(t, &preview)
	if len(preview.Artifacts) != 3 || preview.ArtifactCount != 3 {
		t.Fatalf("%+v", preview)
	}
	want := protocol.ShareableArtifact{ArtifactID: s.shown.ArtifactID, Kind: protocol.ArtifactHTML, Title: "Plan / B", Version: 1, Bytes: 25}
	if preview.Artifacts[2] != want || preview.Artifacts[0].ArtifactID != s.other.ArtifactID {
		t.Errorf("%+v", preview.Artifacts)
	}
	rest := s.u.do(200, "GET", s.path+"/preview?cursor="+first.at("next_cursor").(string), nil)
	wantField(t, rest, "artifacts.0", nil)
	wantField(t, rest, "data.0.parts.0.text", "Done.")
	wantField(t, rest, "data.0.parts.1", nil) // none is chosen yet
}

func TestTheArtifactsOfAShareEndWithIt(t *testing.T) {
	t.Parallel()
	s := shareArtifacts(t)
	unknown := s.anybody(404, "/shared/sh1_"+strings.Repeat("A", 43)+"/artifacts/1")
	check := func(what string, numbers ...any) {
		t.Helper()
		for _, n := range numbers {
			for _, headers := range [][]string{nil, {"Range", "bytes=0-1"}, {"Range", "bytes=99-"}} {
				if got := s.anybody(404, s.artifact(n), headers...); !alike(got.reply, unknown.reply) || !sameHeaders(got.reply, unknown.reply) {
					t.Errorf("%s: %s %v", what, got.text, got.header)
				}
			}
		}
		s.client().expect(404, "HEAD", s.artifact(numbers[0]), nil)
	}
	check("no number of the share", 3, 0, 20, 21, 50, 51, -1, "x", "01", "99999999999999999999", s.shown.ArtifactID)
	s.u.do(204, "DELETE", "/shares/"+s.created.at("share_id").(string), nil)
	check("revoked", 1)
	if n := query[int64](s.world, `select count(*) from share_artifacts`)[0]; n != 0 {
		t.Errorf("%d artifacts are left", n)
	}
	s.share()
	s.database.Admin(t, `update shares set expires_at = now()`)
	check("expired", 1)
	s.share()
	s.database.Admin(t, `update accounts set disabled_at = now()`)
	check("of a disabled account", 1)
	s.database.Admin(t, `update accounts set disabled_at = null`)
	s.anybody(200, s.artifact(1))
	s.u.do(204, "DELETE", "/conversations/"+s.conversation, nil)
	check("of a deleted conversation", 1)
}

func TestDownloadsOfSharedArtifactsAreLimited(t *testing.T) {
	t.Parallel()
	s := shareArtifacts(t)
	s.limiter.Drawn()
	s.u.do(200, "GET", s.artifact(1), nil) // with a session and a known device
	if drawn := strings.Join(s.limiter.Drawn(), ", "); drawn != "shared 192.0.2.1" {
		t.Errorf("drawn %s", drawn)
	}
	s.limiter.Refuse()
	wantField(t, s.anybody(429, s.artifact(1)), "code", "rate_limited")
}
