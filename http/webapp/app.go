package webapp

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"mime"
	stdhttp "net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"turnstone/http/response"
	"turnstone/protocol"
)

// shellPaths are the pages of the web app. All of them respond with the same document, which has no user data; the
// router in the app selects the page. mailPaths are those of links in mails, which need no session.
var (
	shellPaths = append([]string{"/", "/c/*", "/p/*", "/library", "/settings"}, mailPaths...)
	mailPaths  = []string{"/reset-password", "/confirm-email"}
)

const (
	assetsPath = "/assets/*"
	robotsPath = "/robots.txt"
	robots     = "User-agent: *\nDisallow: /\n"
	notBuilt   = "<!doctype html><title>Turnstone</title><p>This build does not contain the web app. Build it with <code>make build</code>."
	// retryNotBuilt is the Retry-After of notBuilt, in seconds: until the service was replaced.
	retryNotBuilt = "60"
	nonceBytes    = 16
	// preloadSession makes a browser request the session while it loads the scripts of the app, which then use the response.
	preloadSession = "</auth/session>; rel=preload; as=fetch; crossorigin"
	themeCookie    = "theme"    // light or dark; no cookie: the theme of the system
	localeCookie   = "language" // for example en, ar or ja
	sidebarCookie  = "sidebar"  // shown or hidden; no cookie: shown
	// shellPolicy limits what the app may load and do. Its only policy for trusted types creates the addresses of
	// workers.
	shellPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; img-src 'self' blob: data:; font-src 'self'; " +
		"connect-src 'self'; frame-src %s; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; " +
		"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types turnstone"
	// permissions are the features of browsers that ask the user and that the app does not have. The app itself may ask for the
	// location and for the microphone; a frame may not.
	permissions = "geolocation=(self), microphone=(self), accelerometer=(), camera=(), display-capture=(), gyroscope=(), hid=(), local-fonts=(), magnetometer=(), " +
		"midi=(), payment=(), serial=(), usb=(), xr-spatial-tracking=()"
	// assetPolicy is the policy of asset files. It applies to workers, which obey the policy of their own file instead
	// of that of the page, and load grammars.
	assetPolicy = "default-src 'none'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// serviceWorker begins the name of the service worker, which gets pages and assets for the app, and so needs more.
	serviceWorker       = "/assets/service.worker-"
	serviceWorkerPolicy = assetPolicy + "; connect-src 'self'"
)

// directions are the languages of the app with their writing directions.
var directions = map[string]string{"en": "ltr", "ar": "rtl", "ja": "ltr"}

// App is the built app.
type App struct {
	index   []byte // empty: the app was not built
	assets  map[string]asset
	content string // the sandbox origin; empty: none
	offers  Offers
	fail    func(stdhttp.ResponseWriter, *stdhttp.Request, error)
}

// Offers is what the installation offers, which the app reads from its document.
type Offers struct {
	Content       *url.URL // the address of the sandbox origin; nil: none
	Registration  bool     // whether everybody may register
	Mail          bool     // whether the service sends mails
	Transcription bool     // whether the service turns speech into text
	Providers     []string // the names of the OpenID providers
}

// asset is an immutable file in every encoding that was built.
type asset struct {
	mediaType string
	plain     []byte
	encoded   map[string][]byte // by Content-Encoding
}

// encodings are the encodings that assets can have in addition to the plain file, smallest first, with the extensions
// of their files.
var encodings = []struct{ name, extension string }{{"br", ".br"}, {"gzip", ".gz"}}

// New reads the built app. Without files, or without index.html, the pages of the App show that it was not built.
// fail writes an error as the response.
func New(files fs.FS, offers Offers, fail func(stdhttp.ResponseWriter, *stdhttp.Request, error)) (*App, error) {
	s := &App{assets: map[string]asset{}, offers: offers, fail: fail}
	if content := offers.Content; content != nil {
		s.content = (&url.URL{Scheme: content.Scheme, Host: content.Host}).String()
	}
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

// mediaType returns the media type of a file by its extension. Those of fonts and manifests are listed here, because package
// mime knows them only on some hosts.
func mediaType(name string) string {
	switch extension := path.Ext(name); extension {
	case ".woff", ".woff2":
		return "font/" + extension[1:]
	case ".webmanifest":
		return "application/manifest+json"
	default:
		return mime.TypeByExtension(extension)
	}
}

func (s *App) read(files fs.FS, name string) error {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	plainName, encoding := name, ""
	for _, e := range encodings {
		if of, found := strings.CutSuffix(name, e.extension); found {
			plainName, encoding = of, e.name
		}
	}
	a, known := s.assets["/"+plainName]
	if !known {
		a = asset{mediaType: mediaType(plainName), encoded: map[string][]byte{}}
	}
	if encoding == "" {
		a.plain = content
	} else {
		a.encoded[encoding] = content
	}
	s.assets["/"+plainName] = a
	return nil
}

// Pages returns the handlers of the app, by the patterns of their paths. All of them are public.
func (s *App) Pages() map[string]stdhttp.HandlerFunc {
	pages := map[string]stdhttp.HandlerFunc{assetsPath: s.getAsset, robotsPath: getRobots}
	for _, pattern := range shellPaths {
		pages[pattern] = s.getShell
	}
	return pages
}

func getRobots(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(robots))
}

// getShell responds with the document of the app. It fills in a nonce for styles, the language and theme of the user,
// so that the page does not flash, and the ways to sign in, which are public.
func (s *App) getShell(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	s.writeShell(w, r, stdhttp.StatusOK)
}

// GetUnknown responds to the navigation of a browser to an address that does not exist: with the document of the app,
// which shows that the page was not found.
func (s *App) GetUnknown(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	s.writeShell(w, r, stdhttp.StatusNotFound)
}

func (s *App) writeShell(w stdhttp.ResponseWriter, r *stdhttp.Request, status int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if len(s.index) == 0 {
		w.Header().Set("Retry-After", retryNotBuilt)
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
		language, direction = "en", "ltr" // the app takes the language from the browser
	}
	document := strings.NewReplacer(
		"__nonce__", nonce, "__language__", language, "__direction__", direction,
		"__theme__", cookieOneOf(r, themeCookie, []string{"light", "dark"}, "system"),
		"__session__", strconv.FormatBool(hasSession(r)), "__sidebar__", cookieOneOf(r, sidebarCookie, []string{"shown", "hidden"}, "shown"),
		"__registration__", strconv.FormatBool(s.offers.Registration), "__mail__", strconv.FormatBool(s.offers.Mail), "__transcription__", strconv.FormatBool(s.offers.Transcription),
		"__content__", html.EscapeString(s.content), "__providers__", html.EscapeString(strings.Join(s.offers.Providers, " ")),
	).Replace(string(s.index))
	w.Header().Set("Content-Security-Policy", fmt.Sprintf(shellPolicy, nonce, cmp.Or(s.content, "'none'")))
	w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
	w.Header().Set("Permissions-Policy", permissions)
	w.Header().Set("Vary", "Cookie")
	if hasSession(r) && !slices.Contains(mailPaths, r.URL.Path) {
		w.Header().Set("Link", preloadSession)
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(document))
}

// hasSession reports whether the browser sends the cookie of a session, which may have ended. The document then shows the frame of
// the app until its scripts run.
func hasSession(r *stdhttp.Request) bool {
	return slices.ContainsFunc(r.Cookies(), func(c *stdhttp.Cookie) bool { return strings.TrimPrefix(c.Name, "__Host-") == "session" })
}

func cookieOneOf(r *stdhttp.Request, name string, allowed []string, otherwise string) string {
	cookie, err := r.Cookie(name)
	if err != nil || !slices.Contains(allowed, cookie.Value) {
		return otherwise
	}
	return cookie.Value
}

// getAsset responds with a file whose name contains the hash of its content.
func (s *App) getAsset(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	a, found := s.assets[r.URL.Path]
	if !found || a.plain == nil {
		s.fail(w, r, &protocol.Error{Code: protocol.CodeNotFound})
		return
	}
	header := w.Header()
	header.Set("Content-Type", a.mediaType)
	header.Set("Content-Security-Policy", assetPolicy)
	if strings.HasPrefix(r.URL.Path, serviceWorker) {
		header.Set("Content-Security-Policy", serviceWorkerPolicy)
		header.Set("Service-Worker-Allowed", "/") // its pages are above its own folder
	}
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	content := a.plain
	for _, e := range encodings {
		if made, has := a.encoded[e.name]; has && response.Accepts(r, e.name) {
			header.Set("Content-Encoding", e.name)
			content = made
			break
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content)
}
