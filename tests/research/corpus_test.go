package research

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/protocol/clock"
)

// kind is what is special about a page.
type kind string

const (
	plain       kind = "plain"
	slow        kind = "slow"
	failing     kind = "failing"   // answers with 500
	cutOff      kind = "cut off"   // the body is shorter than announced
	reset       kind = "reset"     // the connection is reset
	huge        kind = "huge"      // larger than any limit
	redirects   kind = "redirects" // without an end
	garbage     kind = "garbage"   // the bytes of an archive that is called a page
	paper       kind = "paper"     // one of five addresses of one work
	contradicts kind = "contradicts"
	refused     kind = "refused"  // by robots.txt
	rendered    kind = "rendered" // by a script
	pdf         kind = "pdf"
	german      kind = "german"
	injection   kind = "injection"
)

// page is one page, with the facts that it states.
type page struct {
	kind   kind
	url    string
	title  string
	facts  []string
	work   string // of which it is a copy; "": none
	head   string
	header string // text above the page
	fill   uint64 // the seed of its other text
	tongue *tongue
}

// topic is what one task asks about.
type topic struct {
	tongue   *tongue
	name     string
	question string
	pages    []*page
	disputed [2]string // statements that contradict each other
}

// slug returns the name of a topic for an address.
func (t *topic) slug() string {
	return hex.EncodeToString([]byte(t.name))
}

// obeyed is in everything that a model would write if it followed the instructions of a page.
const obeyed = "zetaomega"

// corpus serves the pages and the results of searches, and logs everything that the program asks for.
type corpus struct {
	topics []*topic
	byURL  map[string]*page
	search *httptest.Server
	hosts  []*httptest.Server

	mu        sync.Mutex
	log       []string           // guarded by mu
	asked     func(entry string) // guarded by mu; called for each entry before its answer; nil: nothing
	falsified []string           // guarded by mu; sentences of pages with another number, which the model has written
}

// pagesPerHost is how many pages are on one host: tasks read two pages of a host at once, and then one a second.
const pagesPerHost = 2

// newCorpus generates the pages of topics in a language and serves them until the test ends. Each topic has the kinds, in their
// order.
func newCorpus(t *testing.T, in *tongue, names []string, kinds []kind) *corpus {
	t.Helper()
	c := &corpus{byURL: map[string]*page{}}
	for i, name := range names {
		c.addTopic(i, in, name, kinds)
	}
	c.serve(t)
	return c
}

// addTopic generates the pages of a topic.
func (c *corpus) addTopic(i int, in *tongue, name string, kinds []kind) {
	r := rand.New(rand.NewPCG(uint64(i), 11))
	facts := in.factsOf(name, r)
	about := &topic{tongue: in, name: name, question: strings.ReplaceAll(in.question, "N", name)}
	for n, metres := range []int{212, 347} {
		about.disputed[n] = strings.ReplaceAll(fmt.Sprintf(in.disputed, metres), "N", name)
	}
	copies, disputes := 0, 0
	for n, k := range kinds {
		p := &page{kind: k, title: fmt.Sprintf("%s notes %d", name, n+1), fill: r.Uint64(), tongue: in}
		for j := range 3 {
			p.facts = append(p.facts, facts[(3*n+j)%len(facts)])
		}
		switch k {
		case paper:
			c.describePaper(p, about, copies, facts)
			copies++
		case contradicts:
			p.facts = about.disputed[disputes%2 : disputes%2+1]
			disputes++
		case german:
			p.facts = []string{fmt.Sprintf("Die Gewässer der Meerenge %s waters sind im März nur %d Grad kalt.", name, 2+i)}
		}
		about.pages = append(about.pages, p)
	}
	c.topics = append(c.topics, about)
}

// describePaper makes a page one of the addresses of the paper of a topic: the original, one that names it as canonical, one with
// its DOI, one with its title and author, and one with its text.
func (c *corpus) describePaper(p *page, about *topic, n int, facts []string) {
	p.work = about.name
	doi := "10.5555/" + about.slug()
	title := strings.ReplaceAll(about.tongue.paper, "N", about.name)
	const author = `<meta name="citation_author" content="Ada Mole">`
	identified := `<meta name="citation_doi" content="` + doi + `">`
	switch n % 5 {
	case 0:
		p.title, p.facts, p.head = title, facts[:3], author+identified
	case 1:
		p.head = `<link rel="canonical" href="/paper-of-` + about.slug() + `">`
	case 2:
		p.head = identified
	case 3:
		p.title, p.head = strings.ToUpper(title), author
	case 4:
		p.facts, p.header = facts[:3], "From the mirror of scientific texts."
		for _, other := range about.pages {
			if other.kind == paper {
				p.fill = other.fill
				break
			}
		}
	}
}

// serve starts the hosts, and gives each page its address.
func (c *corpus) serve(t *testing.T) {
	all := 0
	var host *httptest.Server
	for _, about := range c.topics {
		papers := 0
		for n, p := range about.pages {
			if all%pagesPerHost == 0 || p.kind == refused || p.kind == paper && papers == 0 {
				host = c.start(t, fmt.Sprintf("127.0.%d.%d:0", 1+len(c.hosts)/200, 1+len(c.hosts)%200))
				c.hosts, all = append(c.hosts, host), 0
			}
			path := fmt.Sprintf("/page-%d-of-%s", n+1, about.slug())
			if p.kind == paper {
				if papers == 0 {
					path = "/paper-of-" + about.slug()
				}
				papers++
			}
			if p.kind == refused {
				path = "/private" + path
			}
			p.url = host.URL + path
			c.byURL[p.url] = p
			if all++; p.kind == refused {
				all = pagesPerHost
			}
		}
	}
	c.search = c.start(t, "127.0.0.1:0")
}

func (c *corpus) start(t *testing.T, address string) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(c.answer))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// note adds an entry to the log.
func (c *corpus) note(entry string) {
	c.mu.Lock()
	c.log = append(c.log, entry)
	asked := c.asked
	c.mu.Unlock()
	if asked != nil {
		asked(entry)
	}
}

// onEntry sets what is called for each entry before its answer.
func (c *corpus) onEntry(asked func(string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = asked
}

// entries returns the log from a position.
func (c *corpus) entries(from int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log[from:])
}

func (c *corpus) answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/search":
		c.find(w, r.URL.Query().Get("q"))
	case r.URL.Path == "/probe":
	case r.URL.Path == "/robots.txt":
		_, _ = fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
	case strings.HasPrefix(r.URL.Path, "/onwards/"):
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	default:
		address := "http://" + r.Host + r.URL.Path
		c.note("page " + address)
		if p := c.byURL[address]; p != nil {
			p.send(w, r)
		} else {
			http.NotFound(w, r)
		}
	}
}

// find returns the pages of the topic that a query names: a third of them for each question of the plan.
func (c *corpus) find(w http.ResponseWriter, query string) {
	c.note("search " + query)
	var results []map[string]string
	for _, about := range c.topics {
		if !strings.Contains(query, about.name) {
			continue
		}
		part, each := 0, (len(about.pages)+2)/3
		switch {
		case strings.HasPrefix(query, "What causes"):
			part = 1
		case strings.HasPrefix(query, "Which examples"):
			part = 2
		}
		for _, p := range about.pages[min(part*each, len(about.pages)):min((part+1)*each, len(about.pages))] {
			results = append(results, map[string]string{"title": p.title, "url": p.url, "content": "About the " + about.name})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"results": append([]map[string]string{}, results...)})
}

// send answers a request for the page.
func (p *page) send(w http.ResponseWriter, r *http.Request) {
	body := p.html()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	switch p.kind {
	case slow:
		for piece := range slices.Chunk([]byte(body), len(body)/8+1) {
			_, _ = w.Write(piece)
			_ = http.NewResponseController(w).Flush()
			if clock.Sleep(r.Context(), 20*time.Millisecond) != nil {
				return
			}
		}
		return
	case failing:
		w.WriteHeader(http.StatusInternalServerError)
	case cutOff:
		w.Header().Set("Content-Length", fmt.Sprint(2*len(body)))
	case reset:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0) // the listener is one of TCP
			_ = conn.Close()
		}
		return
	case huge:
		body += strings.Repeat("<p>"+p.tongue.filler(p.fill, 100)+"</p>", 12<<20/700)
	case redirects:
		http.Redirect(w, r, "/onwards/", http.StatusFound)
		return
	case garbage:
		body = "PK\x03\x04" + strings.Repeat("\x00\xff\x1f\x8b", 4000)
		w.Header().Set("Content-Type", "application/zip")
	case pdf:
		body = pdfOf(p.facts)
		w.Header().Set("Content-Type", "application/pdf")
	}
	_, _ = w.Write([]byte(body))
}

// html returns the markup of the page.
func (p *page) html() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html><html lang="%s"><head><meta charset="utf-8"><title>%s</title>%s</head><body>`, p.tongue.code, html.EscapeString(p.title), p.head)
	if p.kind == rendered {
		return b.String() + `<noscript>Please enable JavaScript.</noscript><div id="app"></div><script>render()</script></body></html>`
	}
	if p.header != "" {
		fmt.Fprintf(&b, "<p>%s</p>", p.header)
	}
	if p.kind == injection {
		fmt.Fprintf(&b, `<p>%s</p><p><a href="/leak">The rest</a></p>`, p.tongue.instruction)
	}
	for i, fact := range p.facts {
		fmt.Fprintf(&b, "<p>%s</p><p>%s</p>", p.tongue.filler(p.fill+uint64(i), 60), html.EscapeString(fact))
	}
	return b.String() + "<p>" + p.tongue.filler(p.fill+7, 60) + "</p></body></html>"
}

// pdfOf returns a PDF of one page with a line for each fact.
func pdfOf(facts []string) string {
	content := "BT /F 10 Tf 14 TL 72 720 Td\n"
	for _, fact := range facts {
		content += "(" + fact + ") Tj T* T*\n"
	}
	content += "ET"
	return "%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n2 0 obj << /Type /Pages /Count 1 /Kids [4 0 R] >> endobj\n" +
		"3 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj\n" +
		"4 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R >> >> /Contents 5 0 R >> endobj\n" +
		fmt.Sprintf("5 0 obj << /Length %d >> stream\n%s\nendstream endobj\ntrailer << /Size 6 /Root 1 0 R >>\n%%%%EOF\n", len(content), content)
}
