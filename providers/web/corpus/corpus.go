// Package corpus has a small bundled corpus of web pages for demonstrations, for installations without a search engine. It is
// an engine of package search, and its pages are read without the network. It is never used unless it is configured, and it is
// named as what it is in every result.
package corpus

import (
	"cmp"
	"context"
	"embed"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"turnstone/actors/passages"
	"turnstone/protocol/clip"
	"turnstone/protocol/words"
	"turnstone/providers/web/page"
	"turnstone/providers/web/search"
)

// host is the name in the addresses of the pages. Names below .example have no server.
const host = "corpus.turnstone.example"

//go:embed pages/*.md
var files embed.FS

// Corpus is the corpus. Its methods may be called from any goroutine.
type Corpus struct {
	documents []document
	// stems has the words of all documents without their endings, and passages the part of each document in it. The words of a title count
	// as titleWeight.
	stems    string
	passages []passages.Passage
	having   map[string]int // number of documents with a word
}

// document is a page.
type document struct{ slug, title, text string }

const titleWeight = 3

// New reads the corpus.
func New() (*Corpus, error) {
	names, err := fs.Glob(files, "pages/*.md")
	if err != nil {
		return nil, err
	}
	c := &Corpus{having: map[string]int{}}
	var stems strings.Builder
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		head, text, _ := strings.Cut(string(raw), "\n")
		d := document{slug: strings.TrimSuffix(path.Base(name), ".md"), title: strings.TrimPrefix(head, "# "), text: strings.TrimSpace(text)}
		start, has := stems.Len(), map[string]bool{}
		for _, token := range words.Tokenize(strings.Repeat(d.title+" ", titleWeight) + d.text) {
			word := stem(token.Text)
			stems.WriteString(word + " ")
			if !has[word] {
				has[word] = true
				c.having[word]++
			}
		}
		c.documents = append(c.documents, d)
		c.passages = append(c.passages, passages.Passage{Start: start, End: stems.Len(), Block: len(c.passages)})
	}
	c.stems = stems.String()
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
	terms := c.terms(query)
	ranked := slices.Clone(c.passages)
	passages.Rank(ranked, c.stems, strings.Join(terms, " "))
	slices.SortStableFunc(ranked, func(a, b passages.Passage) int { return cmp.Compare(b.Score, a.Score) })
	var results []search.Result
	for _, found := range ranked[:min(len(ranked), limit)] {
		if found.Score > 0 {
			one := &c.documents[found.Block]
			results = append(results, search.Result{Title: one.title, URL: one.address(), Snippet: one.snippet(terms)})
		}
	}
	return results, nil
}

// terms returns the words of a query that some pages have and others do not.
func (c *Corpus) terms(query string) (terms []string) {
	for _, token := range words.Tokenize(query) {
		if term := stem(token.Text); c.having[term] > 0 && c.having[term]*2 < len(c.documents) {
			terms = append(terms, term)
		}
	}
	return terms
}

func (d *document) address() string { return "https://" + host + "/" + d.slug }

const maxSnippet = 280 // bytes

// snippet returns the sentences from the first one that has a word of the query.
func (d *document) snippet(terms []string) string {
	text := strings.Join(strings.Fields(d.text), " ")
	start := 0
	sentences := strings.SplitAfter(text, ". ")
	for _, sentence := range sentences {
		if slices.ContainsFunc(words.Tokenize(sentence), func(t words.Token) bool { return slices.Contains(terms, stem(t.Text)) }) {
			break
		}
		start += len(sentence)
	}
	if start == len(text) { // only the title has it
		start = 0
	}
	if rest := text[start:]; len(rest) > maxSnippet {
		return clip.Bytes(rest, maxSnippet) + "…"
	}
	return text[start:]
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
