package machine

import (
	"fmt"
	"slices"

	"turnstone/actors/research/evidence"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// excerpt is a kept excerpt with its source.
type excerpt struct {
	source *source
	index  int
}

func (e excerpt) text() string { return e.source.Excerpts[e.index].Text }

// keepQuotes keeps the excerpts of every source whose page was taken, in the order of the sources.
func (b *Batch) keepQuotes() {
	for _, s := range b.sources {
		b.keepQuotesOf(s)
	}
}

// keepQuotesOf keeps the excerpts of a source that was judged, or that no model judges. A quote that is not in the source is none.
func (b *Batch) keepQuotesOf(s *source) {
	if s.page == nil || s.state == protocol.SourceKept || s.state == protocol.SourceUnused {
		return
	}
	judged := b.byKey["judge-"+s.SourceID]
	if judged == nil || judged.dropped || judged.result.Failed != "" {
		b.keepPassages(s)
	} else {
		for _, quote := range judged.result.Quotes {
			b.keepQuote(s, judged, quote)
		}
	}
	if len(s.Excerpts) == 0 {
		b.changeSource(s, protocol.SourceDiscards, "Nothing in it answers a question of the plan.")
		return
	}
	b.task.Progress.SourcesKept++
	b.changed[s] = true
	b.changeSource(s, protocol.SourceKeeps, "")
}

// keepPassages keeps the first passages of a source that no model has judged.
func (b *Batch) keepPassages(s *source) {
	for i, p := range s.page.Passages {
		if i == b.limits.quotes {
			return
		}
		b.keep(s, s.about[0], p.Text, p.Locator)
	}
}

// keepQuote keeps what a model quotes, if it is in a passage, with the words of the source.
func (b *Batch) keepQuote(s *source, judged *step, quote researchlog.Quote) {
	if quote.Number < 1 || quote.Number > len(judged.About) || len(s.Excerpts) == b.limits.quotes {
		return
	}
	for _, p := range s.page.Passages {
		if span, found := evidence.Locate(p.Text, quote.Text); found {
			b.keep(s, b.questionOf(judged.About[quote.Number-1]), p.Text[span.Start:span.End], p.Locator)
			return
		}
	}
}

func (b *Batch) keep(s *source, q *question, text, locator string) {
	if slices.ContainsFunc(s.Excerpts, func(e protocol.ResearchExcerpt) bool { return e.Text == text }) {
		return
	}
	s.Excerpts = append(s.Excerpts, protocol.ResearchExcerpt{
		ExcerptID: fmt.Sprintf("%se%d", s.SourceID, len(s.Excerpts)+1), Text: text, Locator: locator,
	})
	s.questions = append(s.questions, q)
}

// excerpts returns all kept excerpts, in the order of their sources.
func (m *Machine) excerpts() (all []excerpt) {
	for _, s := range m.sources {
		for i := range s.Excerpts {
			all = append(all, excerpt{s, i})
		}
	}
	return all
}

// number returns the number of a source before the report is renumbered.
func (m *Machine) number(s *source) int { return slices.Index(m.sources, s) + 1 }

// quotesOf returns what the section about a question is written from.
func (m *Machine) quotesOf(q *question) (quotes []researchlog.Quote) {
	for _, e := range m.excerpts() {
		if e.source.questions[e.index] == q && len(quotes) < maxSectionQuotes {
			quotes = append(quotes, researchlog.Quote{Number: m.number(e.source), Title: e.source.Title, Text: e.text()})
		}
	}
	return quotes
}

// conflict is a contradiction between excerpts of two sources.
type conflict struct{ first, second excerpt }

// contradictions returns the contradictions between the kept excerpts.
func (m *Machine) contradictions() (found []conflict) {
	all := m.excerpts()
	compared := make([]evidence.Excerpt, len(all))
	for i, e := range all {
		compared[i] = evidence.Excerpt{Source: m.number(e.source), Text: e.text()}
	}
	for _, pair := range evidence.Contradictions(compared) {
		if len(found) == maxConflicts {
			break
		}
		found = append(found, conflict{all[pair.A], all[pair.B]})
	}
	return found
}
