package work

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/metering"
	"turnstone/actors/routing"
	"turnstone/protocol/researchlog"
)

// writer returns a model that writes a text again and again, whatever limit the request has, and the number of bytes that it has
// written.
func writer(text string) (model *llmtest.Script, written *int) {
	written = new(int)
	return &llmtest.Script{Play: func(_ context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		for range 100_000 {
			if text == "" {
				break
			}
			*written += len(text)
			if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: text}); err != nil {
				return err
			}
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
	}}, written
}

func working(model llm.Model) *Worker {
	return &Worker{Model: &metering.Model{Model: model}, Route: routing.Route{MaxOutputTokens: 8000}, Log: zap.NewNop()}
}

func TestAModelThatIgnoresItsLimitIsNotReadToItsEnd(t *testing.T) {
	const text = "The tide rises. "
	model, written := writer(text)
	result, err := working(model).ask(t.Context(), &researchlog.Spec{}, &researchlog.Step{Key: "write-q1", Kind: researchlog.StepWrite, Asked: "Why?", Tokens: 2000})
	if err != nil || !strings.HasPrefix(result.Text, text) {
		t.Fatalf("%+v, %v", result, err)
	}
	if *written > 2000*maxTokenBytes || result.Usage.OutputTokens > 2000*maxTokenBytes/2 || result.Usage.OutputTokens == 0 {
		t.Errorf("%d bytes were read, %+v", *written, result.Usage)
	}
}

func TestASourceAboutWhichAModelWritesNothingIsNotLost(t *testing.T) {
	step := &researchlog.Step{Key: "judge-s1", Kind: researchlog.StepJudge, Asked: "Why?", About: []string{"Why?"}, Texts: []string{"The tide rises."}, Limit: 3, Tokens: 2000}
	silent, _ := writer("")
	if _, err := working(silent).ask(t.Context(), &researchlog.Spec{}, step); err == nil {
		t.Error("no answer is taken for one that finds nothing")
	}
	none, _ := writer("none")
	if _, err := working(none).ask(t.Context(), &researchlog.Spec{}, step); err != nil {
		t.Errorf("an answer that finds nothing: %v", err)
	}
}
