package corpus

import (
	"net/url"
	"strings"
	"testing"

	"turnstone/providers/web/page"
	"turnstone/providers/web/search"
)

var (
	_ search.Engine = (*Corpus)(nil)
	_ page.Local    = (*Corpus)(nil)
)

func TestTheBestPageOfTheCorpusIsFoundFirst(t *testing.T) {
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.documents); n < 30 || n > 40 {
		t.Errorf("%d pages", n)
	}
	for query, want := range map[string]string{
		"What does the ruddy turnstone eat?": "ruddy-turnstone", "spring tide": "spring-and-neap-tides", "longest non-stop flight of a bird": "bar-tailed-godwit", "why are there tides": "why-tides",
		"Bay of Fundy": "tidal-range", "TURNSTONE_SEARCH_PROVIDERS": "using-turnstone-web", "how do waves break": "waves", "horseshoe crab blood": "horseshoe-crabs", "Wadden Sea": "wadden-sea",
	} {
		found, err := c.Search(t.Context(), query, 5)
		if err != nil || len(found) == 0 || found[0].URL != "https://corpus.turnstone.example/"+want || found[0].Snippet == "" {
			t.Errorf("%s: %+v, %v", query, found, err)
		}
	}
	for _, query := range []string{"", "the of and", "quarterly revenue spreadsheet", "\x00\xff"} {
		if found, err := c.Search(t.Context(), query, 5); err != nil || len(found) != 0 {
			t.Errorf("%q: %+v, %v", query, found, err)
		}
	}
}

func TestEachPageOfTheCorpusIsReadAndSaysWhereItIsFrom(t *testing.T) {
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range c.documents {
		got, _ := c.Page(parse(t, d.address()))
		if got == nil || got.Status != 200 || got.Title == "" || got.Words < 60 || !strings.Contains(strings.Join(got.Notes, ""), "bundled corpus") {
			t.Errorf("%s: %+v", d.slug, got)
		}
	}
	for address, want := range map[string]bool{"https://corpus.turnstone.example/none": true, "https://example.org/waves": false} {
		if got, known := c.Page(parse(t, address)); got != nil || known != want {
			t.Errorf("%s: %+v, %t", address, got, known)
		}
	}
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
