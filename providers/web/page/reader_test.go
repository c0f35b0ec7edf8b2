package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/providers/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a web server whose answers are set by path.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	robots   http.HandlerFunc
	pages    map[string]http.HandlerFunc
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{pages: map[string]http.HandlerFunc{}, robots: http.NotFound}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.URL.Path)
		s.mu.Unlock()
		if r.URL.Path == "/robots.txt" {
			s.robots(w, r)
		} else if handle := s.pages[r.URL.Path]; handle != nil {
			handle(w, r)
		} else {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// page answers with a text.
func (s *site) page(path, contentType, text string) {
	s.pages[path] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, text)
	}
}

// documents is a reader of documents that returns what is set.
type documents struct {
	got  string
	with *protocol.Extraction
}

func (d *documents) Extract(_ context.Context, of io.Reader, mediaType string) (*protocol.Extraction, error) {
	body, err := io.ReadAll(of)
	d.got = mediaType + " " + string(body)
	return d.with, err
}

func newReader(t *testing.T) *Reader { return readerWithin(t, 3*time.Second) }

// readerWithin returns a reader whose requests have a timeout.
func readerWithin(t *testing.T, timeout time.Duration) *Reader {
	t.Helper()
	allowed, err := outbound.ParseAllowed([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	return NewReader(outbound.New(outbound.Config{Allowed: allowed, Timeout: timeout, UserAgent: "Turnstone"}), &documents{}, nil)
}

func ignore(string) {}

// read reads a page and returns it, or the code of the failure.
func read(t *testing.T, r *Reader, address string) (*Page, string) {
	t.Helper()
	page, err := r.Read(t.Context(), address, ignore)
	if err == nil {
		return page, ""
	}
	var failure *toolbox.Failure
	if !errors.As(err, &failure) {
		t.Fatalf("%s: %v", address, err)
	}
	if !strings.HasSuffix(failure.Detail, ".") || strings.ToUpper(failure.Detail[:1]) != failure.Detail[:1] {
		t.Errorf("%s: %q is not a sentence", address, failure.Detail)
	}
	return nil, string(failure.Code)
}

const sentence = "The turnstone walks along the edge of the water and turns over stones, weed and shells to find what hides below them. "

func articlePage(body string) string {
	return `<!doctype html><html lang="en"><head><title>Turnstones | The Shore</title><meta property="article:published_time" content="2026-05-01T10:00:00Z"></head><body>
<nav><a href="/a">Home</a> <a href="/b">Birds</a> <a href="/c">Shop now</a></nav>
<article><h1>Turnstones</h1><p>` + strings.Repeat(sentence, 8) + `</p>` + body + `<p>` + strings.Repeat(sentence, 8) + `</p></article>
<footer>Imprint and more links</footer></body></html>`
}

func TestAPageSaysWhichWorkItIs(t *testing.T) {
	s, r := newSite(t), newReader(t)
	head := func(link string) string {
		return `<html><head><title>T</title><link rel="Canonical" href="` + link + `"><meta name="citation_author" content="Ada  Mole"><meta name="citation_author" content="Ben Otter">` +
			`<meta name="Citation_DOI" content="10.5555/7"></head><body><p>` + sentence + `</p>`
	}
	s.page("/own", "text/html", head("/paper?id=7"))
	s.page("/other", "text/html", head("https://journal.example/paper"))
	if page, failed := read(t, r, s.URL+"/own"); failed != "" || page.Canonical != s.URL+"/paper?id=7" || page.Author != "Ada Mole; Ben Otter" || page.DOI != "10.5555/7" {
		t.Errorf("%+v, %q", page, failed)
	}
	if page, failed := read(t, r, s.URL+"/other"); failed != "" || page.Canonical != "" {
		t.Errorf("a page passes itself off as one of another site: %+v, %q", page, failed)
	}
}

func TestAPageIsFetchedOnceThereIsASlotForIt(t *testing.T) {
	s, r := newSite(t), readerWithin(t, time.Minute)
	hurried := &Reader{client: r.client, robots: r.robots, pages: r.pages, parsed: r.parsed, wait: time.Millisecond}
	arrived, proceed := make(chan struct{}), make(chan struct{})
	s.pages["/slow"] = func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-proceed
		_, _ = io.WriteString(w, "tides")
	}
	s.page("/quick", "text/plain", "waves")
	first, stop := context.WithCancel(t.Context())
	var reads sync.WaitGroup
	for i := range maxPages {
		ctx := t.Context()
		if i == 0 {
			ctx = first
		}
		reads.Go(func() {
			if page, err := r.Read(ctx, s.URL+"/slow", ignore); (err != nil) != (i == 0) || err == nil && page.Text != "tides" {
				t.Errorf("read %d: %+v, %v", i, page, err)
			}
		})
		<-arrived
	}
	if _, failed := read(t, hurried, s.URL+"/quick"); failed != "busy" {
		t.Errorf("a page without a slot: %q", failed)
	}
	s.mu.Lock()
	if slices.Contains(s.requests, "/quick") {
		t.Error("a page was fetched without a slot")
	}
	s.mu.Unlock()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(over, s.URL+"/quick", ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that has ended: %v", err)
	}
	stop() // frees a slot
	if page, failed := read(t, r, s.URL+"/quick"); failed != "" || page.Text != "waves" {
		t.Errorf("%+v, %q", page, failed)
	}
	close(proceed)
	reads.Wait()
}

func TestAnArticleIsReadAsMarkdown(t *testing.T) {
	s := newSite(t)
	s.page("/old", "text/html; charset=utf-8", "")
	s.pages["/old"] = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/birds/new", http.StatusMovedPermanently)
	}
	s.page("/birds/new", "text/html; charset=utf-8", articlePage(`<h2>Food</h2><ul><li>Crabs <b>and</b> <a href="../more?x=1#top">more</a></li></ul><p>See <a href="javascript:alert(1)">this</a>.</p><img src="https://a.example/leak?q=1" alt="A bird"><table><tr><th>Month</th><th>Birds</th></tr><tr><td>May</td><td>12</td></tr></table>`))
	var steps []string
	page, err := newReader(t).Read(t.Context(), s.URL+"/old#part", func(label string) { steps = append(steps, label) })
	if err != nil {
		t.Fatal(err)
	}
	if page.URL != s.URL+"/birds/new" || page.Status != 200 || page.MediaType != "text/html" || page.Language != "en" || page.Title != "Turnstones | The Shore" || page.Published != "2026-05-01" || page.Words < 300 || len(page.Notes) != 0 {
		t.Errorf("%+v", page)
	}
	for _, want := range []string{"## Food", "- Crabs **and** [more](" + s.URL + "/more?x=1)", "(image: A bird)", "| May", "See this."} {
		if !strings.Contains(page.Text, want) {
			t.Errorf("%q is missing in %s", want, page.Text)
		}
	}
	for _, no := range []string{"javascript", "leak", "Shop now", "Imprint"} {
		if strings.Contains(page.Text, no) {
			t.Errorf("%q is in %s", no, page.Text)
		}
	}
	if len(steps) != 2 || !strings.HasPrefix(steps[1], "Reading 127.0.0.1") {
		t.Error(steps)
	}
}

func TestAPageThatIsNoArticleIsReadAsAWhole(t *testing.T) {
	s := newSite(t)
	var list strings.Builder
	for i := range 60 {
		fmt.Fprintf(&list, "<div><a href=/%d>Station %d</a> opens at %d</div>", i, i, i%12)
	}
	s.page("/", "text/html", "<title>Stations</title><h1>All stations</h1>"+list.String())
	if page, _ := read(t, newReader(t), s.URL); page == nil || !strings.Contains(page.Text, "[Station 0]") || !strings.Contains(page.Text, "[Station 59]") {
		t.Errorf("%+v", page)
	}
}

func TestWhatReadersDoNotSeeIsNotRead(t *testing.T) {
	s := newSite(t)
	r := newReader(t)
	for i, hidden := range []string{
		`<p style="display:none">SECRET</p>`, `<p style="DISPLAY : NONE !important">SECRET</p>`, `<div hidden>SECRET</div>`, `<div aria-hidden="true"><p>SECRET</p></div>`, `<p style="visibility:hidden">SECRET</p>`,
		`<p style="opacity:0">SECRET</p>`, `<p style="opacity: 0.01">SECRET</p>`, `<p style="font-size:0">SECRET</p>`, `<p style="font-size:1px">SECRET</p>`, `<p style="text-indent:-9999px">SECRET</p>`,
		`<p style="position:absolute;left:-10000px">SECRET</p>`, `<p style="position:fixed;top:-5000px">SECRET</p>`, `<p style="height:0;overflow:hidden">SECRET</p>`, `<p style="width:1px;overflow:hidden">SECRET</p>`,
		`<p style="clip-path: inset(50%)">SECRET</p>`, `<p style="position:absolute;clip: rect(0 0 0 0)">SECRET</p>`, `<p style="transform:scale(0)">SECRET</p>`, `<p style="color:#fff">SECRET</p>`, `<p style="color: white; background: #FFFFFF">SECRET</p>`,
		`<p style="color:transparent">SECRET</p>`, `<p style="color:#123456;background-color:#123456">SECRET</p>`, `<font color=white>SECRET</font>`, `<!-- SECRET -->`, `<script>SECRET</script>`, `<template>SECRET</template>`, `<noscript>SECRET</noscript>`,
		`<style>.x1{display:none} #x2{visibility:hidden}</style><p class="a x1">SECRET</p><p id=x2>SECRET</p>`, `<style>/* } */ p.x{color:red} .x3, .x4 { font-size:0 }</style><p class="x4">SECRET</p>`,
		`<input type=hidden value=SECRET>`, `<input value=SECRET>`, `<a title="SECRET" href="/a">link</a>`, `<p data-x="SECRET">x</p>`, `<iframe srcdoc="SECRET">SECRET</iframe>`, `<svg><text>SECRET</text></svg>`,
		`<select><option>SECRET</option></select>`, `<dialog>SECRET</dialog>`, `<video>SECRET</video>`, `<img src="/SECRET.png">`, `<object>SECRET</object>`, `<math><mtext>SECRET</mtext></math>`,
	} {
		path := fmt.Sprintf("/%d", i)
		for suffix, body := range map[string]string{"": articlePage(hidden), "s": "<title>t</title><p>Some words.</p>" + hidden} {
			s.page(path+suffix, "text/html", body)
			page, code := read(t, r, s.URL+path+suffix)
			if page == nil || strings.Contains(page.Text+page.Title+strings.Join(page.Notes, ""), "SECRET") {
				t.Errorf("%s: %s %+v", hidden, code, page)
			}
		}
	}
	for _, visible := range []string{
		`<p style="color:#fff;background:#000">SEEN</p>`, `<div style="background:navy"><p style="color:white">SEEN</p></div>`, `<div class="dark"><p style="color:white">SEEN</p></div>`, `<p style="opacity:0.9">SEEN</p>`, `<p style="font-size:0.8em">SEEN</p>`,
		`<style>@media print { .m {display:none} }</style><p class=m>SEEN</p>`, `<style>.n{display:none}.n{display:block}</style><p class=n>SEEN</p>`, `<style>.menu .item{display:none}</style><p class=item>SEEN</p>`, `<details><summary>More</summary>SEEN</details>`,
		`<p style="height:0">SEEN</p>`, `<p aria-hidden="false">SEEN</p>`,
	} {
		s.page("/seen", "text/html", "<p>Some words.</p>"+visible)
		if page, _ := read(t, r, s.URL+"/seen"); page == nil || !strings.Contains(page.Text, "SEEN") {
			t.Errorf("%s: %+v", visible, page)
		}
	}
}

func TestAPageSaysWhyItHasNoText(t *testing.T) {
	s := newSite(t)
	r := newReader(t)
	for body, want := range map[string]string{
		`<title>App</title><div id=root></div><script src=/app.js></script>`:                    "loaded by scripts",
		`<title>App</title><noscript>You need to enable JavaScript to run this app.</noscript>`: "loaded by scripts",
		`<title>Sign in</title><form>Your account <input type=password></form>`:                 "signing in",
		`<p>We and our 812 partners use cookies. Accept all? Reject?</p>`:                       "cookies",
		`<p>Checking your browser before you proceed.</p>`:                                      "check for programs",
		`<p>Hello.</p>`: "almost no text",
		``:              "no text",
		`<meta http-equiv="refresh" content="0; url='/next?a=1'">`:                                                     "forwards",
		`<script type="application/ld+json">{"isAccessibleForFree": false}</script><p>` + strings.Repeat(sentence, 30): "subscribers",
	} {
		s.page("/", "text/html", body)
		page, code := read(t, r, s.URL+"/")
		if page == nil || !strings.Contains(strings.Join(page.Notes, " "), want) {
			t.Errorf("%s: %s %+v", body, code, page)
		}
		if want == "forwards" && !strings.HasSuffix(page.Text, s.URL+"/next?a=1") {
			t.Errorf("%s: %+v", body, page)
		}
	}
	if n := slices.IndexFunc(s.requests, func(path string) bool { return path == "/next" }); n >= 0 {
		t.Error("a refresh was followed")
	}
}

func TestStatusesAndTypesAreFailuresWithAReason(t *testing.T) {
	s := newSite(t)
	r := newReader(t)
	for status, want := range map[int]string{401: "sign-in", 403: "sign-in", 404: "no such page", 410: "no such page", 429: "no more requests", 500: "status 500", 503: "status 503", 304: "status 304", 299: ""} {
		s.pages["/"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
		page, err := r.Read(t.Context(), s.URL+"/", ignore)
		if want == "" && page == nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d: %v", status, err)
		}
	}
	for contentType, want := range map[string]string{"image/png": "unsupported_type", "application/zip": "unsupported_type", "video/mp4": "unsupported_type", "font/woff2": "unsupported_type", "x": "", "": "", "text/plain": "", "application/json": "", "text/markdown": ""} {
		s.page("/", contentType, "plain words")
		if page, code := read(t, r, s.URL+"/"); code != want || want == "" && page.Text != "plain words" {
			t.Errorf("%s: %s %+v", contentType, code, page)
		}
	}
}

func TestADocumentIsReadInItsOwnProcess(t *testing.T) {
	s := newSite(t)
	r := newReader(t)
	docs := &documents{with: &protocol.Extraction{State: protocol.TextDone, Text: "One\nTwo\n", Blocks: []protocol.TextBlock{{Kind: protocol.BlockPage, Page: 1, Length: 4}, {Kind: protocol.BlockPage, Page: 2, Offset: 4, Length: 4}}, Pages: 2, Truncated: true}}
	r.documents = docs
	for _, contentType := range []string{"application/pdf", "application/octet-stream"} {
		s.page("/doc/tides.pdf", contentType, "%PDF-1.7 x")
		page, _ := read(t, r, s.URL+"/doc/tides.pdf")
		if page == nil || docs.got != "application/pdf %PDF-1.7 x" || page.Title != "tides.pdf" || len(page.Blocks) != 2 || page.Words != 2 || len(page.Notes) != 1 {
			t.Errorf("%s: %+v, %s", contentType, page, docs.got)
		}
	}
	for want, x := range map[string]*protocol.Extraction{"no_text": {State: protocol.TextNoText, Reason: protocol.TextNothing}, "encrypted": {State: protocol.TextFailed, Reason: protocol.TextEncrypted}, "unreadable": {State: protocol.TextFailed, Reason: protocol.TextDamaged}} {
		docs.with = x
		if _, code := read(t, r, s.URL+"/doc/tides.pdf"); code != want {
			t.Errorf("%s, want %s", code, want)
		}
	}
}

func TestLegacyEncodingsAreRead(t *testing.T) {
	s := newSite(t)
	r := newReader(t)
	const german, russian = "Größe und Länge der Flügel über dem Wasser. ", "Камнешарка переворачивает камни на берегу моря и ищет под ними пищу. "
	const japaneseText, chinese, koreanText = "キョウジョシギは海岸で石をひっくり返して餌を探します。", "翻石鹬在海岸翻动石头寻找食物，它们在北极繁殖。", "꼬까도요는 해안에서 돌을 뒤집어 먹이를 찾습니다. "
	for i, c := range []struct {
		text, contentType, head string
		with                    encoding.Encoding
	}{
		{german, "text/html; charset=iso-8859-1", "", charmap.ISO8859_1},
		{german, "text/html", `<meta charset="windows-1252">`, charmap.Windows1252},
		{german, "text/html", "", charmap.Windows1252},
		{german, "text/html", "", encoding.Nop},
		{german, "text/html", "<!--" + strings.Repeat("x", 3000) + "-->", encoding.Nop},
		{russian, "text/html", "", charmap.KOI8R},
		{russian, "text/html", `<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">`, charmap.Windows1251},
		{japaneseText, "text/html", "", japanese.ShiftJIS},
		{japaneseText, "text/html", "", japanese.EUCJP},
		{chinese, "text/html", "", simplifiedchinese.GB18030},
		{koreanText, "text/html", "", korean.EUCKR},
		{german, "text/plain", "", charmap.Windows1252},
		{japaneseText, "text/plain", "", japanese.ShiftJIS},
	} {
		body := c.head + strings.Repeat(c.text, 20)
		encoded, err := c.with.NewEncoder().String(body)
		if err != nil {
			t.Fatal(err)
		}
		s.page("/", c.contentType, encoded)
		if page, code := read(t, r, s.URL+"/"); page == nil || !strings.Contains(page.Text, strings.TrimSpace(c.text)) {
			t.Errorf("%d: %s %+v", i, code, page)
		}
	}
}

func TestRobotsAreAskedForEachServerOnceAndForEachRedirect(t *testing.T) {
	s := newSite(t)
	s.robots = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "User-agent: Turnstone\nDisallow: /private\n")
	}
	s.page("/open", "text/plain", "open")
	s.page("/private", "text/plain", "private")
	s.pages["/to"] = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/private", http.StatusFound) }
	r := newReader(t)
	for path, want := range map[string]string{"/open": "", "/private": "robots_refused", "/to": "robots_refused"} {
		if _, code := read(t, r, s.URL+path); code != want {
			t.Errorf("%s: %q", path, code)
		}
	}
	asked := 0
	for _, path := range s.requests {
		if path == "/private" {
			t.Error("a refused page was requested")
		}
		if path == "/robots.txt" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("robots.txt was requested %d times", asked)
	}
	r.robots.Put(s.URL, robotsFile{unreachable: "old", expires: time.Now()}, 1)
	if _, code := read(t, r, s.URL+"/open"); code != "" {
		t.Errorf("a file that has expired is used: %q", code)
	}
}

func TestRobotsThatCannotBeReadRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		robots http.HandlerFunc
		want   string
	}{
		"404":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, ""},
		"403":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, ""},
		"500":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "robots_refused"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "robots_refused"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "User")
		}, "robots_refused"},
		"loop": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/robots.txt", http.StatusFound) }, "address_refused"},
		"long": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "User-agent: *\n"+strings.Repeat("#"+strings.Repeat("x", 98)+"\n", 6000)+"Disallow: /\n")
		}, ""},
	} {
		s := newSite(t)
		s.robots = c.robots
		s.page("/", "text/plain", "x")
		r := newReader(t)
		r.client = outbound.New(outbound.Config{Allowed: mustAllow(t), Timeout: 300 * time.Millisecond})
		if _, code := read(t, r, s.URL+"/"); code != c.want {
			t.Errorf("%s: %q", name, code)
		}
	}
}

func mustAllow(t *testing.T) outbound.Allowed {
	t.Helper()
	allowed, err := outbound.ParseAllowed([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	return allowed
}

// hostileTime is far more than a page takes on a busy host computer, and far less than one whose reading is not linear.
const hostileTime = 30 * time.Second

func TestHostilePagesAreReadInBoundedTime(t *testing.T) {
	var bomb bytes.Buffer
	packed := gzip.NewWriter(&bomb)
	for range 100 {
		_, _ = packed.Write(bytes.Repeat([]byte("<div>bomb "), 100_000))
	}
	_ = packed.Close()
	s := newSite(t)
	r := newReader(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) }) // before the server closes
	repeat := func(text string) string { return "<p>x" + strings.Repeat(text, 4<<20/len(text)) }
	for name, body := range map[string]string{
		"long": repeat("word "), "divs": repeat("<div>"), "bold": repeat("<b>"), "links": repeat("<a href=x>y"), "tables": repeat("<table><tr><td>"), "lists": repeat("<ul><li>"), "spans": repeat("<span>a</span>"),
		"deep": strings.Repeat("<div>", 400) + strings.Repeat("words of a text, ", 100_000) + strings.Repeat("</div>", 400), "paragraphs": repeat("<p>" + sentence), "brackets": repeat("<"), "nested": repeat("<div><p>" + sentence + "</div>"),
		"quotes": repeat("<blockquote>q"), "code": repeat("<pre><code>x"), "styles": "<style>" + strings.Repeat(".a{display:none}", 500_000), "at": "<style>" + strings.Repeat("@media{", 500_000), "attributes": "<p " + strings.Repeat("a=b ", 1_000_000) + ">x", "comments": repeat("<!-- "),
		"breaks": repeat("<br>x"), "one line": strings.Repeat("x", 4<<20), "title": "<title>" + strings.Repeat("t", 5<<20), "entities": repeat("&amp;"), "stars": repeat("*_`["),
	} {
		s.page("/"+url.PathEscape(name), "text/html", body)
		s.pages["/"+name] = s.pages["/"+url.PathEscape(name)]
		began := time.Now()
		page, err := r.Read(t.Context(), s.URL+"/"+url.PathEscape(name), ignore)
		if took := time.Since(began); took > hostileTime {
			t.Errorf("%s took %s", name, took)
		} else if took > time.Second {
			t.Logf("%s took %s", name, took)
		}
		var failure *toolbox.Failure
		if err != nil && !errors.As(err, &failure) || err == nil && (len(page.Text) > maxText || len(page.Title) > maxTitle+len("…") || len(page.Notes) == 0) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.pages["/bomb"] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(bomb.Bytes())
	}
	if page, code := read(t, r, s.URL+"/bomb"); code != "" && code != "unreadable" || page != nil && len(page.Text) > maxText {
		t.Errorf("bomb: %s", code)
	}
	s.pages["/slow"] = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<p>")
		w.(http.Flusher).Flush()
		<-release
	}
	if _, code := read(t, r, s.URL+"/slow"); code != "page_unreachable" {
		t.Errorf("slow: %s", code)
	}
}

func TestALongPageIsCutBeforeAHeading(t *testing.T) {
	s := newSite(t)
	var body strings.Builder
	for i := range 60 {
		fmt.Fprintf(&body, "<h2>Part %d</h2><p>%s</p>", i, strings.Repeat(sentence, 50))
	}
	s.page("/", "text/html", body.String())
	page, _ := read(t, newReader(t), s.URL)
	if page == nil || len(page.Text) > maxText || len(page.Text) < maxText*3/4 || !strings.HasSuffix(strings.TrimSpace(page.Text), strings.TrimSpace(sentence)) || len(page.Notes) != 1 {
		t.Fatalf("%d bytes, %v", len(page.Text), page.Notes)
	}
	for text, want := range map[string]int{"abcdefgh": 6, "abcde fgh": 5, "abäöüä": 6, "ab": 2, "": 0} {
		if got := structuralEnd(text, 6); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	s := newSite(t)
	entered := make(chan struct{}, 1)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	s.pages["/"] = func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-release }
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	if _, err := newReader(t).Read(ctx, s.URL+"/", ignore); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
