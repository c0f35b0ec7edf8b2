package actors

import (
	"context"
	"strings"
	"testing"
	"time"

	"turnstone/actors/attachment"
	"turnstone/actors/llm"
	"turnstone/actors/routing"
	"turnstone/actors/turn"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// textMessage returns a complete message with one text part.
func textMessage(role, text string) turnlog.HistoryMessage {
	return turnlog.HistoryMessage{Role: role, Status: protocol.MessageComplete, Parts: []protocol.Part{{Type: protocol.PartText, Text: text}}}
}

// transcript returns the messages of a request, one per line.
func transcript(request *llm.Request) string {
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
	spec := newSpec()
	spec.Input = "and now?"
	spec.Routing.Completion = protocol.Completion{MaxOutputTokens: 200, MaxToolRounds: 8}
	prompt := func(output string) turn.Prompt {
		b := turn.New(spec, map[string]turn.Tool{"clock": {Kind: "compute", ReadOnly: true}}, true).NewBatch()
		b.Begin()
		b.Proceed()
		b.ModelText(1, "I look.")
		b.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "1", Name: "clock", Input: []byte(`{}`)}})
		b.ModelStopped(1, llm.StopToolCalls)
		if _, err := b.Command(newInput("c1", "use UTC")); err != nil {
			t.Fatal(err)
		}
		for _, effect := range b.Effects {
			if call, is := effect.(turn.RunTool); is {
				b.ToolEnded(call.ID, output, nil, nil, time.Second)
			}
		}
		b.ModelText(2, "As I")
		b.ModelFailed(2, &llm.Error{Code: "model_unavailable", Cut: true})
		return b.Prompt()
	}
	stopped := textMessage("assistant", "half an")
	stopped.Status = protocol.MessageCancelled
	store := newMemory()
	store.history = []turnlog.HistoryMessage{
		textMessage("assistant", "to what was left out"), textMessage("user", "one"), stopped, textMessage("user", "and now?"),
	}
	route := routing.Route{ContextTokens: 1200, MaxOutputTokens: 200}
	builder := requestBuilder{store: store}
	request, err := builder.build(t.Context(), prompt(strings.Repeat("9", 1000)), route, true)
	if err != nil || !request.trimmed {
		t.Fatalf("%+v, %v", request, err)
	}
	want := strings.Join([]string{
		"user: one", "assistant: half an\n[The user stopped this answer here.]", "user: and now?",
		"assistant: I look. calls clock", "tool: " + strings.Repeat("9", 1000), "user: use UTC", "assistant: As I",
	}, "\n")
	if got := transcript(&request.Request); got != want {
		t.Errorf("the model received\n%s\nwant\n%s", got, want)
	}
	if request.Messages[request.TurnInput-1].Text != "and now?" || !strings.Contains(request.System, "left out") {
		t.Errorf("the turn's input is message %d; the system prompt is: %s", request.TurnInput, request.System)
	}
	own := len("I look.") + 1000 + len("use UTC") + len("As I")
	if limits := (historyLimits{maxContextMessages, attachment.Space(route) - own}); store.reads[0] != limits {
		t.Errorf("History got the limits %+v, want %+v: the turn's own messages reduce the space for earlier ones", store.reads[0], limits)
	}
	if _, err = builder.build(t.Context(), prompt(strings.Repeat("9", 10_000)), route, true); err != nil || store.reads[1].bytes != 0 {
		t.Errorf("for a turn that fills the context alone, History got the limits %+v, %v", store.reads[1], err)
	}
}

func TestThatMessagesWereLeftOutIsStoredWithTheFirstOutput(t *testing.T) {
	for name, before := range map[string][]llm.Chunk{
		"at once":          nil,
		"after some usage": {{Kind: llm.ChunkUsage, Usage: llm.Usage{InputTokens: 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMemory()
			store.history = []turnlog.HistoryMessage{textMessage("user", "the last of many")}
			var first string // the events of the first append
			stored := make(chan struct{})
			store.onAppend = func(batch *turnlog.Append, commit func() error, done func(error)) {
				if first == "" {
					first = kinds(batch.Frames)
					defer close(stored)
				}
				err := commit()
				store.wg.Go(func() { done(err) })
			}
			model := &script{play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
				for _, chunk := range append(before, llm.Chunk{Kind: llm.ChunkText, Text: "fine"}) {
					if err := emit(chunk); err != nil {
						return err
					}
				}
				select {
				case <-stored:
				case <-ctx.Done():
				}
				return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
			}}
			n := startNode(t, store, model, nil)
			spec := startTurn(t, n, "hi")
			if got := kinds(read(t, n, spec, 0, nil)); strings.Count(got, "notice") != 1 {
				t.Errorf("events: %s", got)
			}
			if !strings.HasPrefix(first, "notice answer.started") {
				t.Errorf("the first append contains %q", first)
			}
		})
	}
}

func TestARequestHasTheInstructionsAndToolsThatTheProjectHadAtTheStart(t *testing.T) {
	project := protocol.NewProjectID()
	store := newMemory()
	store.instructions = map[int64]string{3: strings.Repeat("i", 90), 4: "newer"}
	builder := requestBuilder{store: store, tools: []llm.Tool{{Name: "calculate"}, {Name: "clock"}}}
	spec := &turnlog.Spec{TurnID: protocol.NewTurnID(), Input: "hello", ProjectID: &project, InstructionsVersion: 3, DisabledTools: []string{"clock"}}
	restored, err := turn.Restore(&turnlog.Stored{Spec: spec}, map[string]turn.Tool{"calculate": {}, "clock": {}}, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, machine := range map[string]*turn.Machine{"started": turn.New(spec, map[string]turn.Tool{"calculate": {}, "clock": {}}, true), "adopted": restored} {
		request, err := builder.build(t.Context(), machine.Prompt(), routing.Route{ContextTokens: 1200, MaxOutputTokens: 200}, true)
		if err != nil || !strings.HasSuffix(request.System, "\n\n<instructions>\n"+store.instructions[3]+"\n</instructions>") || len(request.Tools) != 1 || request.Tools[0].Name != "calculate" {
			t.Errorf("%s: the system prompt is %q, the tools are %+v, %v", name, request.System, request.Tools, err)
		}
	}
	spec.ParentMessageID = new(protocol.MessageID)
	if _, err = builder.build(t.Context(), restored.Prompt(), routing.Route{ContextTokens: 1200, MaxOutputTokens: 200}, true); err != nil {
		t.Fatal(err)
	}
	if limits := (historyLimits{maxContextMessages, 3000 - 90}); store.reads[0] != limits {
		t.Errorf("History got the limits %+v, want %+v: instructions reduce the space for messages", store.reads[0], limits)
	}
	spec.InstructionsVersion = 9
	if _, err := builder.build(t.Context(), restored.Prompt(), routing.Route{}, true); err == nil {
		t.Error("a turn continued without its instructions")
	}
}
