package actors

import (
	"context"
	"strings"
	"testing"

	"turnstone/protocol"
)

func said(role, text string) protocol.HistoryMessage {
	return protocol.HistoryMessage{Role: role, Status: protocol.MessageComplete, Parts: []protocol.Part{{Type: protocol.PartText, Text: text}}}
}

// transcript is what a model is sent, a message a line.
func transcript(request *ModelRequest) string {
	var lines []string
	for _, m := range request.Messages {
		line := m.Role + ": " + m.Text
		for _, call := range m.ToolCalls {
			line += " calls " + call.Name
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestTheModelReceivesTheNewestMessagesAndAllOfItsTurn(t *testing.T) {
	tool := protocol.ToolID{15: 1}
	spec := &protocol.TurnSpec{ParentMessageID: new(protocol.MessageID), Input: "and now?"}
	c := callContext{
		step: 2, spec: spec, prefix: "As I",
		steps:   []stepResult{{Step: 1, Text: "I look.", Calls: []ModelToolCall{{ID: "1", Name: "clock"}}, Tools: []protocol.ToolID{tool}}},
		results: map[protocol.ToolID]toolResult{tool: {output: strings.Repeat("9", 1000)}},
		inputs:  map[int][]string{1: {"hurry"}, 2: {"use UTC"}},
	}
	stopped := said("assistant", "half an")
	stopped.Status = protocol.MessageCancelled
	store := newMemory()
	store.history = []protocol.HistoryMessage{
		said("assistant", "to what was left out"), said("user", "one"), stopped, said("user", "and now?"),
	}
	route := Route{ContextTokens: 1200, MaxOutputTokens: 200}
	request, trimmed, err := buildRequest(t.Context(), store, c, route, nil)
	if err != nil || !trimmed {
		t.Fatalf("trimmed %v, %v", trimmed, err)
	}
	want := strings.Join([]string{
		"user: one", "assistant: half an\n[The user stopped this answer here.]", "user: and now?",
		"user: hurry", "assistant: I look. calls clock", "tool: " + strings.Repeat("9", 1000), "user: use UTC", "assistant: As I",
	}, "\n")
	if got := transcript(&request); got != want {
		t.Errorf("the model received\n%s\nwant\n%s", got, want)
	}
	if request.Messages[request.TurnInput-1].Text != "and now?" || !strings.Contains(request.System, "left out") {
		t.Errorf("the turn's input is message %d; %s", request.TurnInput, request.System)
	}
	own := len("hurry") + len("I look.") + 1000 + len("use UTC") + len("As I")
	if limits := (historyLimits{maxContextMessages, 1000*bytesPerToken - own}); store.asked[0] != limits {
		t.Errorf("asked for %+v, want %+v: the turn's own messages take their room from the earlier ones", store.asked[0], limits)
	}
	c.results[tool] = toolResult{output: strings.Repeat("9", 10_000)}
	if _, _, err = buildRequest(t.Context(), store, c, route, nil); err != nil || store.asked[1].bytes != 0 {
		t.Errorf("a turn that fills the context alone asks for %+v, %v", store.asked[1], err)
	}
}

func TestThatMessagesWereLeftOutIsStoredWithTheFirstOutput(t *testing.T) {
	for name, before := range map[string][]ModelChunk{
		"at once":          nil,
		"after some usage": {{Kind: ChunkUsage, Usage: ModelUsage{InputTokens: 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMemory()
			store.history = []protocol.HistoryMessage{said("user", "the last of many")}
			var first string // the events of the first append
			stored := make(chan struct{})
			store.onAppend = func(batch *protocol.TurnAppend, keep func() error, done func(error)) {
				if first == "" {
					first = kinds(batch.Frames)
					defer close(stored)
				}
				err := keep()
				store.wg.Go(func() { done(err) })
			}
			model := &script{play: func(ctx context.Context, _ int, _ ModelRequest, emit func(ModelChunk) error) error {
				for _, chunk := range append(before, ModelChunk{Kind: ChunkText, Text: "fine"}) {
					if err := emit(chunk); err != nil {
						return err
					}
				}
				select {
				case <-stored:
				case <-ctx.Done():
				}
				return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
			}}
			n := startNode(t, store, model, nil)
			spec := startTurn(t, n, "hi")
			if got := kinds(read(t, n, spec, 0, nil)); strings.Count(got, "notice") != 1 {
				t.Errorf("events: %s", got)
			}
			if !strings.HasPrefix(first, "notice answer.started") {
				t.Errorf("the first append holds %q", first)
			}
		})
	}
}
