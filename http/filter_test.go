package http

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"turnstone/http/route"
	"turnstone/protocol"
)

func TestConversationsAreFilteredByMetadataAndTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	titles := func(query string) (titles []string) {
		t.Helper()
		var list protocol.List[protocol.Conversation]
		c.expect(200, "GET", "/conversations?"+query, nil).into(t, &list)
		for i := range list.Data {
			titles = append(titles, list.Data[i].Title)
		}
		return titles
	}
	for _, title := range []string{"One", "Two"} {
		metadata := route.Object{"app.name": "notes & more", "external_id": title}
		c.expect(201, "PUT", "/conversations/"+protocol.NewConversationID().String(), route.Object{"title": title, "metadata": metadata})
	}
	c.expect(201, "POST", "/conversations", route.Object{"title": "Three"})
	w.database.Admin(t, `update conversations set created_at = '2026-03-01T10:00:00Z', updated_at = '2026-03-02T10:00:00Z' where title = 'One'`)
	both := "metadata[app.name]=" + url.QueryEscape("notes & more")
	for query, want := range map[string][]string{
		both:                                {"Two", "One"},
		both + "&metadata[external_id]=One": {"One"},
		"metadata[external_id]=one":         nil,
		"created_to=2026-03-02":             {"One"},
		"created_from=2026-03-01&created_to=2026-03-01T10:00:00Z":        nil,
		"updated_from=2026-03-02T11:00:00%2B01:00&updated_to=2026-03-03": {"One"},
		"created_from=2026-03-02&" + both:                                {"Two"},
		"metadata[external_id]=One&archived=true":                        nil,
	} {
		if got := titles(query); !slices.Equal(got, want) {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
	var page protocol.List[protocol.Conversation]
	c.expect(200, "GET", "/conversations?limit=1&"+both, nil).into(t, &page)
	next := "/conversations?limit=1&cursor=" + *page.NextCursor
	c.expect(200, "GET", next+"&"+both, nil).into(t, &page)
	if len(page.Data) != 1 || page.Data[0].Title != "One" || page.HasMore {
		t.Errorf("the second page is %+v", page)
	}
	c.expect(422, "GET", next, nil)
	c.expect(422, "GET", next+"&metadata[app.name]=other", nil)
	for _, field := range []string{"created_from", "created_to", "updated_from", "updated_to"} {
		if wrong := c.expect(422, "GET", "/conversations?"+field+"=yesterday", nil); wrong.Errors[0].Field != "query."+field {
			t.Errorf("%s", wrong.body)
		}
	}
}

func TestSearchesAreFilteredByRoleAndTime(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	count := func(query string) int {
		t.Helper()
		var list protocol.List[protocol.SearchResult]
		m.owner.expect(200, "GET", "/search?q=hello&kind=message&"+query, nil).into(t, &list)
		return len(list.Data)
	}
	all, asked := count(""), count("role=user")
	if asked == 0 || asked != all-count("role=assistant") {
		t.Errorf("%d messages, %d of the user", all, asked)
	}
	if count("to=2026-01-01") != 0 || count("from=2026-01-01") != all || count("role=user&from=9998-01-01") != 0 {
		t.Error("the times do not limit the search")
	}
	for _, query := range []string{"role=system", "role=user&kind=file", "from=yesterday", "to=2026-13-01"} {
		m.owner.expect(422, "GET", "/search?q=hello&"+query, nil)
	}
	m.owner.expect(200, "GET", "/projects/"+m.mine["project_id"]+"/search?q=hello&role=user&from=2026-01-01", nil)
}

func TestAQueryHasFiltersOfItsOwn(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	outside := u.conversation("Harbour outside")
	u.storeMessages(outside, "harbour asked", "harbour answered", "from:alice to the harbour")
	project := u.project("Sea and Shore")
	inside := u.do(201, "POST", "/projects/"+project+"/conversations", route.Object{"title": "Harbour inside"}).at("conversation_id").(string)
	year, next := fmt.Sprint(time.Now().UTC().Year()), fmt.Sprint(time.Now().UTC().Year()+1)
	for q, want := range map[string]int{
		"harbour":                                  5,
		"harbour kind:message":                     3,
		"KIND:Messages harbour":                    3,
		"harbour kind:chat":                        2,
		"harbour kind:file":                        0,
		"harbour from:assistant":                   1,
		"from:me harbour":                          2,
		"harbour from:alice":                       1, // no filter: words
		`"harbour kind:file asked"`:                0, // a phrase has no filter
		`"harbour kind:message" kind:message`:      0,
		"harbour kind:nothing":                     0,
		`in:"sea and shore" harbour`:               1,
		"harbour in:" + project:                    1,
		"harbour in:" + outside:                    4,
		"harbour in:nowhere":                       0,
		"harbour after:" + year:                    5,
		"harbour before:" + year:                   0,
		"harbour before:" + next + "-01-01":        5,
		"harbour after:" + next + "-01":            0,
		"harbour kind:file kind:message":           0,
		"harbour from:me kind:file":                0,
		"harbour in:" + project + " in:" + outside: 0,
		"kind:message from:me":                     0, // a query needs a word
		`"harbour asked" kind:message`:             1,
		"harbour -answered kind:message":           2,
		"harbour kind:message after:2020 from:me":  2,
	} {
		if data, _ := u.do(200, "GET", searchPath(q), nil).at("data").([]any); len(data) != want {
			t.Errorf("%s: %d results, want %d", q, len(data), want)
		}
	}
	if data, _ := u.do(200, "GET", searchPath("harbour kind:message")+"&kind=file", nil).at("data").([]any); len(data) != 0 {
		t.Errorf("%d results of two kinds", len(data))
	}
	if data, _ := u.do(200, "GET", "/projects/"+project+"/search?q="+url.QueryEscape("harbour in:"+inside), nil).at("data").([]any); len(data) != 0 {
		t.Errorf("%d results of a conversation in a search of a project", len(data))
	}
	other := signUp(t, s)
	if data, _ := other.do(200, "GET", searchPath("harbour in:"+project), nil).at("data").([]any); len(data) != 0 {
		t.Errorf("another account finds %v", data)
	}
}
