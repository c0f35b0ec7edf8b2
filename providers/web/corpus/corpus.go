// Package corpus has a small bundled corpus of web pages for demonstrations, for installations without a search engine. It is
// an engine of package search, and its pages are read without the network. It is never used unless it is configured, and it is
// named as what it is in every result.
package corpus

import (
	"cmp"
	"context"
	"embed"
	"io/fs"
	"math"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"turnstone/protocol/words"
	"turnstone/providers/web/page"
	"turnstone/providers/web/search"
)

// host is the name in the addresses of the pages. Names below .example have no server.
const host = "corpus.turnstone.example"

//go:embed pages/*.md
var files embed.FS

// Corpus is the corpus. Its methods may be called from any goroutine.
type Corpus struct{ documents []document }

// document is a page and the number of times that it has each word. The words of its title count as titleWeight.
type document struct {
	slug, title, text string
	counts            map[string]int
	length            int
}

const titleWeight = 3

// New reads the corpus.
func New() (*Corpus, error) {
	names, err := fs.Glob(files, "pages/*.md")
	if err != nil {
		return nil, err
	}
	c := &Corpus{}
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		head, text, _ := strings.Cut(string(raw), "\n")
		d := document{slug: strings.TrimSuffix(path.Base(name), ".md"), title: strings.TrimPrefix(head, "# "), text: strings.TrimSpace(text), counts: map[string]int{}}
		for _, token := range words.Tokenize(strings.Repeat(d.title+" ", titleWeight) + d.text) {
			d.counts[stem(token.Text)]++
			d.length++
		}
		c.documents = append(c.documents, d)
	}
	return c, nil
}

// stem returns a word without the ending of a plural, so that tides finds tide.
func stem(word string) string {
	if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") {
		return word[:len(word)-1]
	}
	return word
}

// Name implements search.Engine.
func (c *Corpus) Name() string { return "the bundled corpus" }

// Search implements search.Engine. Pages are ranked by BM25.
func (c *Corpus) Search(ctx context.Context, query string, limit int) ([]search.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type ranked struct {
		*document
		score float64
	}
	var found []ranked
	terms := c.terms(query)
	for i := range c.documents {
		if score := c.score(&c.documents[i], terms); score > 0 {
			found = append(found, ranked{&c.documents[i], score})
		}
	}
	slices.SortStableFunc(found, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	var results []search.Result
	for _, one := range found[:min(len(found), limit)] {
		results = append(results, search.Result{Title: one.title, URL: one.address(), Snippet: one.snippet(terms)})
	}
	return results, nil
}

// terms returns the words of a query that some pages have and others do not, with their weights.
func (c *Corpus) terms(query string) map[string]float64 {
	terms := map[string]float64{}
	for _, token := range words.Tokenize(query) {
		term, having := stem(token.Text), 0
		for i := range c.documents {
			if c.documents[i].counts[term] > 0 {
				having++
			}
		}
		if n := len(c.documents); having > 0 && having*2 < n {
			terms[term] = math.Log(1 + (float64(n-having)+0.5)/(float64(having)+0.5))
		}
	}
	return terms
}

func (c *Corpus) score(d *document, terms map[string]float64) float64 {
	const k, b, average = 1.2, 0.75, 130.0
	score := 0.0
	for term, weight := range terms {
		n := float64(d.counts[term])
		score += weight * n * (k + 1) / (n + k*(1-b+b*float64(d.length)/average))
	}
	return score
}

func (d *document) address() string { return "https://" + host + "/" + d.slug }

const maxSnippet = 280 // bytes

// snippet returns the sentences from the first one that has a word of the query.
func (d *document) snippet(terms map[string]float64) string {
	text := strings.Join(strings.Fields(d.text), " ")
	start := 0
	sentences := strings.SplitAfter(text, ". ")
	for _, sentence := range sentences {
		if slices.ContainsFunc(words.Tokenize(sentence), func(t words.Token) bool { return terms[stem(t.Text)] > 0 }) {
			break
		}
		start += len(sentence)
	}
	if start == len(text) { // only the title has it
		start = 0
	}
	end := min(start+maxSnippet, len(text))
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	if end == len(text) {
		return text[start:end]
	}
	return text[start:end] + "…"
}

// Page implements page.Local.
func (c *Corpus) Page(address *url.URL) (*page.Page, bool) {
	if !strings.EqualFold(address.Hostname(), host) {
		return nil, false
	}
	for i := range c.documents {
		if d := &c.documents[i]; "/"+d.slug == strings.TrimSuffix(address.Path, "/") {
			return &page.Page{
				URL: d.address(), Status: 200, MediaType: "text/markdown", Language: "en", Title: d.title, Text: d.text, Words: len(strings.Fields(d.text)),
				Notes: []string{"This page is from the bundled corpus of this service, and not from the web."},
			}, true
		}
	}
	return nil, true
}
