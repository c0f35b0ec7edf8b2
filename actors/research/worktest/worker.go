// Package worktest is the test suite for what runs the steps of research tasks: package work, and the stand-in of the tests of package
// http. Only tests import it.
package worktest

import (
	"context"
	"errors"
	"testing"

	"turnstone/actors/research"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// Page is a text that the worker of a suite finds.
const Page = "Spring tides occur when the sun and the moon are in line with the earth."

// steps are one step of each kind.
var steps = []researchlog.Step{
	{Key: "plan", Kind: researchlog.StepPlan, Asked: "What are spring tides?", Limit: 3, Tokens: 2000},
	{Key: "search-q1", Kind: researchlog.StepSearch, Source: protocol.ResearchWeb, Asked: "What are spring tides?", Limit: 3},
	{Key: "read-s1", Kind: researchlog.StepRead, Source: protocol.ResearchWeb, Found: &researchlog.Candidate{Title: "Tides", URL: "https://tides.example/web"}, About: []string{"What are spring tides?"}, Limit: 3},
	{Key: "judge-s1", Kind: researchlog.StepJudge, Asked: "Tides", About: []string{"What are spring tides?"}, Texts: []string{Page}, Limit: 3, Tokens: 2000},
	{Key: "write-q1", Kind: researchlog.StepWrite, Asked: "Tides", About: []string{"What are spring tides?"}, Quotes: []researchlog.Quote{{Number: 1, Title: "Tides", Text: Page}}, Tokens: 2000},
}

// RunWorker checks the contract of research.Worker.
func RunWorker(t *testing.T, worker research.Worker) {
	t.Helper()
	spec := &researchlog.Spec{TaskID: protocol.NewTaskID(), AccountID: protocol.NewAccountID(), Question: "What are spring tides?", Language: "en"}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range steps {
		step := &steps[i]
		if result, err := worker.Run(over, spec, step); result != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that has ended: %+v, %v", step.Kind, result, err)
		}
		result, err := worker.Run(t.Context(), spec, step)
		if err != nil || result == nil || result.Failed != "" {
			t.Errorf("%s: %+v, %v", step.Kind, result, err)
			continue
		}
		for name, has := range map[string][2]bool{
			"questions":  {len(result.Questions) > 0, step.Kind == researchlog.StepPlan},
			"candidates": {len(result.Candidates) > 0, step.Kind == researchlog.StepSearch},
			"a page":     {result.Page != nil && result.Pages == 1, step.Kind == researchlog.StepRead},
			"quotes":     {len(result.Quotes) > 0, step.Kind == researchlog.StepJudge},
			"a text":     {result.Text != "", step.Kind == researchlog.StepWrite},
		} {
			if has[0] != has[1] {
				t.Errorf("the result of %s has %s: %v", step.Kind, name, has[0])
			}
		}
	}
}
