package turn

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/protocol"
)

// answers is a model that gives one answer for each call. It repeats the last one.
func answers(each ...func(request llm.Request, emit func(llm.Chunk) error) error) *llmtest.Script {
	return &llmtest.Script{Play: func(_ context.Context, call int, request llm.Request, emit func(llm.Chunk) error) error {
		return each[min(call, len(each))-1](request, emit)
	}}
}

func stops(chunks ...llm.Chunk) func(llm.Request, func(llm.Chunk) error) error {
	return func(_ llm.Request, emit func(llm.Chunk) error) error {
		for _, chunk := range append(chunks, llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn}) {
			if err := emit(chunk); err != nil {
				return err
			}
		}
		return nil
	}
}

func say(s string) llm.Chunk { return llm.Chunk{Kind: llm.ChunkText, Text: s} }

// endOf runs a turn and returns its parts as "type:text", and its end.
func endOf(t *testing.T, model *llmtest.Script) (parts string, frames []byte, end *protocol.TurnFinished) {
	t.Helper()
	store := actorstest.NewMemory()
	n := startNode(t, store, model, nil)
	spec := startTurn(t, n, "hi")
	frames = read(t, n, spec, 0, nil)
	var all []string
	for _, part := range store.Turns[spec.TurnID].Finishes[0].Parts {
		all = append(all, string(part.Type)+":"+part.Text+part.Kind)
	}
	for line := range protocol.FrameLines(frames) {
		_, payload, err := protocol.DecodeEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		if finished, is := payload.(*protocol.TurnFinished); is {
			end = finished
		}
	}
	return strings.Join(all, " "), frames, end
}

func TestARequestThatIsTooLongIsRepeatedShorter(t *testing.T) {
	var limits []int
	exceeded := func(request llm.Request, _ func(llm.Chunk) error) error {
		limits = append(limits, request.MaxOutputTokens)
		return &llm.Error{Code: protocol.ModelContextExceeded, Limit: 8000}
	}
	fits := func(request llm.Request, emit func(llm.Chunk) error) error {
		limits = append(limits, request.MaxOutputTokens)
		return stops(say("fine"))(request, emit)
	}
	parts, _, end := endOf(t, answers(exceeded, fits))
	if parts != "text:fine" || end.Status != protocol.TurnCompleted || len(limits) != 2 || limits[1] != 2000 {
		t.Errorf("%s, %+v, answers of %v tokens", parts, end, limits)
	}
	_, _, end = endOf(t, answers(exceeded))
	if end.Status != protocol.TurnFailed || end.Error.Code != protocol.ModelContextExceeded || !strings.Contains(end.Error.Detail, "too long") {
		t.Errorf("%+v", end)
	}
}

// A user whose requests are too long must not make those of others shorter.
func TestARequestThatIsTooLongTeachesNoSize(t *testing.T) {
	var limits []int
	n := startNode(t, actorstest.NewMemory(), &llmtest.Script{Play: func(_ context.Context, _ int, request llm.Request, _ func(llm.Chunk) error) error {
		limits = append(limits, request.MaxOutputTokens)
		return &llm.Error{Code: protocol.ModelContextExceeded}
	}}, nil)
	for range 3 {
		read(t, n, startTurn(t, n, "hi"), 0, nil)
	}
	if len(limits) != 6 || limits[0] != limits[2] || limits[0] != limits[4] {
		t.Errorf("answers of %v tokens", limits)
	}
}

func TestAnEmptyAnswerIsRepeatedOnce(t *testing.T) {
	thought := llm.Chunk{Kind: llm.ChunkReasoning, Text: "Hm"}
	if parts, _, end := endOf(t, answers(stops(thought), stops(say("fine")))); parts != "text:fine" || end.Status != protocol.TurnCompleted {
		t.Errorf("repeated: %s, %+v", parts, end)
	}
	parts, _, end := endOf(t, answers(stops(say(" \n"))))
	if !strings.Contains(parts, "empty_answer") || end.Status != protocol.TurnIncomplete || end.StopReason != protocol.StopError {
		t.Errorf("empty twice: %s, %+v", parts, end)
	}
}

func TestTextThatEndsAsReasoningBecomesReasoning(t *testing.T) {
	parts, _, _ := endOf(t, answers(stops(say("I think\n"), llm.Chunk{Kind: llm.ChunkThought}, say("fine"))))
	if parts != "reasoning_summary:I think\n text:fine" {
		t.Error(parts)
	}
}

func TestAWaitForABusyModelIsShown(t *testing.T) {
	_, frames, end := endOf(t, answers(stops(llm.Chunk{Kind: llm.ChunkWaiting, Wait: 18500 * time.Millisecond}, say("fine"))))
	if !bytes.Contains(frames, []byte("Trying again in 19 seconds")) || end.Status != protocol.TurnCompleted {
		t.Errorf("%s", frames)
	}
}

func TestARefusedRequestCostsNothing(t *testing.T) {
	for _, failure := range []llm.Error{{Code: protocol.ModelRejected}, {Code: protocol.ModelCreditUsedUp}} {
		_, _, end := endOf(t, answers(func(llm.Request, func(llm.Chunk) error) error { return &failure }))
		if end.Status != protocol.TurnFailed || end.Usage.InputTokens != 0 || end.Error.Detail == "" {
			t.Errorf("%+v", end)
		}
	}
	_, _, end := endOf(t, answers(func(_ llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(llm.Chunk{Kind: llm.ChunkUsage}); err != nil {
			return err
		}
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopRefusal})
	}))
	if end.StopReason != protocol.StopRefusal || end.Usage.InputTokens != 0 {
		t.Errorf("%+v", end)
	}
}
