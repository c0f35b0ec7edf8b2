package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

var cited = regexp.MustCompile(`\[(\d+)\]`)

func TestATaskPlansSearchesReadsAndWrites(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchStandard))
	task := w.run()
	if task.State != protocol.ResearchCompleted || w.report == nil || task.ArtifactID == nil || task.MessageID == nil {
		t.Fatalf("%s, %+v", task.State, task.Failure)
	}
	checks := w.report.Checks
	if checks.Removed == 0 || checks.Unsupported == 0 || checks.Supported == 0 || checks.Factual != checks.Supported+checks.Unsupported {
		t.Errorf("checks: %+v", checks)
	}
	numbers := map[int]bool{}
	for _, s := range w.sources {
		if s.Number != nil {
			numbers[*s.Number] = true
		}
	}
	for _, m := range cited.FindAllStringSubmatch(w.report.Content, -1) {
		if n, _ := strconv.Atoi(m[1]); !numbers[n] {
			t.Errorf("the report cites %s, which is no source of it", m[0])
		}
	}
	if !strings.Contains(w.report.Content, reportLanguages["en"].unsupported) || strings.Contains(w.report.Content, "[99]") {
		t.Errorf("an invented citation stayed, or a sentence without a source is not marked:\n%s", w.report.Content)
	}
	merged := 0
	for _, e := range w.events {
		if s, is := e.(*protocol.ResearchSourceChanged); is && s.State == protocol.SourceMerged {
			merged++
		}
	}
	if merged == 0 {
		t.Error("pages with the same text were not merged")
	}
	for ordinal, s := range w.sources {
		for _, e := range s.Excerpts {
			in := func(n int) bool { return strings.Contains(pageText(n), e.Text) }
			if !slices.ContainsFunc([]int{0, 1, 2, 3, 4, 5, 6}, in) {
				t.Errorf("no page contains %q of source %d", e.Text, ordinal)
			}
		}
	}
	if last, is := w.events[len(w.events)-1].(*protocol.ResearchFinished); !is || last.LastSequence != int64(len(w.events)) {
		t.Errorf("the last of %d events is %+v", len(w.events), w.events[len(w.events)-1])
	}
}

func TestTheReportDoesNotDependOnTheOrderInWhichStepsEnd(t *testing.T) {
	spec := newSpec(protocol.ResearchStandard)
	w := newWorld(t, spec)
	w.run()
	for seed := range uint64(20) {
		other := newWorld(t, spec)
		other.random = rand.New(rand.NewPCG(seed, 1))
		other.run()
		if other.report.Content != w.report.Content {
			t.Fatalf("seed %d:\n%s\n\nwant:\n%s", seed, other.report.Content, w.report.Content)
		}
	}
}

// After each entry the process ends, and another owner continues.
func TestStepsWithAResultAreNotRepeated(t *testing.T) {
	spec := newSpec(protocol.ResearchQuick)
	w := newWorld(t, spec)
	w.run()
	for after := 1; after < len(w.claim.Entries); after++ {
		other := newWorld(t, spec)
		other.step(func(b *Batch) { b.Resume(1, true) })
		for len(other.claim.Entries) < after && other.advance() {
		}
		if other.machine.State().Terminal() {
			break
		}
		done := slices.Clone(other.ran)
		other.restart()
		if got := other.machine.task.Progress.Reused; got != len(done) {
			t.Errorf("after entry %d: %d steps were reused, want %d", after, got, len(done))
		}
		other.run()
		for _, key := range other.ran[len(done):] {
			if slices.Contains(done, key) {
				t.Errorf("after entry %d: %s ran again", after, key)
			}
		}
		if other.report.Content != w.report.Content {
			t.Errorf("after entry %d: another report", after)
		}
	}
}

// A program of another version may build other inputs: what was stored for the former ones is not used.
func TestAResultForAnotherInputIsNotUsed(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.step(func(b *Batch) { b.Resume(1, true) })
	w.advance()
	w.claim.Entries[1].Digest = "of another input"
	w.restart()
	if len(w.running) != 1 || w.running[0].Key != "plan" {
		t.Fatalf("running: %+v", w.running)
	}
	if task := w.run(); task.State != protocol.ResearchCompleted {
		t.Errorf("%s: %+v", task.State, task.Failure)
	}
}

func TestACancelledTaskStopsAndReturnsItsInputs(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.step(func(b *Batch) { b.Resume(1, true) })
	w.steer(t, &researchlog.Steering{Kind: protocol.ResearchInput, Text: "harbours", ClientID: "one"})
	w.step(func(b *Batch) { b.Cancel() })
	if w.machine.State() != protocol.ResearchCancelled || w.outcomes() != "accepted returned" {
		t.Errorf("%s, %s", w.machine.State(), w.outcomes())
	}
}

// A cancel is acknowledged, so a task that is given up meanwhile must still end cancelled.
func TestACancelledTaskThatIsGivenUpEndsCancelled(t *testing.T) {
	w := inState(t, protocol.ResearchCancelling)
	b := w.machine.NewBatch()
	b.Resume(maxAttempts+1, false)
	end, is := b.Events[len(b.Events)-1].(*protocol.ResearchFinished)
	if w.machine.State() != protocol.ResearchCancelled || !is || end.State != protocol.ResearchCancelled {
		t.Errorf("%s, %+v", w.machine.State(), b.Events)
	}
}

func (w *world) steer(t *testing.T, command *researchlog.Steering) (receipt *protocol.ResearchReceipt) {
	t.Helper()
	var err error
	command.SteeringID = protocol.NewSteeringID()
	w.step(func(b *Batch) { receipt, err = b.Steer(command) })
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

// outcomes lists what became of the inputs.
func (w *world) outcomes() string {
	var all []string
	for _, e := range w.events {
		if s, is := e.(*protocol.ResearchSteered); is {
			all = append(all, string(s.Outcome))
		}
	}
	return strings.Join(all, " ")
}

func TestAnInputIsAppliedByTheNextStepAboutThePlan(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.step(func(b *Batch) { b.Resume(1, true) })
	w.advance() // the plan
	first := w.steer(t, &researchlog.Steering{Kind: protocol.ResearchInput, Text: "harbours", ClientID: "one", Digest: "1"})
	again := w.steer(t, &researchlog.Steering{Kind: protocol.ResearchInput, Text: "harbours", ClientID: "one", Digest: "1"})
	if first.Replayed || !again.Replayed || again.SteeringID != first.SteeringID || again.Sequence != first.Sequence {
		t.Errorf("%+v, then %+v", first, again)
	}
	if _, err := w.machine.NewBatch().Steer(&researchlog.Steering{Kind: protocol.ResearchInput, Text: "other", ClientID: "one", Digest: "2"}); protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("another command with the same identifier: %v", err)
	}
	w.run()
	if !slices.Contains(w.ran, "revise-1") || w.outcomes() != "accepted applied" || !strings.Contains(w.report.Content, "## What about harbours?") {
		t.Errorf("%s; %v\n%s", w.outcomes(), w.ran, w.report.Content)
	}
	_, err := w.machine.NewBatch().Steer(&researchlog.Steering{Kind: protocol.ResearchInput, Text: "late", ClientID: "two"})
	if protocol.CodeOf(err) != protocol.CodeSteeringClosed {
		t.Errorf("after the end: %v", err)
	}
}

func TestTheUserStrikesAndAddsQuestions(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.step(func(b *Batch) { b.Resume(1, true) })
	w.advance()
	w.steer(t, &researchlog.Steering{Kind: protocol.ResearchPlan, Strike: []string{"q2"}, Add: []string{"What do pilots say?"}, ClientID: "one"})
	w.run()
	if strings.Contains(w.report.Content, "Who built the locks?") || !strings.Contains(w.report.Content, "What do pilots say?") {
		t.Errorf("%s", w.report.Content)
	}
}

func TestAQuestionThatIsStruckAfterItWasReadIsNoMissingSection(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.step(func(b *Batch) { b.Resume(1, true) })
	for w.machine.pending(researchlog.StepJudge) == 0 {
		w.advance()
	}
	w.steer(t, &researchlog.Steering{Kind: protocol.ResearchPlan, ClientID: "one", Strike: []string{"q2"}})
	w.run()
	if strings.Contains(w.report.Content, "\n> ") || !strings.Contains(w.report.Notice, "[1]") {
		t.Errorf("%s\n\nThe message is:\n%s", w.report.Content, w.report.Notice)
	}
}

func TestAChangeOfThePlanIsRefusedAsAWhole(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.step(func(b *Batch) { b.Resume(1, true) })
	w.advance() // the plan has two questions
	many := make([]string, protocol.MaxResearchPlan-1)
	for i := range many {
		many[i] = fmt.Sprintf("What about %d?", i)
	}
	for name, c := range map[string]*researchlog.Steering{
		"more than the plan can have": {Add: many},
		"every question is struck":    {Strike: []string{"q1", "q2"}},
		"only a known one is added":   {Strike: []string{"q1", "q2"}, Add: []string{" Who built  the locks? "}},
	} {
		c.Kind, c.ClientID = protocol.ResearchPlan, name
		if _, err := w.machine.NewBatch().Steer(c); protocol.CodeOf(err) != protocol.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.steer(t, &researchlog.Steering{Kind: protocol.ResearchPlan, ClientID: "all", Add: append(many[1:], many[1], "Who built the locks?")})
	if n := len(w.machine.task.Plan); n != protocol.MaxResearchPlan {
		t.Errorf("the plan has %d questions", n)
	}
}

func TestTheReportIsWrittenAtOnce(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchStandard))
	w.step(func(b *Batch) { b.Resume(1, true) })
	for len(w.ran) == 0 || !strings.HasPrefix(w.ran[len(w.ran)-1], "read-s3") {
		w.advance()
	}
	w.steer(t, &researchlog.Steering{Kind: protocol.ResearchWriteNow, ClientID: "one"})
	task := w.run()
	if task.State != protocol.ResearchCompleted || task.Progress.SourcesKept == 0 || task.Progress.SourcesKept > 6 || !strings.Contains(w.report.Notice, reportLanguages["en"].endedEarly) {
		t.Errorf("%s with %+v: %s", task.State, task.Progress, w.report.Notice)
	}
	for _, s := range w.machine.sources {
		if s.state == protocol.SourceFound || s.state == protocol.SourceReading {
			t.Errorf("%s is %s", s.SourceID, s.state)
		}
	}
}

func TestAReportThatIsRequestedBeforeTheSearchIsWrittenAfterTheFirstRound(t *testing.T) {
	for _, state := range []protocol.ResearchState{protocol.ResearchQueued, protocol.ResearchRunning} {
		w := inState(t, state)
		w.claim.Depth = protocol.ResearchDeep
		early := w.steer(t, &researchlog.Steering{Kind: protocol.ResearchWriteNow, ClientID: "one"})
		again := w.steer(t, &researchlog.Steering{Kind: protocol.ResearchWriteNow, ClientID: "one"})
		if early.State != "accepted" || again.SteeringID != early.SteeringID || w.outcomes() != "accepted" {
			t.Errorf("%s: %+v, %+v, %s", state, early, again, w.outcomes())
		}
		if _, err := w.machine.NewBatch().Steer(&researchlog.Steering{Kind: protocol.ResearchWriteNow, ClientID: "two"}); protocol.CodeOf(err) != protocol.CodeConflict {
			t.Errorf("%s: requested twice: %v", state, err)
		}
		w.restart()
		task := w.run()
		if task.State != protocol.ResearchCompleted || task.Progress.SourcesKept == 0 || w.outcomes() != "accepted applied" || slices.Contains(w.ran, "gaps-1") {
			t.Errorf("%s: %s with %+v, %s after %v", state, task.State, task.Progress, w.outcomes(), w.ran)
		}
		if words := reportLanguages["en"]; !strings.Contains(w.report.Notice, words.endedEarly) || strings.Contains(w.report.Content, words.skipped) {
			t.Errorf("%s: %s", state, w.report.Content)
		}
	}
}

func TestAReportIsWrittenAtOnceAlthoughItWasRequestedEarly(t *testing.T) {
	w := inState(t, protocol.ResearchRunning)
	w.steer(t, &researchlog.Steering{Kind: protocol.ResearchWriteNow, ClientID: "one"})
	w.advance() // the plan
	w.steer(t, &researchlog.Steering{Kind: protocol.ResearchWriteNow, ClientID: "two"})
	if task := w.run(); task.State != protocol.ResearchCompleted || task.Progress.SourcesFound != 0 || w.outcomes() != "accepted accepted applied applied" {
		t.Errorf("%s with %+v, %s", task.State, task.Progress, w.outcomes())
	}
}

func TestASourceIsReportedWhenItWasReadAndWhenItWasJudged(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.change = func(step *researchlog.Step, result *researchlog.Result) {
		if step.Key == "read-s2" {
			*result = researchlog.Result{Failed: "The server refused the page."}
		}
	}
	w.step(func(b *Batch) { b.Resume(1, true) })
	states := func(id string) (states []protocol.ResearchSourceState) {
		for _, e := range w.events {
			if s, is := e.(*protocol.ResearchSourceChanged); is && s.SourceID == id {
				states = append(states, s.State)
			}
		}
		return states
	}
	until := func(key string) {
		for !slices.Contains(w.ran, key) && w.advance() {
		}
	}
	until("read-s2")
	if got := fmt.Sprint(states("s1"), states("s2")); got != "[found reading read] [found reading failed]" || w.machine.pending(researchlog.StepRead) == 0 {
		t.Errorf("after two sources were read: %s", got)
	}
	until("judge-s1")
	if got := fmt.Sprint(states("s1")); got != "[found reading read kept]" || w.machine.pending(researchlog.StepJudge) == 0 || len(w.sources) != 1 {
		t.Errorf("after a source was judged: %s, %d are stored", got, len(w.sources))
	}
	w.run()
	if got := fmt.Sprint(states("s1"), states("s2")); got != "[found reading read kept] [found reading failed]" {
		t.Errorf("in the end: %s", got)
	}
}

// A former version kept sources when the whole round was judged, so nothing that was judged before is stored yet.
func TestAJournalWithoutSourcesAtOnceKeepsThemAtTheEndOfTheRound(t *testing.T) {
	spec := newSpec(protocol.ResearchStandard)
	w := newWorld(t, spec)
	w.run()
	for after := 1; after < len(w.claim.Entries); after++ {
		other := newWorld(t, spec)
		other.former = true
		other.step(func(b *Batch) { b.Resume(1, true) })
		for len(other.claim.Entries) < after && other.advance() {
		}
		if other.machine.State().Terminal() {
			break
		}
		if m := other.machine; m.round == 1 && m.pending(researchlog.StepJudge) > 0 && len(other.sources) > 0 {
			t.Errorf("after entry %d: a source is kept before the end of the round", after)
		}
		other.former = false
		other.restart()
		other.run()
		kept := 0
		for _, e := range other.events {
			if s, is := e.(*protocol.ResearchSourceChanged); is && s.State == protocol.SourceKept {
				kept++
			}
		}
		if other.report.Content != w.report.Content || kept != len(w.sources) || !reflect.DeepEqual(other.sources, w.sources) {
			t.Errorf("after entry %d: %d sources are stored and %d reported, want %d", after, len(other.sources), kept, len(w.sources))
		}
	}
}

func TestABudgetEndsTheWorkTruthfully(t *testing.T) {
	words := reportLanguages["en"]
	for name, c := range map[string]struct {
		change func(*researchlog.Spec)
		state  protocol.ResearchState
		says   string
	}{
		"no tokens for a plan":    {func(s *researchlog.Spec) { s.Budget.Tokens = 1 }, protocol.ResearchFailed, ""},
		"no tokens for a section": {func(s *researchlog.Spec) { s.Budget.Tokens = leastBudget }, protocol.ResearchCompleted, ""},
		"few pages":               {func(s *researchlog.Spec) { s.Budget.Pages = 2 }, protocol.ResearchCompleted, words.pagesOver},
	} {
		spec := newSpec(protocol.ResearchStandard)
		c.change(&spec)
		w := newWorld(t, spec)
		task := w.run()
		if task.State != c.state || task.Spent.Pages > spec.Budget.Pages {
			t.Errorf("%s: %s, spent %+v", name, task.State, task.Spent)
		}
		if c.state == protocol.ResearchFailed {
			if task.Failure == nil || task.Failure.Code != protocol.ResearchBudgetExceeded {
				t.Errorf("%s: %+v", name, task.Failure)
			}
		} else if !strings.Contains(w.report.Content, c.says) {
			t.Errorf("%s: the report does not say so:\n%s", name, w.report.Content)
		}
	}
}

func TestTheTimeOfATaskEnds(t *testing.T) {
	for after := range 30 {
		w := newWorld(t, newSpec(protocol.ResearchStandard))
		w.step(func(b *Batch) { b.Resume(1, true) })
		for range after {
			w.advance()
		}
		if w.machine.State().Terminal() {
			break
		}
		w.step(func(b *Batch) { b.TimeOver() })
		if after == 0 {
			if failure := w.machine.task.Failure; w.machine.State() != protocol.ResearchFailed || failure.Code != protocol.ResearchBudgetExceeded {
				t.Errorf("without a plan: %s, %+v", w.machine.State(), failure)
			}
			continue
		}
		if w.machine.State() != protocol.ResearchCompleted || !strings.Contains(w.report.Content, reportLanguages["en"].timeOver) {
			t.Errorf("after %d steps: %s", after, w.machine.State())
		}
	}
}

func TestAModelThatFailsLosesNoSource(t *testing.T) {
	for _, kind := range []researchlog.StepKind{
		researchlog.StepPlan, researchlog.StepJudge, researchlog.StepGaps, researchlog.StepWrite, researchlog.StepSummarize, researchlog.StepSearch, researchlog.StepRead,
	} {
		w := newWorld(t, newSpec(protocol.ResearchStandard))
		w.change = func(step *researchlog.Step, result *researchlog.Result) {
			if step.Kind == kind {
				*result = researchlog.Result{Failed: "It did not answer."}
			}
		}
		task := w.run()
		if kind == researchlog.StepPlan {
			if task.State != protocol.ResearchFailed || task.Failure.Code != protocol.ResearchModelFailed {
				t.Errorf("%s: %s %+v", kind, task.State, task.Failure)
			}
			continue
		}
		if task.State != protocol.ResearchCompleted {
			t.Errorf("%s: %s %+v", kind, task.State, task.Failure)
		}
		says := map[researchlog.StepKind]string{
			researchlog.StepWrite: reportLanguages["en"].modelFailed, researchlog.StepSearch: reportLanguages["en"].searchFailed, researchlog.StepRead: reportLanguages["en"].nothing,
		}[kind]
		if !strings.Contains(w.report.Content, says) {
			t.Errorf("%s: the report does not say so:\n%s", kind, w.report.Content)
		}
	}
}

func TestATaskWithoutTokensForTheDaySaysSo(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.change = func(_ *researchlog.Step, result *researchlog.Result) {
		*result = researchlog.Result{Failed: "The account has used its tokens of the day.", DailyLimit: true}
	}
	if task := w.run(); task.Failure == nil || task.Failure.Code != protocol.ResearchDailyLimit {
		t.Errorf("%s %+v", task.State, task.Failure)
	}
}

func TestContradictionsAreSearchedAndNamed(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchStandard))
	w.change = func(step *researchlog.Step, result *researchlog.Result) {
		if step.Kind == researchlog.StepRead && (step.Found.Title == "Station 1" || step.Found.Title == "Station 2") {
			height := map[string]string{"Station 1": "12", "Station 2": "9"}[step.Found.Title]
			result.Page.Fingerprint = nil
			result.Page.Passages[0].Text = "The largest tidal range ever measured at Saint-Malo harbour is " + height + " metres. Nothing else is said."
		}
	}
	w.run()
	if !slices.Contains(w.ran, "gaps-1") || !strings.Contains(w.report.Content, reportLanguages["en"].contradictions) {
		t.Errorf("%v\n%s", w.ran, w.report.Content)
	}
}

// What a source says is quoted, never carried out: brackets in it are no citations of the report.
func TestNoTextOfAFileIsPartOfAQuestionForTheWeb(t *testing.T) {
	for _, places := range [][]protocol.ResearchSource{{protocol.ResearchWeb, protocol.ResearchFiles}, {protocol.ResearchFiles}} {
		spec := newSpec(protocol.ResearchStandard)
		spec.Sources = places
		w := newWorld(t, spec)
		w.change = func(step *researchlog.Step, result *researchlog.Result) {
			switch {
			case step.Kind == researchlog.StepGaps:
				for _, text := range step.Texts {
					if strings.Contains(text, "confidential") == (len(places) == 2) {
						t.Errorf("with %v, the further questions are about %q", places, text)
					}
				}
			case step.Kind == researchlog.StepSearch && step.Source == protocol.ResearchFiles:
				for i := range result.Candidates { // other works than those of the web
					result.Candidates[i].URL += "&file"
					result.Candidates[i].Title = fmt.Sprintf("Notes %d", i)
				}
			case step.Kind == researchlog.StepRead && step.Source == protocol.ResearchFiles:
				var n int
				_, _ = fmt.Sscanf(step.Found.Title, "Notes %d", &n)
				result.Page.Title, result.Page.Fingerprint = step.Found.Title, nil
				result.Page.Passages = []researchlog.Passage{{Text: fmt.Sprintf("The confidential tidal range at station 3 is %d metres in spring. The end.", 20+n)}}
			case step.Kind == researchlog.StepJudge && strings.Contains(step.Texts[0], "confidential"):
				result.Quotes = []researchlog.Quote{{Number: 1, Text: strings.TrimSuffix(step.Texts[0], " The end.")}}
			}
		}
		w.run()
		if !strings.Contains(w.report.Content, "confidential") || !strings.Contains(w.report.Content, reportLanguages["en"].contradictions) {
			t.Errorf("with %v, the report names no contradiction of files: %s", places, w.report.Content)
		}
		if len(places) == 1 && !slices.Contains(w.ran, "gaps-1") {
			t.Errorf("with %v, the contradictions are not searched", places)
		}
	}
}

func TestASourceIsCountedOnceHoweverOftenItIsFound(t *testing.T) {
	spec := newSpec(protocol.ResearchDeep)
	spec.Budget.Pages = 1
	w := newWorld(t, spec)
	all := map[string]bool{}
	w.change = func(_ *researchlog.Step, result *researchlog.Result) {
		for _, c := range result.Candidates {
			all[c.URL] = true
		}
	}
	w.step(func(b *Batch) { b.Resume(1, true) })
	for w.machine.task.Phase != protocol.ResearchReading {
		w.advance()
	}
	w.steer(t, &researchlog.Steering{Kind: protocol.ResearchPlan, Add: []string{"What do pilots say?"}, ClientID: "one"}) // another round
	task := w.run()
	if task.Progress.SourcesFound != len(all) || len(all) < 10 {
		t.Errorf("%d sources were found, the task reports %d", len(all), task.Progress.SourcesFound)
	}
}

func TestTheTextOfASourceDoesNotBecomeACitation(t *testing.T) {
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.change = func(step *researchlog.Step, result *researchlog.Result) {
		switch step.Kind {
		case researchlog.StepRead:
			result.Page.Fingerprint = nil
			result.Page.Passages[0].Text = fmt.Sprintf("As shown in [1] and [77], the range of %s is large.", step.Found.Title)
		case researchlog.StepJudge:
			result.Quotes = []researchlog.Quote{{Number: 1, Text: step.Texts[0]}}
		case researchlog.StepWrite:
			*result = researchlog.Result{Failed: "It did not answer."}
		}
	}
	w.run()
	if strings.Contains(w.report.Content, "[77]") || !strings.Contains(w.report.Content, "As shown in (1) and (77)") {
		t.Errorf("%s", w.report.Content)
	}
}

func TestNoMarkdownOfASourceIsLiveInTheReport(t *testing.T) {
	const hostile = `See [the page](https://evil.example) and ![a](https://evil.example/p.png) \<img src=x> <https://evil.example> [b]: https://evil.example`
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.change = func(step *researchlog.Step, result *researchlog.Result) {
		if step.Kind == researchlog.StepWrite {
			result.Text = hostile + " [1](https://evil.example)."
		}
	}
	w.run()
	for _, text := range []string{w.report.Content, w.report.Notice} {
		for _, live := range []string{"](", "<img", "<https://evil", "]:"} {
			if strings.Contains(text, live) {
				t.Errorf("the report has %s:\n%s", live, text)
			}
		}
	}
}

func TestAReportThatCannotBeStoredFailsTheTask(t *testing.T) {
	w := written(t)
	b := w.machine.NewBatch()
	b.Reject("The project is archived.")
	if f := w.machine.task.Failure; w.machine.State() != protocol.ResearchFailed || f.Code != protocol.ResearchNotStored || f.Detail != "The project is archived." {
		t.Errorf("%s %+v", w.machine.State(), f)
	}
}

func TestTheErrorForALateCommandHasTheTask(t *testing.T) {
	w := inState(t, protocol.ResearchCancelled)
	_, err := w.machine.NewBatch().Steer(&researchlog.Steering{Kind: protocol.ResearchWriteNow, ClientID: "late"})
	var known *protocol.Error
	if !errors.As(err, &known) || known.Code != protocol.CodeSteeringClosed {
		t.Fatal(err)
	}
	if current, is := known.Current.(*protocol.ResearchTask); !is || current.State != protocol.ResearchCancelled {
		t.Errorf("%+v", known.Current)
	}
}

// Former versions decided when a journal was replayed whether the budget suffices, and by other rules than this one.
func TestAJournalOfFormerRulesGivesTheSameState(t *testing.T) {
	small := newSpec(protocol.ResearchQuick)
	small.Budget.Tokens = 5000
	w := newWorld(t, newSpec(protocol.ResearchQuick))
	w.step(func(b *Batch) { b.Resume(1, true) })
	w.advance()
	planned := w.claim.Entries[1]
	begin, over := researchlog.Entry{Kind: researchlog.EntryBegin}, researchlog.Entry{Kind: researchlog.EntryTimeOver, Seconds: 300}
	for name, c := range map[string]struct {
		spec    researchlog.Spec
		entries []researchlog.Entry
		stored  protocol.ResearchState
		plan    int
	}{
		"few tokens once sufficed":               {small, []researchlog.Entry{begin, planned}, protocol.ResearchRunning, 2},
		"few tokens did not suffice":             {small, []researchlog.Entry{begin}, protocol.ResearchFailed, 0},
		"the time once ended with a report":      {newSpec(protocol.ResearchQuick), []researchlog.Entry{begin, over}, protocol.ResearchRunning, 0},
		"the time ended with a task that failed": {newSpec(protocol.ResearchQuick), []researchlog.Entry{begin, over}, protocol.ResearchFailed, 0},
	} {
		m := Restore(&researchlog.Claim{Spec: c.spec, Entries: c.entries, State: c.stored, NextSequence: 9})
		if m.State() != c.stored || len(m.task.Plan) != c.plan {
			t.Errorf("%s: %s with %d questions", name, m.State(), len(m.task.Plan))
		}
		_, err := m.NewBatch().Steer(&researchlog.Steering{Kind: protocol.ResearchInput, Text: "late", ClientID: "late"})
		if c.stored.Terminal() && protocol.CodeOf(err) != protocol.CodeSteeringClosed {
			t.Errorf("%s: an input after the end: %v", name, err)
		}
	}
}
