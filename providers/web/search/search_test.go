package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/actors/toolbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "key-that-is-secret"

// entry is a result as a test states it; nil: the field is missing.
type entry struct{ title, url, text, date any }

// engine is an implementation, and how its server answers.
type engine struct {
	name string
	open func(base string, timeout time.Duration) Engine
	// query returns the query of a request, and whether the request is one that the server accepts.
	query func(*http.Request) (string, bool)
	// answer returns the JSON of an answer.
	answer func([]entry) any
	// refusal is an answer with the status 200 that is an error.
	refusal string
}

func fields(e entry, names ...string) map[string]any {
	object := map[string]any{"score": 0.5, "extra": map[string]any{"a": []int{1}}}
	for i, value := range []any{e.title, e.url, e.text, e.date} {
		if value != nil {
			object[names[i]] = value
		}
	}
	return object
}

func list(entries []entry, names ...string) []any {
	all := []any{}
	for _, e := range entries {
		all = append(all, fields(e, names...))
	}
	return all
}

var engines = []engine{
	{
		name: "SearXNG",
		open: func(base string, timeout time.Duration) Engine {
			return NewSearXNG(base+"/", Options{Timeout: timeout})
		},
		query: func(r *http.Request) (string, bool) {
			return r.URL.Query().Get("q"), r.Method == http.MethodGet && r.URL.Path == "/search" && r.URL.Query().Get("format") == "json"
		},
		answer: func(entries []entry) any {
			return map[string]any{"query": "q", "results": list(entries, "title", "url", "content", "publishedDate"), "unresponsive_engines": []any{}}
		},
		refusal: `{"query":"q","results":[],"unresponsive_engines":[["google","CAPTCHA"]]}`,
	},
	{
		name: "Brave",
		open: func(base string, timeout time.Duration) Engine {
			return NewBrave(key, Options{BaseURL: base, Timeout: timeout})
		},
		query: func(r *http.Request) (string, bool) {
			return r.URL.Query().Get("q"), r.Method == http.MethodGet && r.URL.Path == "/res/v1/web/search" && r.Header.Get("X-Subscription-Token") == key
		},
		answer: func(entries []entry) any {
			return map[string]any{"type": "search", "query": map[string]any{"original": "q"}, "web": map[string]any{"results": list(entries, "title", "url", "description", "page_age")}}
		},
		refusal: `{"type":"ErrorResponse","error":{"code":"SUBSCRIPTION_TOKEN_INVALID"}}`,
	},
	{
		name: "Tavily",
		open: func(base string, timeout time.Duration) Engine {
			return NewTavily(key, Options{BaseURL: base, Timeout: timeout})
		},
		query: func(r *http.Request) (string, bool) {
			var body struct {
				Query string `json:"query"`
			}
			err := json.NewDecoder(r.Body).Decode(&body)
			return body.Query, err == nil && r.Method == http.MethodPost && r.URL.Path == "/search" && r.Header.Get("Authorization") == "Bearer "+key
		},
		answer: func(entries []entry) any {
			return map[string]any{"query": "q", "results": list(entries, "title", "url", "content", "published_date")}
		},
		refusal: `{"detail":{"error":"Unauthorized"}}`,
	},
}

// each runs a test for each engine.
func each(t *testing.T, run func(t *testing.T, e *engine, search func(handle http.HandlerFunc) ([]Result, error))) {
	for i := range engines {
		e := &engines[i]
		t.Run(e.name, func(t *testing.T) {
			run(t, e, func(handle http.HandlerFunc) ([]Result, error) {
				server := httptest.NewServer(handle)
				defer server.Close()
				found, err := Engines{e.open(server.URL, 500*time.Millisecond)}.Search(t.Context(), "turnstone & Größe", 5, func(string) {})
				if err != nil {
					return nil, err
				}
				return found.Results, nil
			})
		})
	}
}

func answerWith(value any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(value) }
}

func TestResultsHaveTitleAddressTextAndDate(t *testing.T) {
	each(t, func(t *testing.T, e *engine, search func(http.HandlerFunc) ([]Result, error)) {
		results, err := search(func(w http.ResponseWriter, r *http.Request) {
			if query, valid := e.query(r); !valid || query != "turnstone & Größe" {
				t.Errorf("the request is not valid: %s %q", r.URL, query)
			}
			answerWith(e.answer([]entry{
				{"A <strong>bird</strong> &amp; <b>stones</b>", "https://a.example/x", "It <em>turns</em>\n 1 < 2 &lt;b&gt;", "2026-05-01T10:00:00"},
				{"B", "http://b.example/", "b", nil},
			}))(w, r)
		})
		want := []Result{{"A bird & stones", "https://a.example/x", "It turns 1 < 2 <b>", "2026-05-01"}, {"B", "http://b.example/", "b", ""}}
		if err != nil || fmt.Sprint(results) != fmt.Sprint(want) {
			t.Errorf("%v, %v", results, err)
		}
	})
}

func TestStrangeResultsAreLeftOut(t *testing.T) {
	each(t, func(t *testing.T, e *engine, search func(http.HandlerFunc) ([]Result, error)) {
		entries := []entry{
			{nil, "https://no-title.example/", nil, nil},
			{"no address", nil, "x", nil},
			{"script", "javascript:alert(1)", "x", nil},
			{"file", "file:///etc/passwd", "x", nil},
			{"credentials", "https://a:b@c.example/", "x", nil},
			{"relative", "/a", "x", nil},
			{"number", 7, "x", nil},
			{5, "https://number.example", "x", nil},
			{"date", "https://date.example/", "x", "yesterday"},
			{"long address", "https://a.example/" + strings.Repeat("x", 5000), "x", nil},
			{"twice", "https://twice.example/a", "x", nil},
			{"twice", "https://www.TWICE.example/a/", "x", nil},
			{"twice", "http://twice.example/a#part", "x", nil},
			{strings.Repeat("long ", 1000), "https://long.example/", strings.Repeat("<b", 100_000), nil},
			{"1", "https://1.example", "x", nil},
			{"2", "https://2.example", "x", nil},
		}
		results, err := search(answerWith(e.answer(entries)))
		var addresses []string
		for _, r := range results {
			addresses = append(addresses, r.URL)
			if len(r.Title) > maxTitle+len("…") || len(r.Snippet) > maxSnippet+len("…") || r.Title == "" || r.Date != "" {
				t.Errorf("%+v", r)
			}
		}
		if got := strings.Join(addresses, " "); err != nil || got != "https://no-title.example/ https://date.example/ https://twice.example/a https://long.example/ https://1.example" {
			t.Errorf("%s, %v", got, err)
		}
	})
}

func TestNothingFoundIsNoFailure(t *testing.T) {
	each(t, func(t *testing.T, e *engine, search func(http.HandlerFunc) ([]Result, error)) {
		if results, err := search(answerWith(e.answer(nil))); err != nil || len(results) != 0 {
			t.Errorf("%v, %v", results, err)
		}
	})
	found, err := Engines{NewBrave(key, Options{BaseURL: serve(t, answerWith(map[string]any{"type": "search", "query": map[string]any{}}))})}.Search(t.Context(), "q", 5, func(string) {})
	if err != nil || len(found.Results) != 0 {
		t.Errorf("Brave without web: %v", err)
	}
}

func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

func TestStrangeAnswersAreFailuresThatNameTheirReason(t *testing.T) {
	each(t, func(t *testing.T, e *engine, search func(http.HandlerFunc) ([]Result, error)) {
		text := func(body string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
		}
		status := func(code int) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(code)
				_, _ = io.WriteString(w, `{"error":"`+key+`","results":[]}`)
			}
		}
		for name, c := range map[string]struct {
			handle http.HandlerFunc
			want   string
		}{
			"HTML": {text("<!doctype html><title>Sign in</title>"), "did not answer with JSON"}, "empty": {text(""), "did not answer with JSON"}, "null": {text("null"), "did not answer with JSON"},
			"list": {text("[]"), "did not answer with JSON"}, "cut": {text(`{"results":[{"title":"a`), "did not answer with JSON"}, "text": {text(`"x"`), "did not answer with JSON"},
			"no results": {text("{}"), "without results"}, "error": {text(e.refusal), ""}, "other type": {text(`{"results":"x","web":"x"}`), "cannot be understood"},
			"long": {text(`{"results":["` + strings.Repeat("x", 10<<20) + `"]}`), "too long"}, "deep": {text(strings.Repeat("[", 100_000)), "did not answer with JSON"},
			"401": {status(401), "refused this service"}, "403": {status(403), "refused this service"}, "429": {status(429), "no more requests"}, "402": {status(402), "no more requests"},
			"400": {status(400), "did not accept the query"}, "422": {status(422), "did not accept the query"}, "500": {status(500), "answered with an error"}, "502": {status(502), "answered with an error"},
			"redirect": {func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
			}, "answered with an error"},
			"hangs": {func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() }, "in time"},
			"slow": {func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				_, _ = io.WriteString(w, "{")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}, "in time"},
			"drops": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "cannot be reached"},
		} {
			results, err := search(c.handle)
			var failure *toolbox.Failure
			if !errors.As(err, &failure) || failure.Code != "search_failed" || !strings.Contains(failure.Detail, e.name) || !strings.Contains(failure.Detail, c.want) || !strings.HasSuffix(failure.Detail, ".") || strings.Contains(failure.Detail, key) || strings.Contains(failure.Detail, "127.0.0.1") {
				t.Errorf("%s: %v, %v", name, results, err)
			}
		}
	})
}

func TestTheNextEngineIsAskedWhenOneFails(t *testing.T) {
	down := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	up := serve(t, answerWith(engines[2].answer([]entry{{"T", "https://t.example/", "t", nil}})))
	var steps []string
	all := Engines{NewSearXNG("http://127.0.0.1:1", Options{}), NewBrave(key, Options{BaseURL: down}), NewTavily(key, Options{BaseURL: up}), NewBrave(key, Options{BaseURL: down})}
	found, err := all.Search(t.Context(), "q", 5, func(label string) { steps = append(steps, label) })
	if err != nil || found.Engine != "Tavily" || len(found.Results) != 1 || strings.Join(found.Failed, " ") != "SearXNG cannot be reached. Brave allows no more requests of this service at the moment." {
		t.Errorf("%+v, %v", found, err)
	}
	if got := strings.Join(steps, ", "); got != "Searching with SearXNG, Searching with Brave, Searching with Tavily" {
		t.Error(got)
	}
	_, err = all[:2].Search(t.Context(), "q", 5, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "SearXNG cannot be reached. Brave allows") {
		t.Error(err)
	}
}

func TestASearchEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, e *engine, _ func(http.HandlerFunc) ([]Result, error)) {
		entered := make(chan struct{}, 2)
		base := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			entered <- struct{}{}
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-entered; cancel() }()
		one := e.open(base, time.Minute)
		if _, err := (Engines{one, one}).Search(ctx, "q", 5, func(string) {}); !errors.Is(err, context.Canceled) || len(entered) != 0 {
			t.Errorf("%v; another engine was asked: %t", err, len(entered) != 0)
		}
	})
}
