package page

import (
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html"

	"turnstone/providers/outbound"
)

// traits are what is noticed of a page before it is cleaned.
type traits struct {
	title, language string
	refresh         string // the address to which the page forwards its readers
	password        bool   // it has a field for a password
	scripts         bool
	needsScripts    bool // it asks its readers to allow scripts
	subscribers     bool // it says that a part is for subscribers only
	base            string
	canonical       string // the address that the page calls its own
	authors, doi    string
}

var (
	refreshTarget = regexp.MustCompile(`(?i)^\s*[0-9.]*\s*[;,]?\s*(?:url\s*=\s*)?["']?([^"']+)`)
	cookieWords   = regexp.MustCompile(`(?i)cookies?|consent|einwillig|privacy preferences|datenschutz|traceurs|galletas|クッキー`)
	signInPath    = regexp.MustCompile(`(?i)/(login|log-in|signin|sign-in|sso|auth|account/login|accounts/login|users/sign_in|consent)(/|\.|$)`)
	scriptWords   = regexp.MustCompile(`(?i)(enable|activate|allow|requires?|needs?|turn on) (java ?scripts?)|javascript (is|must be|has to be) (required|enabled|disabled|turned on)|javascript aktivieren`)
	robotWords    = regexp.MustCompile(`(?i)(verify(ing)? (that )?you are (a )?human|are you a robot|checking your browser|captcha|unusual traffic)`)
)

// inspect notices the traits of a page.
func (d *document) inspect() {
	var headline string
	for n := range d.root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "html":
			d.seen.language = shortened(attribute(n, "lang"))
		case "title":
			if d.seen.title == "" && (n.Parent == nil || n.Parent.Data != "svg") {
				d.seen.title = TextOf(n)
			}
		case "h1":
			if headline == "" {
				headline = TextOf(n)
			}
		case "base":
			if d.seen.base == "" {
				d.seen.base = attribute(n, "href")
			}
		case "link":
			if d.seen.canonical == "" && strings.EqualFold(strings.TrimSpace(attribute(n, "rel")), "canonical") {
				d.seen.canonical = attribute(n, "href")
			}
		case "meta":
			d.inspectMeta(n)
			if match := refreshTarget.FindStringSubmatch(attribute(n, "content")); match != nil && strings.EqualFold(attribute(n, "http-equiv"), "refresh") && strings.ContainsAny(match[1], "/.") {
				d.seen.refresh = strings.TrimSpace(match[1])
			}
		case "input":
			d.seen.password = d.seen.password || strings.EqualFold(attribute(n, "type"), "password")
		case "script":
			d.seen.scripts = true
			d.seen.subscribers = d.seen.subscribers || attribute(n, "type") == "application/ld+json" && forSubscribers.MatchString(TextOf(n))
		case "noscript":
			d.seen.needsScripts = d.seen.needsScripts || scriptWords.MatchString(TextOf(n))
		}
	}
	if d.seen.title = shortened(d.seen.title); d.seen.title == "" {
		d.seen.title = headline
	}
	if base, err := url.Parse(d.seen.base); err == nil && d.seen.base != "" {
		d.base = d.base.ResolveReference(base)
	}
	if d.seen.refresh != "" {
		d.seen.refresh, _ = d.target(d.seen.refresh)
	}
}

// inspectMeta notices what a page says about the work that it contains.
func (d *document) inspectMeta(n *html.Node) {
	content := shortened(attribute(n, "content"))
	if content == "" {
		return
	}
	switch strings.ToLower(attribute(n, "name")) {
	case "author", "citation_author", "dc.creator":
		if !strings.Contains(d.seen.authors, content) {
			d.seen.authors = shortened(strings.TrimPrefix(d.seen.authors+"; "+content, "; "))
		}
	case "citation_doi", "dc.identifier", "prism.doi":
		if d.seen.doi == "" {
			d.seen.doi = content
		}
	}
}

// canonical returns the address that a page on this host calls its own. Another host does not count: otherwise a page could
// pass itself off as one of another site.
func (d *document) canonical(address *url.URL) string {
	link, err := d.base.Parse(strings.TrimSpace(d.seen.canonical))
	if d.seen.canonical == "" || err != nil || link.Host != address.Host {
		return ""
	}
	return link.String()
}

var forSubscribers = regexp.MustCompile(`(?i)"isAccessibleForFree"\s*:\s*"?false`)

const maxWall = 8 << 10 // bytes of a page in which the words of walls are looked for

// notes says why a page may not have the text that its readers see.
func (t *traits) notes(text string, response *outbound.Response) []string {
	words := len(strings.Fields(text))
	text = text[:min(len(text), maxWall)] // few words can be long
	var notes []string
	if t.subscribers {
		notes = append(notes, "The page says that a part of it is for subscribers only.")
	}
	const wall = 300 // words; walls have fewer
	switch {
	case words < wall && (t.password || signInPath.MatchString(response.URL.Path)):
		notes = append(notes, "This is probably a page for signing in, and not the page that was asked for.")
	case words < wall && robotWords.MatchString(text):
		notes = append(notes, "This is probably a check for programs, and not the page that was asked for.")
	case words < wall/2 && cookieWords.MatchString(text):
		notes = append(notes, "This is probably a question about cookies, and not the page that was asked for.")
	}
	if words >= fewWords {
		return notes
	}
	if t.refresh != "" {
		notes = append(notes, "The page only forwards its readers to another address, which is at its end.")
	}
	if t.scripts || t.needsScripts {
		notes = append(notes, "The page has almost no text: its text is probably loaded by scripts, which are not run.")
	} else if words > 0 {
		notes = append(notes, "The page has almost no text.")
	}
	return notes
}
