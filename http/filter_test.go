package http

import (
	"net/url"
	"slices"
	"testing"

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
