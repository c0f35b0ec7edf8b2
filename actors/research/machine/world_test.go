package machine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/actors/research/evidence"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// world runs a machine with steps whose results are functions of their inputs, and stores its journal as the store does.
type world struct {
	t       *testing.T
	claim   *researchlog.Claim
	machine *Machine
	running []*researchlog.Step
	ran     []string // keys of the steps that ran, in order
	events  []protocol.Payload
	report  *researchlog.Report
	sources map[int]researchlog.Source
	states  map[string]string // of the questions and the sources, by their identifiers
	random  *rand.Rand        // chooses which running step ends next; nil: the first one
	former  bool              // results have the entries of a former version
	holds   bool              // a report that is written is not stored yet, and the steps of a cancelled task have not stopped yet
	change  func(step *researchlog.Step, result *researchlog.Result)
}

func newSpec(depth protocol.ResearchDepth) researchlog.Spec {
	id := protocol.NewTaskID()
	return researchlog.Spec{
		TaskID: id, AccountID: protocol.NewAccountID(), ConversationID: protocol.NewConversationID(), Question: "Why are the tides so high?", Depth: depth,
		Sources: []protocol.ResearchSource{protocol.ResearchWeb}, Budget: protocol.ResearchBudgets[depth], Language: "en",
	}
}

func newWorld(t *testing.T, spec researchlog.Spec) *world {
	t.Helper()
	w := &world{t: t, claim: &researchlog.Claim{Spec: spec, State: protocol.ResearchQueued}, sources: map[int]researchlog.Source{}, states: map[string]string{}}
	w.machine = New(&w.claim.Spec)
	w.step(func(b *Batch) { b.Start() })
	return w
}

// step makes a decision, checks that it is stored without a gap, and notes its effects.
func (w *world) step(decide func(*Batch)) {
	w.t.Helper()
	b := w.machine.NewBatch()
	decide(b)
	a := b.Append()
	if want := int64(len(w.events)) + 1; len(b.Events) > 0 && a.First != want {
		w.t.Fatalf("the batch begins with event %d, want %d", a.First, want)
	}
	if want := int64(len(w.claim.Entries)) + 1; a.FirstEntry != want {
		w.t.Fatalf("the batch begins with entry %d, want %d", a.FirstEntry, want)
	}
	w.events = append(w.events, b.Events...)
	follow(w.t, w.states, b.Events)
	for _, entry := range b.Entries {
		var stored researchlog.Entry // as the store gives it back
		text, err := json.Marshal(entry)
		if err == nil {
			err = json.Unmarshal(text, &stored)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		w.claim.Entries = append(w.claim.Entries, stored)
	}
	w.claim.State, w.claim.NextSequence, w.claim.Version = a.Task.State, a.Last+1, a.Task.Version
	for _, s := range a.Sources {
		w.sources[s.Ordinal] = s
	}
	if a.Report != nil {
		w.report = a.Report
	}
	finish := false
	for _, e := range b.Effects {
		switch {
		case e.Stop:
			w.running, finish = nil, true
		case len(e.Drop) > 0:
			w.running = slices.DeleteFunc(w.running, func(s *researchlog.Step) bool { return slices.Contains(e.Drop, s.Key) })
		case e.Run != nil:
			w.running = append(w.running, e.Run)
		case e.Finish && !w.holds:
			defer w.step(func(b *Batch) { b.Complete(protocol.NewMessageID()) })
		}
	}
	if finish && !w.holds {
		w.step(func(b *Batch) { b.Stopped() })
	}
}

// advance ends one of the running steps. It reports whether there was one.
func (w *world) advance() bool {
	w.t.Helper()
	if len(w.running) == 0 {
		return false
	}
	at := 0
	if w.random != nil {
		at = w.random.IntN(len(w.running))
	}
	step := w.running[at]
	w.running = slices.Delete(slices.Clone(w.running), at, at+1)
	w.ran = append(w.ran, step.Key)
	result := resultOf(step)
	if w.change != nil {
		w.change(step, result)
	}
	w.step(func(b *Batch) {
		if w.former {
			b.enact(researchlog.Entry{Kind: researchlog.EntryResult, Step: step.Key, Digest: b.byKey[step.Key].digest, Result: result, Seconds: b.Seconds()})
			return
		}
		b.Result(step.Key, result, b.Seconds())
	})
	return true
}

// run runs the task to its end.
func (w *world) run() *protocol.ResearchTask {
	w.t.Helper()
	if w.machine.State() == protocol.ResearchQueued {
		w.step(func(b *Batch) { b.Resume(1, true) })
	}
	for n := 0; w.advance(); n++ {
		if n > 1000 {
			w.t.Fatal("the task does not end")
		}
	}
	if !w.machine.State().Terminal() {
		w.t.Fatalf("the task waits for nothing in %s/%s", w.machine.task.State, w.machine.task.Phase)
	}
	return &w.machine.task
}

// restart continues the task as another owner does.
func (w *world) restart() {
	w.t.Helper()
	w.machine, w.running = Restore(w.claim), nil
	clear(w.states) // a result that is not used leads back
	w.states[ofPhase] = string(w.machine.task.Phase)
	for _, q := range w.machine.questions {
		w.states[q.StepID] = string(q.State)
	}
	for _, s := range w.machine.sources {
		w.states[s.SourceID] = string(s.state)
	}
	w.step(func(b *Batch) { b.Resume(1, false) })
}

// pageText is the text of page n. Pages n and n+7 are the same work.
func pageText(n int) string {
	n %= 7
	return fmt.Sprintf("The tidal range at station %d is %d.%d metres in spring. Engineers built the lock of station %d in 19%02d to let ships pass at low water. %s",
		n, 4+n, n, n, 40+n, strings.Repeat(fmt.Sprintf("The notes of station %d describe weather and birds of many kinds in plain words. ", n), 12))
}

// resultOf is the result of a step: a function of its input.
func resultOf(step *researchlog.Step) *researchlog.Result {
	tokens := protocol.Usage{InputTokens: 90, OutputTokens: 10}
	switch step.Kind {
	case researchlog.StepPlan:
		return &researchlog.Result{Questions: []string{"How high is the tidal range?", "Who built the locks?"}[:min(2, step.Limit)], Usage: tokens}
	case researchlog.StepRevise:
		return &researchlog.Result{Questions: []string{"What about " + step.Inputs[len(step.Inputs)-1] + "?"}, Usage: tokens}
	case researchlog.StepSearch:
		var found []researchlog.Candidate
		for n := range step.Limit {
			n += len(step.About[0]) % 3
			found = append(found, researchlog.Candidate{Title: fmt.Sprintf("Station %d", n), URL: fmt.Sprintf("https://www.tides.example/stations/%d?utm_source=x", n)})
		}
		return &researchlog.Result{Candidates: found}
	case researchlog.StepRead:
		var n int
		_, _ = fmt.Sscanf(step.Found.Title, "Station %d", &n)
		text := pageText(n)
		print, _ := json.Marshal(evidence.FingerprintOf(text))
		return &researchlog.Result{Pages: 1, Page: &researchlog.Page{
			Title: step.Found.Title, URL: step.Found.URL, SHA256: fmt.Sprintf("%064d", n), Fingerprint: print, AccessedAt: time.Unix(1_700_000_000, 0).UTC(),
			Passages: []researchlog.Passage{{Text: text, Locator: "paragraph 1"}},
		}}
	case researchlog.StepJudge:
		var quotes []researchlog.Quote
		sentences := strings.SplitAfter(step.Texts[0], ". ")
		for i := range step.About {
			quotes = append(quotes, researchlog.Quote{Number: i + 1, Text: sentences[i%len(sentences)]})
		}
		return &researchlog.Result{Quotes: append(quotes, researchlog.Quote{Number: 1, Text: "No source contains this sentence about the moons of Jupiter."}), Usage: tokens}
	case researchlog.StepWrite:
		var b strings.Builder
		for _, q := range step.Quotes {
			fmt.Fprintf(&b, "%s [%d] [99].\n\n", strings.TrimSuffix(strings.TrimSpace(q.Text), "."), q.Number)
		}
		return &researchlog.Result{Text: b.String() + "The Moon of Jupiter raised 777 metres of tide in 1850 [1].", Usage: tokens}
	case researchlog.StepSummarize:
		return &researchlog.Result{Text: strings.SplitN(step.Texts[0], "\n", 2)[0], Usage: tokens}
	}
	return &researchlog.Result{Usage: tokens}
}
