package http

import (
	"bytes"
	"io/fs"
	stdhttp "net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"turnstone/http/auth"
)

// shellServer returns a Server that serves the files of a web app.
func shellServer(t *testing.T, files fs.FS) *Server {
	t.Helper()
	s, err := New(Config{
		Secrets: [][]byte{bytes.Repeat([]byte("k"), minSecret)}, BaseURL: &url.URL{Scheme: "http", Host: "localhost"}, Web: files,
		ContentURL: &url.URL{Scheme: "http", Host: "127.0.0.1:8082"}, RegistrationOpen: true, Providers: []auth.Provider{{Name: "north"}, {Name: "east"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var smallApp = fstest.MapFS{
	"index.html": {Data: []byte(`<!doctype html><html lang="__language__" dir="__direction__" data-theme="__theme__"><div data-session="__session__" data-sidebar="__sidebar__"></div>` +
		`<meta name="turnstone-registration" content="__registration__"><meta name="turnstone-providers" content="__providers__"><meta name="turnstone-content" content="__content__">` +
		`<style nonce="__nonce__"></style><script type="module" src="/assets/index-abc.js" nonce="__nonce__"></script>`)},
	"assets/index-abc.js":          {Data: []byte("plain")},
	"assets/index-abc.js.br":       {Data: []byte("brotli")},
	"assets/index-abc.js.gz":       {Data: []byte("gzip")},
	"assets/app.webmanifest":       {Data: []byte("{}")},
	"assets/service.worker-abc.js": {Data: []byte("plain")},
	"assets/lonely.svg":            {Data: []byte("<svg/>")},
}

func getPage(s *Server, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(stdhttp.MethodGet, "http://localhost"+path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

var nonceOf = regexp.MustCompile(`'nonce-([A-Za-z0-9+/]{22})'`)

func TestEveryPageOfTheAppIsOneDocumentThatRunsOnlyItsOwnScripts(t *testing.T) {
	t.Parallel()
	s := shellServer(t, smallApp)
	seen := map[string]bool{}
	for _, path := range []string{"/", "/c/conv_01h2xcejqtf2nbrexx3vqjhp41", "/p/anything", "/library", "/settings", "/?x=1"} {
		w := getPage(s, path)
		if w.Code != stdhttp.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Fatalf("%s: %d %s", path, w.Code, w.Header().Get("Content-Type"))
		}
		nonce := nonceOf.FindStringSubmatch(w.Header().Get("Content-Security-Policy"))
		if nonce == nil || seen[nonce[1]] {
			t.Fatalf("%s: the policy has no new nonce: %s", path, w.Header().Get("Content-Security-Policy"))
		}
		seen[nonce[1]] = true
		want := "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-" + nonce[1] + "'; img-src 'self' blob: data:; font-src 'self'; " +
			"connect-src 'self'; frame-src http://127.0.0.1:8082; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; " +
			"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types turnstone"
		if got := w.Header().Get("Permissions-Policy"); !strings.HasPrefix(got, "geolocation=(self), microphone=(self), ") || !strings.Contains(got, "camera=(), ") {
			t.Errorf("%s: Permissions-Policy is %q", path, got)
		}
		if got := w.Header().Get("Content-Security-Policy"); got != want {
			t.Errorf("%s: %s", path, got)
		}
		if strings.Count(w.Body.String(), `nonce="`+nonce[1]+`"`) != 2 || strings.Contains(w.Body.String(), "__") {
			t.Errorf("%s: a placeholder was not replaced: %s", path, w.Body)
		}
		if w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be stored by caches: %s", path, w.Header().Get("Cache-Control"))
		}
	}
}

// TestABrowserThatNavigatesToAnUnknownAddressGetsTheApp checks that the app shows its own page for an unknown address,
// and that every other client gets a problem document there.
func TestABrowserThatNavigatesToAnUnknownAddressGetsTheApp(t *testing.T) {
	t.Parallel()
	s := shellServer(t, smallApp)
	const document = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, path := range []string{"/c", "/settings/", "/login", "/no/such/page", "/chat"} {
		for _, headers := range [][]string{{"Accept", document, "Sec-Fetch-Mode", "navigate"}, {"Accept", document}} {
			w := getPage(s, path, headers...)
			if w.Code != stdhttp.StatusNotFound || !strings.Contains(w.Body.String(), "/assets/index-abc.js") {
				t.Errorf("%s %v: %d %s", path, headers, w.Code, w.Body)
			}
			if w.Header().Get("Cache-Control") != "no-store" || !nonceOf.MatchString(w.Header().Get("Content-Security-Policy")) {
				t.Errorf("%s %v: headers %v", path, headers, w.Header())
			}
			if w.Header().Get("Allow") != "" {
				t.Errorf("%s %v reveals its methods: %v", path, headers, w.Header())
			}
		}
		for _, headers := range [][]string{nil, {"Accept", "*/*"}, {"Accept", "application/json"}, {"Accept", document, "Sec-Fetch-Mode", "cors"}} {
			if w := getPage(s, path, headers...); w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %v: %s", path, headers, w.Header().Get("Content-Type"))
			}
		}
	}
	w := getPage(s, "/assets/none.js", "Accept", document, "Sec-Fetch-Mode", "navigate")
	if w.Code != stdhttp.StatusNotFound || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("a missing asset: %d %s", w.Code, w.Header().Get("Content-Type"))
	}
}

// preloaded is the Link header with which the browser requests the session while it loads the scripts of the page.
const preloaded = "</auth/session>; rel=preload; as=fetch; crossorigin"

func TestTheDocumentIsServedWithTheUsersThemeAndLanguage(t *testing.T) {
	t.Parallel()
	s := shellServer(t, smallApp)
	for cookie, want := range map[string]string{
		"":                         `<html lang="en" dir="ltr" data-theme="system">`,
		"theme=dark; language=ar":  `<html lang="ar" dir="rtl" data-theme="dark">`,
		"theme=light; language=ja": `<html lang="ja" dir="ltr" data-theme="light">`,
		`theme="><script>alert(1)</script>; language=en" onload="`: `<html lang="en" dir="ltr" data-theme="system">`,
	} {
		w := getPage(s, "/", "Cookie", cookie)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("cookie %q: %s", cookie, w.Body)
		}
	}
	for cookie, want := range map[string]string{
		"":                                 `data-session="false" data-sidebar="shown"`,
		"__Host-session=x; sidebar=hidden": `data-session="true" data-sidebar="hidden"`,
		`session=x; sidebar="><script>`:    `data-session="true" data-sidebar="shown"`,
	} {
		if w := getPage(s, "/", "Cookie", cookie); !strings.Contains(w.Body.String(), want) {
			t.Errorf("cookie %q: %s", cookie, w.Body)
		}
	}
	for path, want := range map[string]string{"/": preloaded, "/c/conv_1": preloaded, "/no/such/page": preloaded, "/reset-password": "", "/confirm-email": ""} {
		for cookie, want := range map[string]string{"session=x": want, "__Host-session=x": want, "theme=dark": ""} {
			if got := getPage(s, path, "Cookie", cookie, "Accept", "text/html", "Sec-Fetch-Mode", "navigate").Header().Get("Link"); got != want {
				t.Errorf("%s with the cookie %q: Link is %q, want %q", path, cookie, got, want)
			}
		}
	}
	if body := getPage(s, "/").Body.String(); !strings.Contains(body, `content="true"`) || !strings.Contains(body, `content="east north"`) {
		t.Errorf("the document does not list the ways to sign in: %s", body)
	}
}

func TestAssetsAreImmutableAndCompressedAsTheClientAccepts(t *testing.T) {
	t.Parallel()
	s := shellServer(t, smallApp)
	for accepted, want := range map[string][2]string{
		"gzip, deflate, br, zstd": {"br", "brotli"}, "gzip": {"gzip", "gzip"}, "": {"", "plain"},
		"br;q=0, gzip;q=0.5": {"gzip", "gzip"}, "identity": {"", "plain"},
	} {
		w := getPage(s, "/assets/index-abc.js", "Accept-Encoding", accepted)
		if w.Code != stdhttp.StatusOK || w.Header().Get("Content-Encoding") != want[0] || w.Body.String() != want[1] {
			t.Errorf("%q: %d %q %q", accepted, w.Code, w.Header().Get("Content-Encoding"), w.Body)
		}
		if got := w.Header().Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%q: Cache-Control %s", accepted, got)
		}
		if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'; script-src 'self';") {
			t.Errorf("%q: a worker cannot load scripts: %s", accepted, got)
		}
		if got := w.Header().Get("Content-Type"); got != "text/javascript; charset=utf-8" {
			t.Errorf("%q: Content-Type %s", accepted, got)
		}
	}
	if w := getPage(s, "/assets/lonely.svg", "Accept-Encoding", "br"); w.Body.String() != "<svg/>" || w.Header().Get("Content-Type") != "image/svg+xml" {
		t.Errorf("an asset that is not compressed: %q %s", w.Body, w.Header().Get("Content-Type"))
	}
	if w := getPage(s, "/assets/app.webmanifest"); w.Body.String() != "{}" || w.Header().Get("Content-Type") != "application/manifest+json" {
		t.Errorf("the manifest: %q %s", w.Body, w.Header().Get("Content-Type"))
	}
	if w := getPage(s, "/assets/service.worker-abc.js"); w.Header().Get("Service-Worker-Allowed") != "/" ||
		!strings.HasSuffix(w.Header().Get("Content-Security-Policy"), "; connect-src 'self'") {
		t.Errorf("the service worker: %v", w.Header())
	}
	for _, path := range []string{"/assets/none.js", "/assets/", "/assets/../index.html", "/assets/index-abc.js.br"} {
		if w := getPage(s, path); w.Code != stdhttp.StatusNotFound || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, %s", path, w.Code, w.Header().Get("Cache-Control"))
		}
	}
}

func TestABuildWithoutTheAppReportsIt(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]fs.FS{"none": nil, "not built": fstest.MapFS{".gitkeep": {}}} {
		w := getPage(shellServer(t, files), "/")
		if w.Code != stdhttp.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "make build") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestRobotsTxtDisallowsEveryPath(t *testing.T) {
	t.Parallel()
	if w := getPage(shellServer(t, nil), "/robots.txt"); w.Code != stdhttp.StatusOK || w.Body.String() != "User-agent: *\nDisallow: /\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
