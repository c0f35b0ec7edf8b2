package work

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/actors/metering"
	"turnstone/actors/routing"
	"turnstone/protocol/researchlog"
)

// writer is a model that writes a text again and again, whatever limit the request has.
type writer struct {
	llm.Model
	text    string
	written int
}

func (w *writer) Stream(_ context.Context, _ llm.Request, emit func(llm.Chunk) error) error {
	for range 100_000 {
		if w.text == "" {
			break
		}
		w.written += len(w.text)
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: w.text}); err != nil {
			return err
		}
	}
	return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
}

func working(model *writer) *Worker {
	return &Worker{Model: &metering.Model{Model: model}, Route: routing.Route{MaxOutputTokens: 8000}, Log: zap.NewNop()}
}

func TestAModelThatIgnoresItsLimitIsNotReadToItsEnd(t *testing.T) {
	model := &writer{text: "The tide rises. "}
	result, err := working(model).ask(t.Context(), &researchlog.Spec{}, &researchlog.Step{Key: "write-q1", Kind: researchlog.StepWrite, Asked: "Why?", Tokens: 2000})
	if err != nil || !strings.HasPrefix(result.Text, model.text) {
		t.Fatalf("%+v, %v", result, err)
	}
	if model.written > 2000*maxTokenBytes || result.Usage.OutputTokens > 2000*maxTokenBytes/2 || result.Usage.OutputTokens == 0 {
		t.Errorf("%d bytes were read, %+v", model.written, result.Usage)
	}
}

func TestASourceAboutWhichAModelWritesNothingIsNotLost(t *testing.T) {
	step := &researchlog.Step{Key: "judge-s1", Kind: researchlog.StepJudge, Asked: "Why?", About: []string{"Why?"}, Texts: []string{"The tide rises."}, Limit: 3, Tokens: 2000}
	if _, err := working(&writer{}).ask(t.Context(), &researchlog.Spec{}, step); err == nil {
		t.Error("no answer is taken for one that finds nothing")
	}
	if _, err := working(&writer{text: "none"}).ask(t.Context(), &researchlog.Spec{}, step); err != nil {
		t.Errorf("an answer that finds nothing: %v", err)
	}
}
