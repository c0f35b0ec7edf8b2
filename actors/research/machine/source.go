package machine

import (
	"encoding/json"
	"fmt"
	"slices"

	"turnstone/actors/research/evidence"
	"turnstone/protocol"
	"turnstone/protocol/clip"
	"turnstone/protocol/researchlog"
)

// source is something that a search found and that the task reads.
type source struct {
	protocol.ResearchKeptSource
	found     researchlog.Candidate
	about     []*question // those whose searches found it
	state     protocol.ResearchSourceState
	page      *researchlog.Page
	questions []*question // of each excerpt
}

// addSource adds a source; with read, it is read in this round.
func (b *Batch) addSource(place protocol.ResearchSource, candidate researchlog.Candidate, q *question, read bool) *source {
	s := &source{found: candidate, about: []*question{q}, state: protocol.SourceFound}
	if !read {
		return s
	}
	s.SourceID = fmt.Sprintf("s%d", len(b.sources)+1)
	s.Kind, s.Title, s.FileID, s.ConversationID = place, candidate.Title, candidate.FileID, candidate.ConversationID
	if candidate.URL != "" {
		s.URL = &candidate.URL
	}
	b.sources = append(b.sources, s)
	b.note(s, "")
	b.add(researchlog.Step{Key: "read-" + s.SourceID, Kind: researchlog.StepRead, Source: place, About: texts(s.about), Found: &candidate})
	return s
}

// identity returns a text that is equal for two candidates if they are the same source.
func identity(c *researchlog.Candidate) string {
	switch {
	case c.FileID != nil:
		return c.FileID.String()
	case c.MessageID != nil:
		return c.MessageID.String()
	case c.ConversationID != nil:
		return c.ConversationID.String()
	}
	if canonical, ok := evidence.Canonical(c.URL); ok {
		return canonical
	}
	return c.URL
}

// note reports a source.
func (b *Batch) note(s *source, reason string) {
	b.emit(&protocol.ResearchSourceChanged{SourceID: s.SourceID, State: s.state, Kind: s.Kind, Title: s.Title, URL: s.URL, Reason: reason})
}

// next returns the state that a trigger leads to. One that the table does not have is a defect of the machine.
func (s *source) next(trigger protocol.ResearchSourceTrigger) protocol.ResearchSourceState {
	to, legal := protocol.NextResearchSourceState(s.state, trigger)
	if !legal {
		panic(fmt.Sprintf("research: no transition %s from %s of a source", trigger, s.state))
	}
	return to
}

// changeSource makes a transition of a source, with its event.
func (b *Batch) changeSource(s *source, trigger protocol.ResearchSourceTrigger, reason string) {
	s.state = s.next(trigger)
	b.note(s, reason)
}

// noteReading reports that the source of a step is being read.
func (b *Batch) noteReading(s *step) {
	if of := b.sourceOf(s); of.state == protocol.SourceFound {
		b.changeSource(of, protocol.SourceOpens, "")
	}
}

// noteRead reports that the source of a step was read, or why not. What it contributes is known when the whole round was read.
func (b *Batch) noteRead(s *step) {
	of := b.sourceOf(s)
	b.noteReading(s) // another version may have started its steps in another order
	if s.result.Failed != "" {
		b.changeSource(of, protocol.SourceFails, s.result.Failed)
	} else {
		b.changeSource(of, protocol.SourceArrives, "")
	}
}

// sourceOf returns the source of a step that reads or judges.
func (m *Machine) sourceOf(s *step) *source {
	for _, of := range m.sources {
		if s.Key == "read-"+of.SourceID || s.Key == "judge-"+of.SourceID {
			return of
		}
	}
	panic("research: no source of " + s.Key)
}

// merge takes the pages of all sources that were read, in their order. One that is the same work as an earlier one is merged
// with it, and the passages of every other one are judged.
func (b *Batch) merge() {
	var known works
	for _, s := range b.sources {
		read := b.byKey["read-"+s.SourceID]
		if read.result == nil {
			continue
		}
		if s.state == protocol.SourceReading { // a former version noted it here
			b.noteRead(read)
		}
		switch {
		case s.page != nil:
			known.add(s, s.page)
		case s.state == protocol.SourceRead:
			b.take(s, read.result.Page, &known)
		}
	}
}

// leaveUnread reports the sources that were not read or not used, because the search has ended before.
func (b *Batch) leaveUnread() {
	for _, s := range b.sources {
		switch s.state {
		case protocol.SourceFound, protocol.SourceReading:
			b.changeSource(s, protocol.SourceDiscards, "The search had ended before it was read.")
		case protocol.SourceRead:
			b.changeSource(s, protocol.SourceDiscards, "The task had ended before it was used.")
		}
	}
}

// works are the different works that were read.
type works struct {
	set     evidence.Sources
	sources []*source // by their indexes in set
}

// add adds the page of a source. It returns the source with the same work; nil: there is none.
func (w *works) add(s *source, page *researchlog.Page) *source {
	var print evidence.Fingerprint
	_ = json.Unmarshal(page.Fingerprint, &print) // without one, the text is compared with no other
	index, merged := w.set.Add(evidence.Candidate{URL: page.URL, Canonical: page.Canonical, Title: page.Title, Author: page.Author, DOI: page.DOI, Print: &print})
	if merged {
		return w.sources[index]
	}
	w.sources = append(w.sources, s)
	return nil
}

// take takes the page of a source that was read for the first time.
func (b *Batch) take(s *source, page *researchlog.Page, known *works) {
	s.page = page
	if page.Title != "" {
		s.Title = clip.Ellipsis(page.Title, maxTitle)
	}
	if page.URL != "" {
		s.URL = &page.URL
	}
	s.AccessedAt, s.SHA256 = page.AccessedAt, page.SHA256
	if first := known.add(s, page); first != nil {
		s.page = nil
		b.changeSource(s, protocol.SourceMerges, "It is the same work as "+first.SourceID+".")
		for _, q := range s.about {
			if !slices.Contains(first.about, q) {
				first.about = append(first.about, q)
			}
		}
		return
	}
	if len(page.Passages) == 0 {
		b.changeSource(s, protocol.SourceDiscards, "Nothing in it is about a question of the plan.")
		return
	}
	b.judge(s)
}

// judge has a model quote what answers the questions. Without tokens for that, the passages themselves are the quotes.
func (b *Batch) judge(s *source) {
	if !b.canGather(judgeTokens * int64(1+b.pending(researchlog.StepJudge))) {
		return
	}
	passages := make([]string, len(s.page.Passages))
	for i, p := range s.page.Passages {
		passages[i] = p.Text
	}
	b.add(researchlog.Step{
		Key: "judge-" + s.SourceID, Kind: researchlog.StepJudge, Asked: b.spec.Question, About: texts(s.about), Found: &s.found, Texts: passages,
		Limit: b.limits.quotes, Tokens: judgeTokens,
	})
}

func (m *Machine) pending(kind researchlog.StepKind) (n int) {
	for _, s := range m.steps {
		if s.Kind == kind && !s.over() {
			n++
		}
	}
	return n
}
