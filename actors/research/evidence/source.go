package evidence

import (
	"slices"
	"strconv"
	"strings"

	"turnstone/actors/passages"
)

// Candidate is a page that may be a source. Each of its fields may be empty.
type Candidate struct {
	URL       string
	Canonical string // the address that the page calls its own
	Title     string
	Author    string
	DOI       string
	Text      string
	Print     *Fingerprint // of the text; nil: that of Text
}

func (c *Candidate) fingerprint() Fingerprint {
	if c.Print != nil {
		return *c.Print
	}
	return FingerprintOf(c.Text)
}

// Sources is a set of sources without duplicates. Two candidates are one source if they have the same canonical address, the
// same DOI, the same title and author, or near texts, or if a chain of such pairs connects them. So the order of the Adds does
// not change which candidates are one source; it only changes the indexes.
//
// The same Adds give the same set, so it is rebuilt from the journal of its candidates. It does not keep their texts. Its zero
// value is ready to use.
type Sources struct {
	parent []int          // of each source: itself, or the source that it was merged into, which has a smaller index
	keys   map[string]int // to sources
	prints []sourcePrint
}

type sourcePrint struct {
	Fingerprint
	source int
}

// Add adds a candidate. index is its source; merged reports that the source was known. A candidate that connects two sources
// merges them into the one with the smaller index: Find returns it for both.
func (s *Sources) Add(c Candidate) (index int, merged bool) {
	if s.keys == nil {
		s.keys = map[string]int{}
	}
	keys, print := keysOf(c), c.fingerprint()
	if print.Count > 0 {
		keys = append(keys, "text "+strconv.FormatUint(print.Exact, 36)+" "+strconv.Itoa(print.Count))
	}
	same := s.near(print)
	for _, key := range keys {
		if other, known := s.keys[key]; known {
			same = append(same, s.Find(other))
		}
	}
	if index, merged = len(s.parent), len(same) > 0; merged {
		index = slices.Min(same)
		for _, other := range same {
			s.parent[other] = index
		}
	} else {
		s.parent = append(s.parent, index)
	}
	s.remember(keys, print, index)
	return index, merged
}

// Find returns the source that a source was merged into, or the source itself.
func (s *Sources) Find(index int) int {
	for s.parent[index] != index {
		s.parent[index] = s.parent[s.parent[index]]
		index = s.parent[index]
	}
	return index
}

// Len returns the number of different sources.
func (s *Sources) Len() int {
	n := 0
	for i, parent := range s.parent {
		if i == parent {
			n++
		}
	}
	return n
}

// near returns the sources that have a near text.
func (s *Sources) near(print Fingerprint) (same []int) {
	if print.Count < minNearWords {
		return nil
	}
	found := map[int]bool{}
	for i := range s.prints { // comparing takes few nanoseconds, so no index is needed
		if other := &s.prints[i]; Near(print, other.Fingerprint) && !found[other.source] {
			found[other.source] = true
			same = append(same, s.Find(other.source))
		}
	}
	return same
}

// remember makes a source known by the keys and the text of a candidate.
func (s *Sources) remember(keys []string, print Fingerprint, index int) {
	known := false
	for _, key := range keys {
		if _, known = s.keys[key]; !known {
			s.keys[key] = index
		}
	}
	if !known && print.Count >= minNearWords { // the last key is that of the text
		s.prints = append(s.prints, sourcePrint{print, index})
	}
}

// keysOf returns what identifies a candidate, except its text.
func keysOf(c Candidate) (keys []string) {
	for _, address := range []string{c.URL, c.Canonical} {
		if page, ok := Canonical(address); ok && !slices.Contains(keys, "page "+page) {
			keys = append(keys, "page "+page)
		}
	}
	doi := DOI(c.DOI)
	if doi == "" {
		doi = DOI(c.URL)
	}
	if doi == "" {
		doi = DOI(c.Text)
	}
	if doi != "" {
		keys = append(keys, "doi "+doi)
		if paper := arxivDOI.FindStringSubmatch(doi); paper != nil {
			keys = append(keys, "page https://arxiv.org/abs/"+paper[1])
		}
	}
	if title, author := titleKey(c.Title), authorKey(c.Author); title != "" && author != "" {
		keys = append(keys, "title "+title+" "+author)
	}
	return keys
}

// minTitleWords and minTitleLetters are the lengths from which a title identifies a work of an author. Shorter ones, such as
// "Home" and "Annual report", do not.
const (
	minTitleWords   = 4
	minTitleLetters = 15
)

// titleKey returns the words of a title, or "" if they identify no work.
func titleKey(title string) string {
	var all []string
	letters := 0
	passages.EachWord(title, func(word []byte) {
		all = append(all, string(word))
		letters += len(word)
	})
	key := strings.Join(all, " ")
	if len(all) < minTitleWords || letters < minTitleLetters || genericTitles[key] {
		return ""
	}
	return key
}

var (
	genericTitles = setOf("404 page not found|the page you requested was not found|access to this page has been denied|attention required cloudflare security check|please enable javascript and cookies to continue|sign in to your account|terms of service and privacy policy|frequently asked questions and answers|just a moment please wait|are you a robot or a human")
	noAuthors     = setOf("admin|administrator|editor|editors|staff|team|author|unknown|redaktion|redaccion|redaction|anonymous|guest|web|webmaster|news|desk|newsroom|editorial|contributor|contributors")
	authorJoints  = setOf("and|et|al|und|y|by|von|de|the|dr|prof|phd|md")
)

// authorKey returns the names of an author or of authors, in alphabetical order and without initials, or "" if there are none.
func authorKey(author string) string {
	var names []string
	passages.EachWord(author, func(word []byte) {
		name := string(word)
		if len(name) > 1 && !authorJoints[name] {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	if !slices.ContainsFunc(names, func(name string) bool { return !noAuthors[name] }) {
		return ""
	}
	return strings.Join(slices.Compact(names), " ")
}

// setOf returns the entries of a list that is separated by |.
func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for entry := range strings.SplitSeq(list, "|") {
		set[entry] = true
	}
	return set
}
