package machine

import (
	"fmt"
	"slices"

	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// search begins a round: it searches every open question in every place.
func (b *Batch) search() {
	open := b.in(protocol.ResearchStepOpen)
	if len(open) == 0 || b.round >= b.limits.rounds+protocol.MaxResearchInputs {
		b.beginWriting()
		b.advanceWriting()
		return
	}
	b.round++
	b.enter(protocol.ResearchPhaseSearches)
	for _, q := range open {
		q.round = b.round
		b.changeQuestion(q, protocol.ResearchStepSearches)
		for _, place := range b.spec.Sources {
			b.add(researchlog.Step{
				Key: fmt.Sprintf("search-%s-%s", q.StepID, place), Kind: researchlog.StepSearch, Source: place, About: []string{q.Question},
				Limit: b.limits.candidates, Files: b.spec.FileIDs,
			})
		}
	}
}

func (b *Batch) advanceSearch() {
	if !b.allOver(researchlog.StepSearch) {
		return
	}
	b.choose()
	b.enter(protocol.ResearchPhaseReads)
	b.advanceReading()
}

// choose adds the sources that this round reads: the best ones of each search in turn, without those that the task has.
func (b *Batch) choose() {
	var lists []*step
	for _, s := range b.steps {
		if s.Kind == researchlog.StepSearch && s.result != nil && b.questionOf(s.About[0]).round == b.round {
			lists = append(lists, s)
		}
	}
	left := int(min(int64(b.limits.pages), b.task.Budget.Pages-b.task.Spent.Pages))
	seen := map[string]*source{}
	for _, s := range b.sources {
		seen[identity(&s.found)] = s
	}
	for rank := range b.limits.candidates {
		for _, s := range lists {
			if rank >= len(s.result.Candidates) {
				continue
			}
			candidate, q := s.result.Candidates[rank], b.questionOf(s.About[0])
			if known := seen[identity(&candidate)]; known != nil {
				if !slices.Contains(known.about, q) {
					known.about = append(known.about, q)
				}
				continue
			}
			if id := identity(&candidate); !b.found[id] {
				b.found[id] = true
				b.task.Progress.SourcesFound++
			}
			added := b.addSource(s.Source, candidate, q, left > 0)
			seen[identity(&candidate)] = added
			left--
		}
	}
}

// advanceReading has what was read judged, once all of it was read, and then begins another round or the report.
func (b *Batch) advanceReading() {
	if !b.allOver(researchlog.StepRead) {
		return
	}
	b.merge()
	if !b.allOver(researchlog.StepJudge) {
		return
	}
	b.keepQuotes()
	b.conflicts = b.contradictions()
	if b.writeWaits() {
		b.writeNow()
		b.endRound()
		b.beginWriting()
		b.advanceWriting()
		return
	}
	if b.revise() || !b.allOver(researchlog.StepRevise) {
		return
	}
	if b.round < b.limits.rounds && b.askGaps() || !b.allOver(researchlog.StepGaps) {
		return
	}
	b.endRound()
	b.search()
}

func (b *Batch) endRound() {
	for _, q := range b.in(protocol.ResearchStepRunning) {
		b.changeQuestion(q, protocol.ResearchStepFinishes)
	}
}

// askGaps has a model name further questions: because of contradictions, and because of questions without a source. It reports
// whether there is something to ask. A task that searches the web asks about contradictions between pages of the web only: what the
// model answers goes to a search engine, and must contain nothing of files or conversations.
func (b *Batch) askGaps() bool {
	key := fmt.Sprintf("gaps-%d", b.round)
	if b.byKey[key] != nil || !b.canGather(gapsTokens) || b.task.Spent.Pages >= b.task.Budget.Pages {
		return false
	}
	var found []string
	outward := slices.Contains(b.spec.Sources, protocol.ResearchWeb)
	for _, c := range b.conflicts {
		if outward && (c.first.source.Kind != protocol.ResearchWeb || c.second.source.Kind != protocol.ResearchWeb) {
			continue
		}
		found = append(found, c.first.text()+"\n"+c.second.text())
	}
	for _, q := range b.in(protocol.ResearchStepRunning) {
		if len(b.quotesOf(q)) == 0 {
			found = append(found, q.Question)
		}
	}
	if len(found) == 0 {
		return false
	}
	b.add(researchlog.Step{
		Key: key, Kind: researchlog.StepGaps, Asked: b.spec.Question, About: b.texts(), Texts: found, Limit: b.limits.followUps, Tokens: gapsTokens,
	})
	return true
}

func (b *Batch) gapsNamed(s *step) {
	if b.addQuestions(s.result.Questions, b.limits.followUps) {
		b.publishPlan()
	}
}
