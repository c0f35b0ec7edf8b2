package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"turnstone/actors/llm"
)

// RunModel checks the rules of llm.Model that hold for every implementation, also for those of tests. Each rule gets a model of its own.
// text is the message that it answers.
func RunModel(t *testing.T, text string, open func(t *testing.T) llm.Model) {
	t.Helper()
	request := simple()
	request.Messages[0].Text = text
	request.Tools = []llm.Tool{{Name: "calculate", Schema: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}}}`)}}
	for name, rule := range map[string]func(*testing.T, llm.Model, llm.Request){
		"an answer has one stop, after its usage": ruleAnswer,
		"nothing is emitted after a cancel":       ruleCancel,
		"a failing emit ends the stream":          ruleFailingEmit,
		"concurrent calls":                        ruleConcurrent,
		"no tool is called if the request says":   ruleWithoutCalls,
	} {
		t.Run(name, func(t *testing.T) { rule(t, open(t), request) })
	}
}

func ruleAnswer(t *testing.T, model llm.Model, request llm.Request) {
	if _, err := Collect(t.Context(), t, model, request); err != nil {
		t.Error(err)
	}
	if err := model.Ready(t.Context()); err != nil || model.Family() == "" {
		t.Errorf("the family %q is ready: %v", model.Family(), err)
	}
}

func ruleCancel(t *testing.T, model llm.Model, request llm.Request) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err := model.Stream(ctx, request, func(llm.Chunk) error {
		seen++
		cancel()
		return nil
	})
	if seen != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d chunks, %v", seen, err)
	}
	if chunks, err := Collect(ctx, t, model, request); len(chunks) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v, %v", chunks, err)
	}
}

func ruleFailingEmit(t *testing.T, model llm.Model, request llm.Request) {
	ended, seen := errors.New("the turn has ended"), 0
	err := model.Stream(t.Context(), request, func(llm.Chunk) error {
		seen++
		return ended
	})
	if !errors.Is(err, ended) || seen != 1 {
		t.Errorf("after %d chunks: %v", seen, err)
	}
}

func ruleConcurrent(t *testing.T, model llm.Model, request llm.Request) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := Collect(t.Context(), t, model, request); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func ruleWithoutCalls(t *testing.T, model llm.Model, request llm.Request) {
	request.WithoutCalls = true
	chunks, err := Collect(t.Context(), t, model, request)
	if err != nil || has(chunks, llm.ChunkToolCall) || StopOf(chunks) == llm.StopToolCalls {
		t.Errorf("%+v, %v", chunks, err)
	}
}

// Emit emits the chunks of an answer, as llm.Model demands: in order, until ctx is done or emit fails.
func Emit(ctx context.Context, emit func(llm.Chunk) error, chunks ...llm.Chunk) error {
	for _, chunk := range chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(chunk); err != nil {
			return err
		}
	}
	return nil
}

// Answer returns the chunks of an answer with a text.
func Answer(text string) []llm.Chunk {
	return append([]llm.Chunk{{Kind: llm.ChunkText, Text: text}}, Ended(llm.StopEndTurn)...)
}

// Ended returns the last chunks of an answer.
func Ended(stop llm.Stop) []llm.Chunk {
	return []llm.Chunk{{Kind: llm.ChunkUsage, Usage: llm.Usage{InputTokens: 1, OutputTokens: 1}}, {Kind: llm.ChunkStop, Stop: stop}}
}
