package manual

import (
	"errors"
	"io"
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheDocumentationOriginServesItsPagesWithoutCookiesAndScripts(t *testing.T) {
	handler, err := New(fstest.MapFS{
		"one.md":     {Data: []byte("# The first page\n\n## A part\n\n[two](adr/two.md#x), [out](../deploy/README.md), [part](#a-part), [far](https://example.org/a)\n\n| a | b |\n|---|---|\n| 1 | <script>x</script> |\n")},
		"adr/two.md": {Data: []byte("# Two & more\n\n[one](../one.md)\n")},
	}, map[string]Document{
		"/openapi.json": func() ([]byte, error) { return []byte(`{"openapi": "3.1.0"}`), nil },
		"/broken.json":  func() ([]byte, error) { return nil, errors.New("x") },
	})
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]struct {
		status int
		media  string
		texts  []string
	}{
		"GET /":                 {200, "text/html; charset=utf-8", []string{`<a href="/one">The first page</a>`, `<a href="/adr/two">Two &amp; more</a>`}},
		"GET /one":              {200, "text/html; charset=utf-8", []string{`<title>The first page</title>`, `<a href="/adr/two#x">two</a>, out, `, `<a href="#a-part">`, `<h2 id="a-part">`, `<a href="https://example.org/a">`, "<td>1</td>"}},
		"GET /adr/two":          {200, "text/html; charset=utf-8", []string{`<a href="/one">one</a>`}},
		"HEAD /one":             {200, "text/html; charset=utf-8", nil},
		"GET /openapi.json":     {200, "application/json", []string{`"3.1.0"`}},
		"GET /style.css":        {200, "text/css; charset=utf-8", []string{"font"}},
		"GET /broken.json":      {500, "application/problem+json", []string{`"request_id":"req_`}},
		"GET /one.md":           {404, "application/problem+json", []string{`"request_id":"req_`}},
		"GET /..%2fsecret":      {404, "application/problem+json", []string{`"request_id":"req_`}},
		"POST /one":             {405, "application/problem+json", []string{`"request_id":"req_`}},
		"OPTIONS /openapi.json": {405, "application/problem+json", []string{`"request_id":"req_`}},
	} {
		method, target, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, target, stdhttp.NoBody)
		r.Header.Set("Origin", "https://example.org")
		handler.ServeHTTP(w, r)
		got := w.Result()
		body, _ := io.ReadAll(got.Body)
		if got.StatusCode != want.status || got.Header.Get("Content-Type") != want.media || method == "HEAD" && len(body) > 0 {
			t.Errorf("%s: %d %v", request, got.StatusCode, got.Header)
		}
		for _, text := range want.texts {
			if !strings.Contains(string(body), text) {
				t.Errorf("%s has no %s:\n%s", request, text, body)
			}
		}
		if strings.Contains(string(body), "<script") || got.Header.Get("Set-Cookie") != "" || got.Header.Get("Access-Control-Allow-Origin") != "" ||
			!strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "default-src 'none'; style-src 'self';") || got.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v\n%s", request, got.Header, body)
		}
	}
}
