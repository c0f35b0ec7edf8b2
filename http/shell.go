package http

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"mime"
	stdhttp "net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"turnstone/protocol"
)

// shellPaths are the pages of the web app. All answer with one document that holds nobody's data; the app's own router
// tells them apart.
var shellPaths = []string{"/", "/c/*", "/p/*", "/library", "/settings"}

const (
	assetsPath   = "/assets/*"
	robotsPath   = "/robots.txt"
	robots       = "User-agent: *\nDisallow: /\n"
	notBuilt     = "<!doctype html><title>Turnstone</title><p>This build has no web app: <code>make build</code> makes one."
	nonceBytes   = 16
	themeCookie  = "theme"    // light or dark; none: the system's
	localeCookie = "language" // as en, ar, ja
	// shellPolicy: what the app may load and do. Its one policy for trusted types makes the addresses of workers.
	shellPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; img-src 'self' blob: data:; font-src 'self'; " +
		"connect-src 'self'; frame-src 'none'; worker-src 'self'; base-uri 'none'; form-action 'self'; " +
		"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types turnstone"
	// assetPolicy: a worker obeys the policy of its own file, not of its page, and loads grammars.
	assetPolicy = "default-src 'none'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// directions are the languages that the app speaks, and how they are written.
var directions = map[string]string{"en": "ltr", "ar": "rtl", "ja": "ltr"}

// shell is the app as it was built.
type shell struct {
	index  []byte // empty: the app was not built
	assets map[string]asset
}

// asset is one immutable file in every encoding that was made of it.
type asset struct {
	mediaType string
	plain     []byte
	encoded   map[string][]byte // by Content-Encoding
}

// encodings are what assets are made in beside the plain one, the smallest first, with their files' endings.
var encodings = []struct{ name, ending string }{{"br", ".br"}, {"gzip", ".gz"}}

// newShell reads the app; no files, or none that were built, are an app that says so.
func newShell(files fs.FS) (*shell, error) {
	s := &shell{assets: map[string]asset{}}
	if files == nil {
		return s, nil
	}
	index, err := fs.ReadFile(files, "index.html")
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.index = index
	names, err := fs.Glob(files, "assets/*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := s.read(files, name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *shell) read(files fs.FS, name string) error {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	plainName, encoding := name, ""
	for _, e := range encodings {
		if of, found := strings.CutSuffix(name, e.ending); found {
			plainName, encoding = of, e.name
		}
	}
	a, known := s.assets["/"+plainName]
	if !known {
		a = asset{mediaType: mime.TypeByExtension(path.Ext(plainName)), encoded: map[string][]byte{}}
	}
	if encoding == "" {
		a.plain = content
	} else {
		a.encoded[encoding] = content
	}
	s.assets["/"+plainName] = a
	return nil
}

// mountShell adds the pages of the app to the router. They are public and no part of the API's document.
func (s *Server) mountShell() {
	public := Policy{Public: true, NoStore: true}
	add := func(pattern string, handler stdhttp.HandlerFunc) {
		s.policies["GET "+pattern] = public
		s.router.Get(pattern, func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
			ex := exchangeOf(r.Context())
			ex.pattern, ex.public = pattern, true
			handler(w, r)
		})
	}
	for _, pattern := range shellPaths {
		add(pattern, s.getShell)
	}
	add(assetsPath, s.getAsset)
	add(robotsPath, func(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(robots))
	})
}

// getShell answers with the app's document: a nonce for its styles, the look that the reader chose, so that it does not
// flash, and what a stranger may know of signing in.
func (s *Server) getShell(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if len(s.shell.index) == 0 {
		w.WriteHeader(stdhttp.StatusServiceUnavailable)
		_, _ = w.Write([]byte(notBuilt))
		return
	}
	random := make([]byte, nonceBytes)
	_, _ = rand.Read(random) // never fails
	nonce := base64.RawStdEncoding.EncodeToString(random)
	language := cookieOneOf(r, localeCookie, slices.Collect(maps.Keys(directions)), "")
	direction := directions[language]
	if language == "" {
		language, direction = "en", "ltr" // the app asks the browser
	}
	document := strings.NewReplacer(
		"__nonce__", nonce, "__language__", language, "__direction__", direction,
		"__theme__", cookieOneOf(r, themeCookie, []string{"light", "dark"}, "system"),
		"__registration__", strconv.FormatBool(s.RegistrationOpen), "__providers__", html.EscapeString(strings.Join(s.providers.names(), " ")),
	).Replace(string(s.shell.index))
	w.Header().Set("Content-Security-Policy", fmt.Sprintf(shellPolicy, nonce))
	w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
	w.Header().Set("Vary", "Cookie")
	_, _ = w.Write([]byte(document))
}

func cookieOneOf(r *stdhttp.Request, name string, allowed []string, otherwise string) string {
	cookie, err := r.Cookie(name)
	if err != nil || !slices.Contains(allowed, cookie.Value) {
		return otherwise
	}
	return cookie.Value
}

// getAsset answers with a file whose name holds the hash of its content.
func (s *Server) getAsset(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	a, found := s.shell.assets[r.URL.Path]
	if !found || a.plain == nil {
		s.fail(w, r, &protocol.Error{Code: protocol.CodeNotFound})
		return
	}
	header := w.Header()
	header.Set("Content-Type", a.mediaType)
	header.Set("Content-Security-Policy", assetPolicy)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	content := a.plain
	for _, e := range encodings {
		if made, has := a.encoded[e.name]; has && accepts(r, e.name) {
			header.Set("Content-Encoding", e.name)
			content = made
			break
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content)
}

// accepts reads Accept-Encoding as browsers write it: names, with q=0 for what is refused.
func accepts(r *stdhttp.Request, encoding string) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(header, ",") {
			name, quality, weighed := strings.Cut(strings.ReplaceAll(item, " ", ""), ";q=")
			if strings.EqualFold(name, encoding) {
				weight, err := strconv.ParseFloat(quality, 64)
				return !weighed || err == nil && weight > 0
			}
		}
	}
	return false
}
