package http

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"turnstone/http/route"
	"turnstone/persistence/limits"
	"turnstone/protocol"
)

func searchPath(q string) string { return "/search?q=" + url.QueryEscape(q) }

func TestASearchFindsCommittedTextAtOnceAndItsResultsOpen(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("Zoo plans")
	ids := u.storeMessages(id, "the penguins", "of the ZOO", "and más")
	page := u.do(200, "GET", searchPath(" zoo "), nil)
	wantField(t, page, "has_more", false)
	wantField(t, page, "data.0.kind", "conversation")
	wantField(t, page, "data.0.conversation_id", id)
	wantField(t, page, "data.0.snippet.text", "Zoo plans")
	wantField(t, page, "data.0.snippet.highlights.0.end", 3.0)
	for _, absent := range []string{"message_id", "branch_id", "file_id", "artifact_id", "task_id", "project_id"} {
		wantField(t, page, "data.0."+absent, nil)
	}
	wantField(t, page, "data.1.kind", "message")
	wantField(t, page, "data.1.message_id", ids[1])
	wantField(t, page, "data.1.title", "Zoo plans")
	wantField(t, page, "data.1.snippet.text", "of the ZOO")
	if data, _ := page.at("data").([]any); len(data) != 2 || page.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d results, Cache-Control %q", len(data), page.header.Get("Cache-Control"))
	}
	around := fmt.Sprintf("/conversations/%s/messages?branch_id=%s&around=%s&limit=1", id, page.at("data.1.branch_id"), page.at("data.1.message_id"))
	wantField(t, u.do(200, "GET", around, nil), "data.0.message_id", ids[1])

	wantField(t, u.do(200, "GET", searchPath("mas")+"&conversation_id="+id, nil), "data.0.message_id", ids[2])
	other := signUp(t, s)
	for _, path := range []string{searchPath("zoo"), searchPath("zoo") + "&conversation_id=" + id, searchPath("zoo") + "&conversation_id=" + protocol.NewConversationID().String()} {
		if data, _ := other.do(200, "GET", path, nil).at("data").([]any); len(data) != 0 {
			t.Errorf("%s: another account found %v", path, data)
		}
	}
}

func TestASearchRefusesWhatIsNoQuery(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	u.storeMessages(u.conversation("x"), "x")
	for _, query := range []string{
		"", "?q=", "?q=%20%20", "?q=%C2%A0", searchPath(strings.Repeat("ä", 161))[7:], "?q=%00", "?q=a%00", "?q=%ED%A0%80", "?q=%FF", "?q=a%09b",
		"?q=x&limit=0", "?q=x&limit=101", "?q=x&limit=x", "?q=x&cursor=x", "?q=x&conversation_id=conv_1", "?q=%",
	} {
		if reply := u.do(422, "GET", "/search"+query, nil); reply.Code != protocol.CodeInvalid || reply.at("errors.0.field") == nil {
			t.Errorf("%s: %s", query, reply.body)
		}
	}
	for _, query := range []string{
		strings.Repeat("ä", 160), "  " + strings.Repeat("ä", 160) + "  ", "-", "\"", "-x", strings.Repeat("\"-", 80), strings.Repeat("𝔞", 160), "& | ! ( ) : *", "\ufffd",
	} {
		page := u.do(200, "GET", searchPath(query), nil)
		if data, isList := page.at("data").([]any); !isList || len(data) != 0 || page.at("next_cursor") != nil {
			t.Errorf("%q: %s", query, page.body)
		}
	}
}

func TestACursorOfASearchBelongsToItsQueryAndAccount(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	id := u.conversation("many")
	u.storeMessages(id, "apple 1", "apple 2", "apple 3")
	first := u.do(200, "GET", searchPath("apple")+"&limit=2", nil)
	wantField(t, first, "has_more", true)
	cursor := "&cursor=" + first.at("next_cursor").(string)
	second := u.do(200, "GET", searchPath("apple")+"&limit=2"+cursor, nil)
	wantField(t, second, "data.0.snippet.text", "apple 1")
	wantField(t, second, "next_cursor", nil)
	u.do(422, "GET", searchPath("apples")+cursor, nil)
	u.do(422, "GET", searchPath("apple")+"&conversation_id="+id+cursor, nil)
	signUp(t, s).do(422, "GET", searchPath("apple")+cursor, nil)
}

func TestSearchesHaveALimitThatFailsClosed(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	s.localBucket(route.Bucket("search"), limits.Limit{Rate: 1, Period: time.Hour, Burst: 2})
	for range 2 {
		u.do(200, "GET", searchPath("x"), nil)
	}
	refused := u.do(429, "GET", searchPath("x"), nil)
	if refused.Code != protocol.CodeRateLimited || refused.header.Get("Retry-After") == "" || !strings.HasPrefix(refused.header.Get("RateLimit-Policy"), `"search"`) {
		t.Errorf("%s %v", refused.body, refused.header)
	}
	u.do(200, "GET", "/conversations", nil)
	s.limiter.real = nil
	s.limiter.BreakDown()
	if down := u.do(503, "GET", searchPath("x"), nil); down.Code != protocol.CodeUnavailable || down.header.Get("Retry-After") == "" {
		t.Errorf("%s", down.body)
	}
}

func TestASearchOfAProjectFindsOnlyWhatIsInItNow(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	project, id, outside := u.project("Zoo"), u.conversation("Zoo plans"), u.conversation("Zoo outside")
	path := "/projects/" + project
	find := path + searchPath("zoo")
	ids := u.storeMessages(id, "the penguins", "of the ZOO", "a zoo again")
	u.storeMessages(outside, "a zoo outside")
	wantField(t, u.do(200, "GET", find, nil), "data.0", nil)
	u.do(200, "PUT", "/conversations/"+id+"/project", route.Object{"project_id": project, "version": 1})
	page := u.do(200, "GET", find, nil)
	wantField(t, page, "data.0.kind", "conversation")
	wantField(t, page, "data.0.project_id", project)
	wantField(t, page, "data.0.snippet.highlights.0.end", 3.0)
	wantField(t, page, "data.1.message_id", ids[2])
	wantField(t, page, "data.2.message_id", ids[1])
	wantField(t, page, "data.3", nil)
	wantField(t, page, "next_cursor", nil)
	if cache := page.header.Get("Cache-Control"); cache != "no-store" {
		t.Errorf("Cache-Control %q", cache)
	}
	wantField(t, u.do(200, "GET", find+"&kind=message", nil), "data.0.message_id", ids[2])
	titles := u.do(200, "GET", find+"&kind=conversation", nil)
	wantField(t, titles, "data.0.conversation_id", id)
	wantField(t, titles, "data.1", nil)

	first := u.do(200, "GET", find+"&limit=1", nil)
	cursor := "&cursor=" + first.at("next_cursor").(string)
	wantField(t, u.do(200, "GET", find+"&limit=2"+cursor, nil), "data.1.message_id", ids[1])
	for _, other := range []string{find + "&kind=message", path + searchPath("zoos"), searchPath("zoo"), "/projects/" + u.project("Other") + searchPath("zoo")} {
		u.do(422, "GET", other+cursor, nil)
	}
	for _, query := range []string{"", "?q=", "?q=%20", "?q=" + strings.Repeat("x", 161), "?q=%00", "?q=x&limit=0", "?q=x&limit=101", "?q=x&kind=thing", "?q=x&cursor=x"} {
		if reply := u.do(422, "GET", path+"/search"+query, nil); reply.Code != protocol.CodeInvalid || reply.at("errors.0.field") == nil {
			t.Errorf("%s: %s", query, reply.body)
		}
	}
	wantField(t, u.do(200, "GET", path+searchPath("-"), nil), "data.0", nil)
	for _, missing := range []string{"/projects/" + protocol.NewProjectID().String(), "/projects/nonsense"} {
		for _, q := range []string{"zoo", " ", "-"} {
			u.do(404, "GET", missing+searchPath(q), nil)
		}
	}

	u.do(200, "PUT", path+"/archive", route.Object{"archived": true, "version": 1})
	wantField(t, u.do(200, "GET", find, nil), "data.0.conversation_id", id)
	token := u.do(409, "DELETE", path, nil, "If-Match", `"v2"`).at("current.confirmation.token").(string)
	u.do(200, "DELETE", path, nil, "If-Match", `"v2"`, "X-Confirm", token)
	wantField(t, u.do(200, "GET", find, nil), "data.0", nil)
	u.do(200, "POST", path+"/restore", route.Object{"version": 3})
	wantField(t, u.do(200, "GET", find, nil), "data.0.conversation_id", id)
	s.localBucket(route.Bucket("search"), limits.Limit{Rate: 1, Period: time.Hour, Burst: 1})
	u.do(200, "GET", searchPath("x"), nil)
	wantField(t, u.do(429, "GET", find, nil), "code", "rate_limited")
	s.limiter.real = nil
	s.limiter.BreakDown()
	wantField(t, u.do(503, "GET", find, nil), "code", "unavailable")
}

func TestAMisspelledQueryIsAnsweredWithOneThatFindsSomething(t *testing.T) {
	t.Parallel()
	s, turns := conversationWorld(t)
	u := signUp(t, s)
	u.storeMessages(u.conversation("Sea"), "the old lighthouse", "Krankenversicherung ist nicht teuer", "die Häuser sind da")
	if err := turns.db.Search.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]any{
		"lihgthouse":                  "lighthouse",
		"old lighthuose kind:message": "old lighthouse kind:message",
		"lighthuose kind:file":        nil,
		"lighthouse":                  nil,
		"zzyzx":                       nil,
	} {
		wantField(t, u.do(200, "GET", searchPath(q), nil), "did_you_mean", want)
	}
	for q, want := range map[string]string{"Versicherung": "Krankenversicherung ist nicht teuer", "Haus": "die Häuser sind da", "lighthouses": "the old lighthouse"} {
		wantField(t, u.do(200, "GET", searchPath(q), nil), "data.0.snippet.text", want)
	}
}
