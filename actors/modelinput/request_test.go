package modelinput

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/actors/routing"
	"turnstone/actors/toolbox"
	"turnstone/actors/toolbox/toolboxtest"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// conversations implements Conversations with one history, and the instructions of one project and of one account, by version.
type conversations struct {
	history      []turnlog.HistoryMessage
	instructions map[int64]string // of the project
	own          map[int64]string // of the account
	reads        []limits         // of each call of History
}

type limits struct{ messages, bytes int }

func (c *conversations) History(
	_ context.Context, _ protocol.AccountID, _ protocol.ConversationID, _ protocol.BranchID, _ protocol.MessageID, maxMessages, maxBytes int,
) ([]turnlog.HistoryMessage, bool, error) {
	c.reads = append(c.reads, limits{maxMessages, maxBytes})
	return c.history, true, nil
}

func (c *conversations) Instructions(_ context.Context, s *turnlog.Spec) (*turnlog.Instructions, error) {
	project, known := c.instructions[s.InstructionsVersion]
	own, knownOwn := c.own[s.AccountInstructions]
	if s.InstructionsVersion > 0 && !known || s.AccountInstructions > 0 && !knownOwn {
		return nil, errors.New("there is no such version")
	}
	return &turnlog.Instructions{Project: project, Account: own}, nil
}

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
	spec := &turnlog.Spec{AccountID: protocol.NewAccountID(), TurnID: protocol.NewTurnID(), ParentMessageID: new(protocol.MessageID), Input: "and now?"}
	spec.Routing.Completion = protocol.Completion{MaxOutputTokens: 200, MaxToolRounds: 8}
	step := func(output string) machine.CallInput {
		b := machine.New(spec, map[string]machine.Tool{"clock": {Kind: "compute", ReadOnly: true}}, true).NewBatch()
		b.Begin()
		b.Proceed()
		b.ModelText(1, "I look.")
		b.ModelChunk(1, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "1", Name: "clock", Input: []byte(`{}`)}})
		b.ModelStopped(1, llm.StopToolCalls)
		if _, err := b.Command(&machine.Command{Kind: machine.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c1", Text: "use UTC", Hash: "h", Delivery: protocol.DeliverNextStep}); err != nil {
			t.Fatal(err)
		}
		for _, effect := range b.Effects {
			if call, is := effect.(machine.RunTool); is {
				b.ToolEnded(call.ID, machine.ToolResult{Output: output}, nil, time.Second)
			}
		}
		b.ModelText(2, "As I")
		b.ModelFailed(2, &llm.Error{Code: "model_unavailable", Cut: true})
		return b.CallInput()
	}
	stopped := textMessage("assistant", "half an")
	stopped.Status = protocol.MessageCancelled
	store := &conversations{history: []turnlog.HistoryMessage{
		textMessage("assistant", "to what was left out"), textMessage("user", "one"), stopped, textMessage("user", "and now?"),
	}}
	route := routing.Route{ContextTokens: 1200, MaxOutputTokens: 200}
	builder := Builder{Conversations: store}
	request, err := builder.Build(t.Context(), step(strings.Repeat("9", 1000)), route, true)
	if err != nil || !request.Trimmed {
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
	if want := (limits{maxContextMessages, Space(route) - own}); store.reads[0] != want {
		t.Errorf("History got the limits %+v, want %+v: the turn's own messages reduce the space for earlier ones", store.reads[0], want)
	}
	if _, err = builder.Build(t.Context(), step(strings.Repeat("9", 10_000)), route, true); err != nil || store.reads[1].bytes != 0 {
		t.Errorf("for a turn that fills the context alone, History got the limits %+v, %v", store.reads[1], err)
	}
}

func TestARequestHasTheInstructionsAndToolsThatTheProjectHadAtTheStart(t *testing.T) {
	project := protocol.NewProjectID()
	store := &conversations{instructions: map[int64]string{3: strings.Repeat("i", 90), 4: "newer"}}
	catalogue, err := toolbox.NewCatalogue([]toolbox.Tool{&toolboxtest.Tool{Is: toolbox.Spec{Name: "calculate"}}, &toolboxtest.Tool{Is: toolbox.Spec{Name: "clock"}}})
	if err != nil {
		t.Fatal(err)
	}
	builder := Builder{Conversations: store, Tools: catalogue}
	spec := &turnlog.Spec{TurnID: protocol.NewTurnID(), Input: "hello", ProjectID: &project, InstructionsVersion: 3, DisabledTools: []string{"clock"}}
	restored, err := machine.Restore(&turnlog.Stored{Spec: spec}, map[string]machine.Tool{"calculate": {}, "clock": {}}, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, machine := range map[string]*machine.Machine{"started": machine.New(spec, map[string]machine.Tool{"calculate": {}, "clock": {}}, true), "adopted": restored} {
		request, err := builder.Build(t.Context(), machine.CallInput(), routing.Route{ContextTokens: 1200, MaxOutputTokens: 200}, true)
		if err != nil || !strings.HasSuffix(request.System, "\n\n<instructions>\n"+store.instructions[3]+"\n</instructions>") || len(request.Tools) != 1 || request.Tools[0].Name != "calculate" {
			t.Errorf("%s: the system prompt is %q, the tools are %+v, %v", name, request.System, request.Tools, err)
		}
	}
	spec.ParentMessageID = new(protocol.MessageID)
	if _, err = builder.Build(t.Context(), restored.CallInput(), routing.Route{ContextTokens: 1200, MaxOutputTokens: 200}, true); err != nil {
		t.Fatal(err)
	}
	if want := (limits{maxContextMessages, 3000 - 90}); store.reads[0] != want {
		t.Errorf("History got the limits %+v, want %+v: instructions reduce the space for messages", store.reads[0], want)
	}
	spec.InstructionsVersion = 9
	if _, err := builder.Build(t.Context(), restored.CallInput(), routing.Route{}, true); err == nil {
		t.Error("a turn continued without its instructions")
	}
}

func TestTheInstructionsOfTheAccountFollowThoseOfTheProject(t *testing.T) {
	const own = "I am a nurse."
	store := &conversations{instructions: map[int64]string{3: "Use metric units."}, own: map[int64]string{1: own, 2: "newer"}}
	catalogue, err := toolbox.NewCatalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	builder := Builder{Conversations: store, Tools: catalogue}
	spec := &turnlog.Spec{TurnID: protocol.NewTurnID(), Input: "hello", AccountInstructions: 1}
	build := func() *Request {
		t.Helper()
		request, err := builder.Build(t.Context(), machine.New(spec, nil, true).CallInput(), routing.Route{ContextTokens: 1200, MaxOutputTokens: 200}, true)
		if err != nil {
			t.Fatal(err)
		}
		return request
	}
	const frame = "\n\n<instructions>\n" + own + "\n</instructions>"
	if got := build(); !strings.HasSuffix(got.System, "for all conversations:"+frame) || len(got.Reading.Private) != 1 {
		t.Errorf("the system prompt is %q", got.System)
	}
	project := protocol.NewProjectID()
	spec.ProjectID, spec.InstructionsVersion, spec.ParentMessageID = &project, 3, new(protocol.MessageID)
	if got := build(); !strings.Contains(got.System, "\nUse metric units.\n") || !strings.HasSuffix(got.System, "follow the project's:"+frame) || len(got.Reading.Private) != 2 {
		t.Errorf("in a project, the system prompt is %q", got.System)
	}
	if want := (limits{maxContextMessages, 3000 - len(own) - len("Use metric units.")}); store.reads[0] != want {
		t.Errorf("History got the limits %+v, want %+v", store.reads[0], want)
	}
}

// consents are the sources to which an account consents now, or an error. reads counts the reads.
type consents struct {
	granted []protocol.MemorySource
	err     error
	reads   int
}

func (c *consents) Granted(context.Context, protocol.AccountID) ([]protocol.MemorySource, error) {
	c.reads++
	return c.granted, c.err
}

func TestARequestOffersOnlyToolsWithAConsentThatIsStillGranted(t *testing.T) {
	catalogue, err := toolbox.NewCatalogue([]toolbox.Tool{
		&toolboxtest.Tool{Is: toolbox.Spec{Name: "always"}},
		&toolboxtest.Tool{Is: toolbox.Spec{Name: "past", Consent: protocol.SourceConversations}},
		&toolboxtest.Tool{Is: toolbox.Spec{Name: "inside", InProject: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	project, both := protocol.NewProjectID(), []protocol.MemorySource{protocol.SourceConversations, protocol.SourceProjects}
	for name, c := range map[string]struct {
		spec  turnlog.Spec
		now   []protocol.MemorySource
		want  string
		reads int
	}{
		"nothing granted":     {turnlog.Spec{}, nil, "always", 0},
		"granted":             {turnlog.Spec{Granted: both}, both, "always past", 1},
		"revoked":             {turnlog.Spec{Granted: both}, both[1:], "always", 1},
		"granted later":       {turnlog.Spec{Granted: both[1:]}, both, "always", 1},
		"granted at no start": {turnlog.Spec{}, both, "always", 0},
		"in a project":        {turnlog.Spec{ProjectID: &project}, nil, "always inside", 0},
	} {
		now := &consents{granted: c.now}
		c.spec.TurnID = protocol.NewTurnID()
		builder := Builder{Conversations: &conversations{}, Tools: catalogue, Consents: now}
		request, err := builder.Build(t.Context(), machine.New(&c.spec, nil, true).CallInput(), routing.Route{ContextTokens: 1200, MaxOutputTokens: 200}, true)
		if err != nil {
			t.Fatal(err)
		}
		var offered []string
		for _, tool := range request.Tools {
			offered = append(offered, tool.Name)
		}
		if got := strings.Join(offered, " "); got != c.want || now.reads != c.reads {
			t.Errorf("%s: offered %q after %d reads, want %q after %d", name, got, now.reads, c.want, c.reads)
		}
	}
	builder := Builder{Conversations: &conversations{}, Tools: catalogue, Consents: &consents{err: errors.New("down")}}
	if _, err := builder.Build(t.Context(), machine.New(&turnlog.Spec{Granted: both}, nil, true).CallInput(), routing.Route{}, true); err == nil {
		t.Error("a request was built without the consents")
	}
}
