package sandbox

import (
	stdhttp "net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestTheSandboxOriginServesOnePageThatLoadsNothing(t *testing.T) {
	app, _ := url.Parse("https://chat.example/")
	handler := New(app)
	ask := func(method, target string) *stdhttp.Response {
		w := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), method, target, stdhttp.NoBody)
		request.Header.Set("Cookie", "session=secret")
		handler.ServeHTTP(w, request)
		return w.Result()
	}
	for target, status := range map[string]int{"/": 200, "/?leak": 404, "/other": 404, "/assets/x.js": 404, "/..%2f": 404} {
		got := ask("GET", target)
		csp := got.Header.Get("Content-Security-Policy")
		for _, part := range []string{
			"default-src 'none';", "script-src 'unsafe-inline' blob:;", "style-src 'unsafe-inline';", "img-src data: blob:;", "font-src data:;", "connect-src 'none';", "form-action 'none';",
			"base-uri 'none';", "frame-ancestors https://chat.example", "frame-src 'none';", "worker-src 'none';", "require-trusted-types-for 'script'",
		} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy has no %s: %s", target, part, csp)
			}
		}
		if media := got.Header.Get("Content-Type"); status == 404 && media != "application/problem+json" {
			t.Errorf("%s: %s", target, media)
		}
		if got.StatusCode != status || got.Header.Get("Set-Cookie") != "" || got.Header.Get("Access-Control-Allow-Origin") != "" ||
			got.Header.Get("Referrer-Policy") != "no-referrer" || got.Header.Get("X-DNS-Prefetch-Control") != "off" {
			t.Errorf("%s: %d %v", target, got.StatusCode, got.Header)
		}
	}
	if got := ask("POST", "/"); got.StatusCode != 405 {
		t.Errorf("POST: %d", got.StatusCode)
	}
	if strings.Count(frame, "__app__") != 1 || strings.Contains(frame, "http:") || strings.Contains(frame, "https:") || strings.Contains(frame, "href=") {
		t.Error("the page names another resource, or not the app")
	}
}
