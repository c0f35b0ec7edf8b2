package http

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"turnstone/http/route"
	"turnstone/protocol"
	"turnstone/protocol/idtest"
)

// sharedToken returns the token and the page of a created share.
func sharedToken(t *testing.T, created decodedReply) (token, page string) {
	t.Helper()
	token, _ = created.at("token").(string)
	address, _ := created.at("url").(string)
	page, found := strings.CutPrefix(address, "https://turnstone.example")
	if !regexp.MustCompile(`^sh1_[A-Za-z0-9_-]{43}$`).MatchString(token) || !found || page != "/s/"+token {
		t.Fatalf("token %q, url %q", token, address)
	}
	return token, page
}

// anybody reads an address without a session.
func (w *world) anybody(status int, path string, headers ...string) decodedReply {
	w.t.Helper()
	return (&user{w.client()}).do(status, "GET", path, nil, headers...)
}

func TestAShareIsASnapshotThatEverybodyCanRead(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Six times seven")
	path := "/conversations/" + id + "/shares"
	wantField(t, u.do(409, "POST", path, map[string]any{}), "code", "conflict")
	u.do(409, "GET", path+"/preview", nil)
	ids := u.storeMessages(id, "What is 6*7?", "It is **42**.")

	preview := u.do(200, "GET", path+"/preview", nil)
	wantField(t, preview, "title", "Six times seven")
	wantField(t, preview, "message_id", ids[1])
	wantField(t, preview, "message_count", 2.0)
	wantField(t, preview, "data.1.parts.0.text", "It is **42**.")
	wantField(t, preview, "next_cursor", nil)
	first := u.do(200, "GET", path+"/preview?limit=1", nil)
	wantField(t, first, "has_more", true)
	u.storeMessages(id, "And 6*8?") // the preview does not change while it is being read
	rest := u.do(200, "GET", path+"/preview?limit=5&cursor="+first.at("next_cursor").(string), nil)
	wantField(t, rest, "data.0.parts.0.text", "It is **42**.")
	wantField(t, rest, "has_more", false)
	u.do(422, "GET", path+"/preview?message_id="+ids[0]+"&cursor="+first.at("next_cursor").(string), nil)

	created := u.do(201, "POST", path, map[string]any{"title": " Maths ", "message_id": ids[1], "expires_in_days": 7})
	token, page := sharedToken(t, created)
	wantField(t, created, "title", "Maths")
	wantField(t, created, "message_count", 2.0)
	if created.header.Get("Location") != "/shares/"+created.at("share_id").(string) {
		t.Errorf("Location %s", created.header.Get("Location"))
	}
	shared := s.anybody(200, "/shared/"+token)
	wantField(t, shared, "title", "Maths")
	wantField(t, shared, "message_count", 2.0)
	wantField(t, shared, "page_count", 1.0)
	wantField(t, shared, "messages.1.role", "assistant")
	wantField(t, shared, "messages.1.parts.0.text", "It is **42**.")
	wantField(t, shared, "messages.2", nil)
	html := s.anybody(200, page)
	for _, want := range []string{"<h1 dir=\"auto\">Maths</h1>", "What is 6*7?", "It is <strong>42</strong>."} {
		if !strings.Contains(html.text, want) {
			t.Errorf("the page lacks %s: %s", want, html.text)
		}
	}
	for _, response := range []decodedReply{shared, html, s.anybody(404, "/shared/x"), s.anybody(404, "/s/x")} {
		for name, want := range map[string]string{"X-Robots-Tag": "noindex, nofollow, noarchive", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"} {
			if got := response.header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}

	whole := u.do(201, "POST", path, map[string]any{})
	wantField(t, whole, "title", "Six times seven")
	wantField(t, whole, "message_count", 3.0)
	listed := u.do(200, "GET", path+"?limit=1", nil)
	wantField(t, listed, "data.0.share_id", whole.at("share_id"))
	wantField(t, listed, "data.0.token", nil)
	listed = u.do(200, "GET", path+"?limit=1&cursor="+listed.at("next_cursor").(string), nil)
	wantField(t, listed, "data.0.share_id", created.at("share_id"))
	wantField(t, listed, "has_more", false)
	wantField(t, u.do(200, "GET", "/shares", nil), "data.1.share_id", created.at("share_id"))
	wantField(t, signUp(t, s).do(200, "GET", "/shares", nil), "data.0", nil)

	for _, wrong := range []map[string]any{
		{"title": strings.Repeat("t", 201)}, {"expires_in_days": 2}, {"expires_in_days": 0}, {"message_id": "msg_1"}, {"file_ids": []string{"x"}},
	} {
		u.do(422, "POST", path, wrong)
	}
	u.do(404, "POST", path, map[string]any{"message_id": protocol.NewMessageID()})
	u.do(404, "POST", path, map[string]any{"file_ids": []string{"file_01k0000000e1g80000000000zz"}})
	u.liveTurn(id)
	busy := u.do(200, "GET", path+"/preview", nil)
	wantField(t, busy, "message_count", 3.0)
}

func TestAShareThatHasEndedIsAsUnknownAsAnyOther(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	share := func() (id, conversation, token, page string) {
		conversation = u.conversation("Ends")
		u.storeMessages(conversation, "one", "two")
		created := u.do(201, "POST", "/conversations/"+conversation+"/shares", map[string]any{"expires_in_days": 1})
		token, page = sharedToken(t, created)
		s.anybody(200, "/shared/"+token)
		return created.at("share_id").(string), conversation, token, page
	}
	unknown := s.anybody(404, "/shared/sh1_"+strings.Repeat("A", 43))
	unknownPage := s.anybody(404, "/s/sh1_"+strings.Repeat("A", 43))
	check := func(what, token, page string) {
		t.Helper()
		for path, want := range map[string]decodedReply{"/shared/" + token: unknown, page: unknownPage} {
			got := s.anybody(404, path)
			if !alike(got.reply, want.reply) || !sameHeaders(got.reply, want.reply) {
				t.Errorf("%s, %s: %s, want %s", what, path, got.text, want.text)
			}
		}
	}
	id, _, token, page := share()
	signUp(t, s).do(404, "DELETE", "/shares/"+id, nil)
	s.anybody(200, page)
	s.anybody(404, "/shared/"+token+"?page=2")
	s.anybody(404, page+"?page=2")
	s.anybody(404, page+"?page=x")
	u.do(204, "DELETE", "/shares/"+id, nil)
	check("revoked", token, page)
	u.do(404, "DELETE", "/shares/"+id, nil)
	wantField(t, u.do(200, "GET", "/shares", nil), "data.0", nil)

	_, _, token, page = share()
	s.database.Admin(t, `update shares set expires_at = now()`)
	check("expired", token, page)
	wantField(t, u.do(200, "GET", "/shares", nil), "data.0", nil)

	_, conversation, token, page := share()
	u.do(204, "DELETE", "/conversations/"+conversation, nil)
	check("of a deleted conversation", token, page)
	wantField(t, u.do(200, "GET", "/shares", nil), "data.0", nil)

	_, _, token, page = share()
	s.database.Admin(t, `update accounts set disabled_at = now()`)
	check("of a disabled account", token, page)
	for _, malformed := range []string{"x", token + "A", token[:46], strings.ToUpper(token), "sh1_", strings.Repeat("A", 4000)} {
		check("malformed", malformed, "/s/"+malformed)
	}
}

func TestTheTokenOfAShareIsRepeatedButNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := signUp(t, w)
	id := u.conversation("Kept")
	u.storeMessages(id, "one", "two")
	path, body := "/conversations/"+id+"/shares", map[string]any{"expires_in_days": 90}
	created := u.do(201, "POST", path, body, keyField, "k")
	token, page := sharedToken(t, created)
	replay := u.do(201, "POST", path, body, keyField, "k")
	if replay.text != created.text || replay.header.Get(replayedField) != "true" || replay.header.Get("Location") != created.header.Get("Location") {
		t.Errorf("the first response is %s, the second %s %v", created.text, replay.text, replay.header)
	}
	u.do(422, "POST", path, map[string]any{"expires_in_days": 1}, keyField, "k")
	for _, table := range []string{"shares", "share_pages", "idempotency", "audit"} {
		for _, row := range query[string](w, `select row_to_json(t)::text from `+table+` t`) {
			if strings.Contains(row, token) || strings.Contains(row, hex.EncodeToString([]byte(token))) {
				t.Errorf("%s contains the token", table)
			}
		}
	}
	old, fresh := bytes.Repeat([]byte("k"), minSecret), bytes.Repeat([]byte("n"), minSecret)
	rotated := worldOn(t, w.database, func(config *testConfig) { config.Secrets = [][]byte{fresh, old} })
	moved := &user{rotated.client()}
	moved.cookies, moved.account = u.cookies, u.account
	moved.session()
	if again := moved.do(201, "POST", path, body, keyField, "k"); again.at("token") != token {
		t.Errorf("after the rotation the token is %v", again.at("token"))
	}
	rotated.anybody(200, page)
	newer, _ := sharedToken(t, moved.do(201, "POST", path, body, keyField, "k2"))
	last := worldOn(t, w.database, func(config *testConfig) { config.Secrets = [][]byte{fresh} })
	last.anybody(200, page)
	last.anybody(200, "/shared/"+newer)
	moved = &user{last.client().login(u.account.Email)}
	if again := moved.do(201, "POST", path, body, keyField, "k2"); again.at("token") != newer {
		t.Errorf("the newer token is %v", again.at("token"))
	}
	gone := moved.do(409, "POST", path, body, keyField, "k")
	wantField(t, gone, "current.share_id", created.at("share_id"))
}

var anyIdentifier = regexp.MustCompile(`\b[a-z]{2,5}_[0-9a-hjkmnp-tv-z]{26}\b`)

// privatePartsSQL adds to an answer one part of each kind that is not public, and citations, each with a canary.
const privatePartsSQL = `
	update messages set usage = '{"input_tokens": 77001, "output_tokens": 77002}', attachments = array[gen_random_uuid()],
		model_id = 'canary-model', turn_id = gen_random_uuid(), profile = 'coding',
		routing = '{"requested": "auto", "resolved": "coding", "reason": "canary-routing"}',
		feedback = '{"rating": "down", "reasons": ["other"], "comment": "canary-feedback"}',
		parts = (select json_agg(part) from (
			select value as part from json_array_elements(parts)
			union all select json_build_object('type', kind, 'part_id', $2::text, 'text', 'canary-' || kind, 'tool_id', $3::text, 'tool_name', 'canary-tool-name',
				'title', 'canary-tool-title', 'input', json_build_object('q', 'canary-input'), 'output', 'canary-output', 'state', 'failed',
				'error', json_build_object('code', 'canary-code', 'detail', 'canary-detail'), 'kind', 'canary-kind', 'duration_ms', 77003)
			from unnest(array['tool', 'reasoning_summary', 'notice', 'citation_list', 'artifact']) kind
			union all select json_build_object('type', 'text', 'part_id', $2::text, 'text', 'public text', 'title', 'canary-title',
				'citations', json_build_array(json_build_object('title', 'canary-citation', 'url', 'https://canary.example')))
			union all select json_build_object('type', 'code', 'part_id', $2::text, 'language', 'go', 'filename', 'public.go', 'code', 'public code', 'output', 'canary-code-output')
		) parts)
	where message_id = $1`

func TestAShareExposesOnlyItsTarget(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := &user{s.client()}
	u.storeSession(u.expect(201, "POST", "/auth/register", route.Object{"email": "canary-mail@example.com", "password": testPassword, "display_name": "canary-name"}))
	other := u.conversation("canary-other-conversation")
	u.storeMessages(other, "canary-other-question", "canary-other-answer")
	id := u.conversation("canary-title")
	path := "/conversations/" + id
	ids := u.storeMessages(id, "public question", "public answer", "canary-later-question", "canary-later-answer")
	version := u.do(200, "GET", path, nil).header.Get("ETag")
	u.do(200, "PUT", path, map[string]any{"title": "canary-title", "metadata": map[string]any{"canary-key": "canary-value"}}, "If-Match", version)
	u.do(200, "PUT", path+"/draft", map[string]any{"content": "canary-draft"})
	s.storeHeldFollowUp(u.account.AccountID, u.parse(id))
	s.database.Admin(t, `update follow_ups set content = 'canary-follow-up'`)
	u.do(201, "POST", path+"/usage", map[string]any{"kind": "canary-kind", "quantity": 77004, "unit": "canary-unit"})
	u.do(201, "POST", path+"/branches", map[string]any{"message_id": ids[2], "mode": "edit", "name": "canary-branch"})
	u.storeMessages(id, "canary-sibling")
	answer := idtest.Parse[protocol.MessageID](t, ids[1])
	s.database.Admin(t, privatePartsSQL, answer, protocol.NewPartID().String(), "tl_01k0000000e1g80000000000zz")

	created := u.do(201, "POST", path+"/shares", map[string]any{"title": "public title", "message_id": ids[1]})
	token, page := sharedToken(t, created)
	for _, shown := range []decodedReply{s.anybody(200, "/shared/"+token), s.anybody(200, page), u.do(200, "GET", page, nil), u.do(200, "GET", "/shared/"+token, nil)} {
		for _, public := range []string{"public title", "public question", "public answer", "public text", "public code", "public.go", "coding"} {
			if !strings.Contains(shown.text, public) {
				t.Errorf("%q is missing: %s", public, shown.text)
			}
		}
		for _, private := range []string{"canary", "7700", u.account.AccountID.String(), created.at("share_id").(string), token} {
			if strings.Contains(shown.text, private) {
				t.Errorf("it contains %q: %s", private, shown.text)
			}
		}
		if found := anyIdentifier.FindString(shown.text); found != "" {
			t.Errorf("it contains the identifier %s", found)
		}
		for name, values := range shown.header {
			if text := strings.Join(values, " "); strings.Contains(text, "canary") || anyIdentifier.MatchString(text) {
				t.Errorf("the header %s is %s", name, text)
			}
		}
	}
	preview := u.do(200, "GET", path+"/shares/preview?message_id="+ids[1], nil)
	var previewed, opened struct {
		Data, Messages []protocol.SharedMessage
	}
	preview.into(t, &previewed)
	s.anybody(200, "/shared/"+token).into(t, &opened)
	if !reflect.DeepEqual(previewed.Data, opened.Messages) {
		t.Errorf("the preview shows %+v, the share %+v", previewed.Data, opened.Messages)
	}
}

// hostileTexts are answers that try to get more than text onto the page.
var hostileTexts = []string{
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `<svg onload=alert(1)>`, `<iframe src="https://evil.example"></iframe>`, "<style>*{display:none}</style>",
	`[a](javascript:alert(1))`, `[a](JaVaScRiPt:alert(1))`, "[a](java\nscript:alert(1))", `[a](data:text/html,x)`, `[a](vbscript:x)`, `<javascript:alert(1)>`, `[a](&#106;avascript:alert(1))`,
	`![a](https://evil.example/pixel.png)`, `![a](data:image/svg+xml,x)`, `[a](/settings)`, `[a](//evil.example)`, `[a](https://user@evil.example)`,
	`[a](https://e.example/"onmouseover="alert(1))`, `[a](https://e.example 'x" onclick="alert(1)')`, "<a href='https://evil.example' onclick='x'>a</a>", `<form action="/auth/logout" method="post"><button>x</button></form>`,
	"```\n</code></pre><script>x</script>\n```", "|a|\n|-|\n|<script>x</script>|", "</style></title></textarea><script>x</script>", "&lt;script&gt;x&lt;/script&gt;", "[x]: javascript:alert(1)\n\n[x]",
	"<!-- --!><script>x</script>", "<base href=https://evil.example>", "<meta http-equiv=refresh content=0;url=https://evil.example>", "[a](https://e.example){onclick=x}", "# h {#x onclick=y}", "\x1b]8;;https://evil.example\x07a",
}

var (
	tagOf       = regexp.MustCompile(`<([a-zA-Z!/][^\s>]*)([^>]*)>`)
	allowedTags = strings.Fields("!doctype html head meta link title style body header h1 h2 h3 h4 h5 h6 p time main article small bdi div figure figcaption pre code nav a span footer br hr ul ol li blockquote em strong del table thead tbody tr th td")
)

func TestThePageOfAShareContainsNoHTMLOfItsMessages(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("</title><script>x</script>")
	var texts []string
	for _, text := range hostileTexts {
		texts = append(texts, text, text) // as a question and as an answer
	}
	u.storeMessages(id, texts...)
	_, page := sharedToken(t, u.do(201, "POST", "/conversations/"+id+"/shares", map[string]any{}))
	shown := s.anybody(200, page)
	before, script, found := strings.Cut(shown.text, `<script type="module">`) // of the page; the policy names its hash
	_, after, closed := strings.Cut(script, "</script>")
	if !found || !closed {
		t.Error("the page has no script")
	}
	for _, tag := range tagOf.FindAllStringSubmatch(before+after, -1) {
		name, attributes := strings.ToLower(strings.Trim(tag[1], "/")), strings.ToLower(tag[2])
		if !slices.Contains(allowedTags, name) || regexp.MustCompile(`\son\w+\s*=|\sstyle\s*=|\ssrc\s*=`).MatchString(attributes) {
			t.Errorf("the page has the element %s", tag[0])
		}
		if name == "a" && strings.Contains(attributes, "href") && !regexp.MustCompile(`^ href="https?://`).MatchString(attributes) && !strings.Contains(attributes, "?page=") && attributes != ` href="/"` {
			t.Errorf("the page has the link %s", tag[0])
		}
		if name == "a" && strings.Contains(attributes, "http") && !strings.Contains(attributes, "nofollow noreferrer noopener") {
			t.Errorf("the link %s has no rel", tag[0])
		}
	}
	if strings.Contains(shown.text, "<a href=\"https://user@") || !strings.Contains(shown.text, `<span class="host">(evil.example)</span>`) {
		t.Errorf("hosts of links: %s", shown.text)
	}
	policy := shown.header.Get("Content-Security-Policy")
	_, style, _ := strings.Cut(shown.text, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	hash := sha256.Sum256([]byte(style))
	for _, want := range []string{"default-src 'none'", "style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %s lacks %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Count(policy, "script-src 'sha256-") != 1 || !strings.Contains(style, "color-scheme: light dark") {
		t.Errorf("policy %s, style %s", policy, style)
	}
}

func TestThePageOfAShareIsInTheLanguageOfItsReader(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("مرحبا")
	u.storeMessages(id, "שלום", "مرحبا")
	_, page := sharedToken(t, u.do(201, "POST", "/conversations/"+id+"/shares", map[string]any{}))
	for accepted, want := range map[string]string{
		"": `lang="en" dir="ltr"`, "ar-EG,en;q=0.5": `lang="ar" dir="rtl"`, "en;q=0.3, ja;q=0.9": `lang="ja" dir="ltr"`, "de, *;q=x": `lang="en"`, "ar;q=0": `lang="en"`,
	} {
		for _, shown := range []decodedReply{s.anybody(200, page, "Accept-Language", accepted), s.anybody(404, page+"x", "Accept-Language", accepted)} {
			if !strings.Contains(shown.text, want) {
				t.Errorf("%q: %s", accepted, shown.text[:120])
			}
		}
	}
}

func TestALongShareIsReadInPages(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Long")
	var texts []string
	for i := range 250 {
		texts = append(texts, fmt.Sprintf("text %03d", i))
	}
	texts[249] = strings.Repeat("long ", 100_000)
	u.storeMessages(id, texts...)
	token, page := sharedToken(t, u.do(201, "POST", "/conversations/"+id+"/shares", map[string]any{}))
	var found []string
	for number := 1; number <= 3; number++ {
		shared := s.anybody(200, fmt.Sprintf("/shared/%s?page=%d", token, number))
		wantField(t, shared, "page_count", 3.0)
		html := s.anybody(200, fmt.Sprintf("%s?page=%d", page, number))
		var decoded protocol.SharedPage
		shared.into(t, &decoded)
		for i := range decoded.Messages {
			text := decoded.Messages[i].Parts[0].Text
			if found = append(found, text); !strings.Contains(html.text, text[:8]) {
				t.Errorf("page %d lacks %s", number, text[:8])
			}
		}
		if strings.Contains(html.text, fmt.Sprintf("?page=%d", number+1)) != (number < 3) || strings.Contains(html.text, fmt.Sprintf("?page=%d\"", number-1)) != (number > 1) {
			t.Errorf("page %d has other links than to its neighbours", number)
		}
	}
	if !slices.Equal(found, texts) {
		t.Errorf("%d messages of %d", len(found), len(texts))
	}
}

func TestASnapshotThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Large")
	texts := make([]string, 22)
	for i := range texts {
		texts[i] = largest(i)
	}
	u.storeMessages(id, texts...)
	path := "/conversations/" + id + "/shares"
	wantField(t, u.do(422, "POST", path, map[string]any{}), "errors.0.field", "body.message_id")
	s.database.Admin(t, `update branches set head_depth = 20001`)
	s.database.Admin(t, `update messages set depth = 20001 where depth = 22`)
	for method, path := range map[string]string{"POST": path, "GET": path + "/preview"} {
		var body any
		if method == "POST" {
			body = map[string]any{}
		}
		u.do(422, method, path, body)
	}
	s.database.Admin(t, `update conversations set temporary = true`)
	u.do(409, "POST", path, map[string]any{})
}

func TestAnAccountHasALimitedNumberOfShares(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Many")
	u.storeMessages(id, "one", "two")
	path := "/conversations/" + id + "/shares"
	s.database.Admin(t, `insert into shares (account_id, share_id, conversation_id, token_hash, title, message_count, page_count, expires_at)
		select $1, gen_random_uuid(), $2, sha256(n::text::bytea), '', 1, 1, now() + interval '1 day' from generate_series(1, $3::int) n`, u.account.AccountID, u.parse(id), protocol.MaxShares)
	wantField(t, u.do(429, "POST", path, map[string]any{}), "code", "too_many_shares")
	s.database.Admin(t, `update shares set expires_at = now() where share_id in (select share_id from shares limit 1)`)
	u.do(201, "POST", path, map[string]any{})
}

func TestSharesHaveLimitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Limited")
	u.storeMessages(id, "one", "two")
	s.limiter.Drawn()
	token, page := sharedToken(t, u.do(201, "POST", "/conversations/"+id+"/shares", map[string]any{}))
	u.do(200, "GET", "/shared/"+token, nil) // with a session and a known device
	u.do(200, "GET", page, nil)
	s.client().at("2001:db8::1").expect(200, "GET", page, nil)
	s.client().expect(404, "GET", "/s/x", nil)
	want := []string{"shares " + u.account.AccountID.String(), "shared 192.0.2.1", "shared 192.0.2.1", "shared 2001:db8::/64", "shared 192.0.2.1"}
	if drawn := s.limiter.Drawn(); !slices.Equal(drawn, want) {
		t.Errorf("drawn %v, want %v", drawn, want)
	}
	s.limiter.Refuse()
	limited := s.anybody(429, page)
	if limited.header.Get("Retry-After") != "2" || !strings.Contains(limited.text, "Too many requests") || strings.Contains(limited.text, "Limited") {
		t.Errorf("%v %s", limited.header, limited.text)
	}
	wantField(t, s.anybody(429, "/shared/"+token), "code", "rate_limited")
	s.limiter.BreakDown()
	if broken := s.anybody(503, page); broken.header.Get("Retry-After") == "" || !strings.Contains(broken.text, "<h1>") {
		t.Errorf("%v %s", broken.header, broken.text)
	}
	s.anybody(503, "/shared/"+token)
}

func TestOpenedSharesAreCountedAndAuditedOnceAnHour(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.DebugLevel)
	s := newWorld(t, func(c *testConfig) { c.Log = zap.New(core) })
	u := signUp(t, s)
	id := u.conversation("Counted")
	u.storeMessages(id, "one", "two")
	created := u.do(201, "POST", "/conversations/"+id+"/shares", map[string]any{})
	token, page := sharedToken(t, created)
	counted := func(want float64) {
		t.Helper()
		s.shares.WriteOpens(t.Context())
		wantField(t, u.do(200, "GET", "/shares", nil), "data.0.open_count", want)
	}
	counted(0)
	s.anybody(200, "/shared/"+token)
	s.anybody(200, page)
	s.anybody(404, page+"?page=2")
	counted(2)
	s.anybody(200, page)
	counted(3)
	s.database.Admin(t, `update shares set audited_at = now() - interval '2 hours'`)
	s.anybody(200, page)
	counted(4)
	if opened := u.do(200, "GET", "/shares", nil).at("data.0.last_opened_at"); opened != s.clock.now().UTC().Format(protocol.TimeFormat) {
		t.Errorf("last opened at %v", opened)
	}
	s.anybody(200, page)
	u.do(204, "DELETE", "/shares/"+created.at("share_id").(string), nil)
	s.shares.WriteOpens(t.Context()) // of a share that has ended
	var events []string
	for _, event := range s.events(u.account.AccountID) {
		if strings.HasPrefix(event, "share.") {
			events = append(events, event)
		}
	}
	if want := []string{"share.created", "share.opened", "share.opened", "share.revoked"}; !slices.Equal(events, want) {
		t.Errorf("the audit has %v, want %v", events, want)
	}
	if details := query[string](s, `select detail::text from audit where event = 'share.opened' order by n`); !strings.Contains(details[1], `"open_count": 4`) || !strings.Contains(details[1], created.at("share_id").(string)) {
		t.Errorf("details %v", details)
	}
	for _, entry := range logs.All() {
		if line := entry.Message + fmt.Sprint(entry.ContextMap()); strings.Contains(line, "sh1_") || strings.Contains(line, "Counted") {
			t.Errorf("the log contains %s", line)
		}
	}
	if logs.FilterField(zap.String("route", "/s/{token}")).Len() == 0 || logs.FilterField(zap.String("route", "/shared/{token}")).Len() == 0 {
		t.Error("the log does not name the routes of shares")
	}
}

func TestTwoSharesOfOneRequestAreOne(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Once")
	u.storeMessages(id, "one", "two")
	body, _ := json.Marshal(map[string]any{"title": "x"})
	share := func(c *client) *reply {
		return c.do("POST", "/conversations/"+id+"/shares", rawBody(body), "Content-Type", "application/json", keyField, "same")
	}
	results := make(chan *reply, 4)
	for range cap(results) {
		c := u.twin()
		go func() { results <- share(c) }()
	}
	var all []*reply
	for range cap(results) {
		all = append(all, <-results)
	}
	first := share(u.twin())
	for _, one := range all {
		// On a slow host computer a request may have given up waiting for the first one.
		if late := one.status == 503 || one.Code == protocol.CodeIdempotencyBusy; !late && string(one.body) != string(first.body) {
			t.Errorf("%d %s and %d %s", first.status, first.body, one.status, one.body)
		}
	}
	if first.status != 201 {
		t.Errorf("the repeat gets %d %s", first.status, first.body)
	}
	if n := query[int64](s, `select count(*) from shares`)[0]; n != 1 {
		t.Errorf("%d shares", n)
	}
}
