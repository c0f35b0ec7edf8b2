package research

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/model/modeltest"
)

// wholeCorpus are the kinds of the pages of each topic: 24, so 144 in all.
var wholeCorpus = []kind{
	plain, contradicts, paper, paper, failing, slow, pdf, huge,
	plain, contradicts, paper, refused, cutOff, injection, garbage, plain,
	plain, paper, paper, german, reset, rendered, redirects, plain,
}

const (
	marker      = "*(not supported by a source)*"
	leastShare  = 0.95 // of the factual sentences that must have a supporting excerpt
	leastMerged = 0.98 // of the duplicates that must be merged
	atOnce      = 3    // tasks of an account
)

// TestReportsHoldAgainstTheTruth runs a task about each topic, twice, with a model that invents sentences and obeys pages.
func TestReportsHoldAgainstTheTruth(t *testing.T) {
	t.Parallel()
	c := newCorpus(t, english, english.names, wholeCorpus)
	if len(c.byURL) < 120 {
		t.Fatalf("the corpus has %d pages", len(c.byURL))
	}
	s := sitetest.NewSite(t, c.settings(t, modeltest.Chat, true)...)
	s.Build = sitetest.Failpoints
	s.Start()
	users := []*sitetest.User{sitetest.NewUser(t, s.Base), sitetest.NewUser(t, s.Base)}
	first := c.run(t, users)
	c.checkRequests(t)
	before := len(c.entries(0))
	second := c.run(t, users)
	if again := len(c.entries(0)) - before; again != before {
		t.Errorf("the first run made %d requests, and the second one %d", before, again)
	}
	var total figures
	for i, about := range c.topics {
		if first[i].report != second[i].report {
			t.Errorf("%s: the second report is another one:\n%s\n\n%s", about.name, first[i].report, second[i].report)
		}
		total.add(c.check(t, about, first[i]))
	}
	t.Log(total)
	if share := total.share(total.supported, total.factual); share < leastShare {
		t.Errorf("%.1f %% of the factual sentences are supported", 100*share)
	}
	if share := total.share(total.merged, total.duplicates); share < leastMerged {
		t.Errorf("%.1f %% of the duplicates are merged", 100*share)
	}
}

// otherCorpus are the kinds of the pages of a topic in another language.
var otherCorpus = []kind{plain, contradicts, paper, paper, injection, plain, contradicts, paper, plain, plain, paper, plain, paper, plain, plain}

// TestReportsHoldInOtherLanguages runs a task in each language.
func TestReportsHoldInOtherLanguages(t *testing.T) {
	t.Parallel()
	c := &corpus{byURL: map[string]*page{}}
	for i, in := range others {
		c.addTopic(i, in, in.names[0], otherCorpus)
	}
	c.serve(t)
	s := sitetest.NewSite(t, c.settings(t, modeltest.Chat, true)...)
	s.Build = sitetest.Failpoints
	s.Start()
	users := []*sitetest.User{sitetest.NewUser(t, s.Base), sitetest.NewUser(t, s.Base)}
	results := c.run(t, users)
	c.checkRequests(t)
	for i, about := range c.topics {
		f := c.check(t, about, results[i])
		t.Logf("%s: %s", about.tongue.code, f)
		if share := f.share(f.supported, f.factual); share < leastShare {
			t.Errorf("%s: %.1f %% of the factual sentences are supported:\n%s", about.tongue.code, 100*share, results[i].report)
		}
		if share := f.share(f.merged, f.duplicates); share < leastMerged {
			t.Errorf("%s: %.1f %% of the duplicates are merged", about.tongue.code, 100*share)
		}
		if f.cited < 10 {
			t.Errorf("%s: %d citations:\n%s", about.tongue.code, f.cited, results[i].report)
		}
	}
}

// run runs a task about each topic.
func (c *corpus) run(t *testing.T, users []*sitetest.User) []*result {
	t.Helper()
	tasks, results := make([]*protocol.ResearchTask, len(c.topics)), make([]*result, len(c.topics))
	of := func(i int) *sitetest.User { return users[i/atOnce%len(users)] }
	for i, about := range c.topics {
		tasks[i] = of(i).Research(t, sitetest.ResearchBody{"question": about.question, "depth": "standard"})
	}
	for i := range c.topics {
		results[i] = finish(t, of(i), tasks[i])
	}
	return results
}

// figures are what the checks of all reports have counted.
type figures struct {
	factual, supported, cited, duplicates, merged, contradictions, sources int
}

func (f *figures) add(more figures) {
	f.factual += more.factual
	f.supported += more.supported
	f.cited += more.cited
	f.duplicates += more.duplicates
	f.merged += more.merged
	f.contradictions += more.contradictions
	f.sources += more.sources
}

func (f *figures) share(part, of int) float64 { return float64(part) / float64(max(1, of)) }

func (f figures) String() string {
	return fmt.Sprintf("%d factual sentences, %d of them with a supporting excerpt; %d citations; %d of %d duplicates merged; %d contradictions named; %d sources kept",
		f.factual, f.supported, f.cited, f.merged, f.duplicates, f.contradictions, f.sources)
}

// checkRequests checks what one run has asked for: each page at most once, and none that robots.txt refuses or that an instruction
// names.
func (c *corpus) checkRequests(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	for _, entry := range c.entries(0) {
		if seen[entry] {
			t.Errorf("asked for twice: %s", entry)
		}
		seen[entry] = true
		address, isPage := strings.CutPrefix(entry, "page ")
		switch {
		case isPage && c.byURL[address] == nil:
			t.Errorf("an address that no search has found: %s", entry)
		case isPage && c.byURL[address].kind == refused:
			t.Errorf("robots.txt refuses %s", entry)
		case strings.Contains(entry, obeyed):
			t.Errorf("an instruction of a page was followed: %s", entry)
		}
	}
	for address, p := range c.byURL {
		if !seen["page "+address] && p.kind != refused {
			t.Errorf("the page %s (%s) was not read", address, p.kind)
		}
	}
}

// check checks a report against the truth.
func (c *corpus) check(t *testing.T, about *topic, r *result) (f figures) {
	t.Helper()
	f.sources = len(r.sources)
	c.checkSentences(t, about, r, &f)
	c.checkDuplicates(t, about, r, &f)
	_, conflicts, found := strings.Cut(r.report, "\n## Contradictions\n")
	for _, statement := range about.disputed {
		if !found || !strings.Contains(conflicts, strings.TrimSuffix(statement, about.tongue.stop)) {
			t.Errorf("%s: the contradiction is not named: %s", about.name, statement)
		} else {
			f.contradictions++
		}
	}
	if strings.Contains(r.report, obeyed) || strings.Contains(r.report, "999 crowns") {
		t.Errorf("%s: an instruction of a page was followed:\n%s", about.name, r.report)
	}
	for _, s := range r.sources {
		for _, e := range s.Excerpts {
			if strings.Contains(e.Text, obeyed) {
				t.Errorf("%s: an excerpt is not from its page: %s", about.name, e.Text)
			}
		}
	}
	return f
}

var (
	citedSentence = regexp.MustCompile(`(“[^”\n]+” ?|[^\n.。\]>“”]+)((?:\s?\[\d+\])+)`)
	citedNumber   = regexp.MustCompile(`\[(\d+)\]`)
	listedSource  = regexp.MustCompile(`(?m)^(\d+)\. .* <([^>]+)> \(day, SHA-256 [0-9a-f]{12}\)$`)
)

// checkSentences checks the citations of a report: each number is that of a kept source, one of its excerpts says the sentence, and
// the page says it too.
func (c *corpus) checkSentences(t *testing.T, about *topic, r *result, f *figures) {
	t.Helper()
	byNumber := map[int]*protocol.ResearchKeptSource{}
	for i := range r.sources {
		if s := &r.sources[i]; s.Number != nil {
			byNumber[*s.Number] = s
		}
	}
	text, list, _ := strings.Cut(r.report, "\n## Sources\n")
	for _, m := range listedSource.FindAllStringSubmatch(list, -1) {
		if n, _ := strconv.Atoi(m[1]); byNumber[n] == nil || *byNumber[n].URL != m[2] {
			t.Errorf("%s: the list of sources has %q", about.name, m[0])
		}
	}
	for _, m := range citedSentence.FindAllStringSubmatch(text, -1) {
		sentence := strings.TrimSpace(strings.NewReplacer("- ", "", "“", "", "”", "", about.tongue.reworded, "").Replace(m[1]))
		for _, n := range citedNumber.FindAllStringSubmatch(m[2], -1) {
			f.cited++
			number, _ := strconv.Atoi(n[1])
			if why := c.supports(byNumber[number], sentence); why != "" {
				t.Errorf("%s: %q cites [%d]: %s", about.name, sentence, number, why)
			}
		}
	}
	written, _, _ := strings.Cut(text, "\n## Contradictions\n")
	lies := strings.Count(written, about.tongue.lie) + strings.Count(written, "7351")
	marked := strings.Count(written, marker)
	checks := r.task.Checks
	f.factual, f.supported = checks.Factual-lies, checks.Supported
	if !strings.Contains(written, about.tongue.reworded) {
		t.Errorf("%s: no sentence is in the words of the model", about.name)
	}
	if lies < 3 || checks.Removed < lies || checks.Unsupported != marked {
		t.Errorf("%s: %d invented sentences, %d marked, %+v", about.name, lies, marked, checks)
	}
	for _, lie := range c.lies(about) {
		plain, _, _ := strings.Cut(lie, "[")
		plain = strings.TrimSpace(plain)
		if said, right := strings.Count(written, plain), strings.Count(written, plain+about.tongue.stop+" "+marker)+strings.Count(written, plain+" "+marker); said == 0 || said != right {
			t.Errorf("%s: the invented sentence %q is in the report %d times, and marked %d times:\n%s", about.name, lie, said, right, written)
		}
	}
}

// lies returns the sentences about a topic that the model has invented.
func (c *corpus) lies(about *topic) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := about.tongue.invented[:len(about.tongue.invented):len(about.tongue.invented)]
	for _, sentence := range c.falsified {
		if strings.Contains(sentence, about.name) && !slices.Contains(all, sentence) {
			all = append(all, sentence)
		}
	}
	return all
}

// supports returns why a source does not support a sentence, or "".
func (c *corpus) supports(s *protocol.ResearchKeptSource, sentence string) string {
	if s == nil {
		return "no source has this number"
	}
	if !slices.ContainsFunc(s.Excerpts, func(e protocol.ResearchExcerpt) bool { return says(e.Text, sentence) }) {
		return "no kept excerpt says it"
	}
	p := c.byURL[*s.URL]
	if p == nil || !slices.ContainsFunc(p.facts, func(fact string) bool { return says(fact, sentence) }) {
		return "the page does not say it"
	}
	return ""
}

// says reports whether a text has the words of a sentence, in their order.
func says(text, sentence string) bool {
	return strings.Contains(words(text), words(sentence))
}

func words(text string) string {
	return " " + strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" .,。、،“”\"*\n\t", r) }), " ") + " "
}

// checkDuplicates checks that the addresses of one work became one source, and that no other pages did.
func (c *corpus) checkDuplicates(t *testing.T, about *topic, r *result, f *figures) {
	t.Helper()
	for _, p := range about.pages {
		if p.work != "" {
			f.duplicates++
		}
	}
	f.duplicates-- // the first of them is the source
	for _, e := range r.log.Events {
		payload, err := e.Payload()
		source, is := payload.(*protocol.ResearchSourceChanged)
		if err != nil || !is || source.State != protocol.SourceMerged {
			continue
		}
		if p := c.byURL[*source.URL]; p == nil || p.work == "" {
			t.Errorf("%s: a page was merged with another one: %s", about.name, e.Data)
		} else {
			f.merged++
		}
	}
}

// TestEveryWireFormatGivesTheSameReport runs the same task with stand-ins of three wire formats.
func TestEveryWireFormatGivesTheSameReport(t *testing.T) {
	t.Parallel()
	c := newCorpus(t, english, english.names[:1], wholeCorpus)
	reports := map[string]string{}
	for _, wire := range []string{modeltest.Chat, modeltest.Responses, modeltest.Anthropic} {
		s := sitetest.NewSite(t, c.settings(t, wire, true)...)
		s.Build = sitetest.Failpoints
		p := s.Start()
		u := sitetest.NewUser(t, s.Base)
		r := finish(t, u, u.Research(t, sitetest.ResearchBody{"question": c.topics[0].question, "depth": "standard"}))
		c.check(t, c.topics[0], r)
		reports[r.report] += wire + " "
		p.Kill()
	}
	if len(reports) != 1 {
		t.Errorf("%d reports: %v", len(reports), reports)
	}
}
