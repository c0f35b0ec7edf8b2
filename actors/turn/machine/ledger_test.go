package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

// ask lets the model ask for calls of look, each with an input, and ends its step.
func ask(m *driver, name string, inputs ...string) []*toolCall {
	for i, input := range inputs {
		m.ModelChunk(m.call, &llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: fmt.Sprint("c", i), Name: name, Input: json.RawMessage(input)}})
	}
	m.ModelStopped(m.call, llm.StopToolCalls)
	return m.toolCalls
}

func begun(spec *turnlog.Spec) *driver {
	m := newDriver(spec, machineTools, true)
	m.Begin()
	m.Proceed()
	return m
}

func TestTheThirdIdenticalCallIsAnsweredFromTheLedgerAndTheFifthEndsTools(t *testing.T) {
	for _, failing := range []bool{false, true} {
		m := begun(machineSpec())
		for n := 1; n <= 5; n++ {
			call := ask(m, "look", `{"at":"sea"}`)[0]
			ran := call.state == protocol.ToolRunning
			if ran != (n <= 2) {
				t.Fatalf("call %d runs: %v", n, ran)
			}
			if ran && failing {
				m.ToolEnded(call.id, ToolResult{}, &protocol.ToolError{Code: "closed", Detail: "It is closed."}, time.Second)
			} else if ran {
				m.ToolEnded(call.id, ToolResult{Output: "waves"}, nil, time.Second)
			}
			result := m.CallInput().results[call.id].text()
			switch {
			case n == 5 && !strings.HasPrefix(result, "repeated_call"), n < 5 && !failing && !strings.HasPrefix(result, "waves"), n < 5 && failing && !strings.HasPrefix(result, "closed"),
				n > 2 && n < 5 && !strings.Contains(result, "was not made again"):
				t.Errorf("call %d gave %q", n, result)
			}
		}
		if !m.CallInput().WithoutTools {
			t.Fatal("the model is offered tools again")
		}
		m.ModelText(m.call, "Only waves.")
		ask(m, "look", `{"at":"land"}`) // a model that ignores that it was offered no tool
		if m.state != protocol.TurnCompleted || m.End.Reason != protocol.StopEndTurn {
			t.Errorf("the turn ended as %s, %+v", m.state, m.End)
		}
	}
}

func TestACallWithAnotherResultRunsAgain(t *testing.T) {
	m := begun(machineSpec())
	for n := range 5 {
		call := ask(m, "look", `{}`)[0]
		if call.state != protocol.ToolRunning {
			t.Fatalf("call %d is %s", n, call.state)
		}
		m.ToolEnded(call.id, ToolResult{Output: fmt.Sprint("at ", n)}, nil, time.Second)
	}
}

// The account may have revoked its consent since the earlier calls. The tool checks that when it runs.
func TestACallThatNeedsAConsentIsNeverAnsweredFromTheLedger(t *testing.T) {
	m := newDriver(machineSpec(), map[string]Tool{"look": {Kind: "location", Title: "Look", ReadOnly: true, Consent: protocol.SourceLocation}}, true)
	m.Begin()
	m.Proceed()
	for n := 1; n <= repeatsEnd; n++ {
		call := ask(m, "look", `{}`)[0]
		if runs := call.state == protocol.ToolRunning; runs != (n < repeatsEnd) {
			t.Fatalf("call %d is %s", n, call.state)
		}
		m.ToolEnded(call.id, ToolResult{Output: "Emden"}, nil, time.Second)
	}
	if !m.CallInput().WithoutTools {
		t.Error("the fifth identical call does not end the use of tools")
	}
}

// A look after a write may show something else, so it runs. The write itself still counts.
func TestACallRunsAgainAfterOneWithAnEffect(t *testing.T) {
	for failure, runs := range map[protocol.ToolErrorCode]bool{"": true, protocol.ToolCallTimeout: true, "no_such_page": false} {
		m := begun(machineSpec())
		for range 2 {
			m.ToolEnded(ask(m, "look", `{}`)[0].id, ToolResult{Output: "waves"}, nil, time.Second)
		}
		var failed *protocol.ToolError
		if failure != "" {
			failed = &protocol.ToolError{Code: failure}
		}
		m.ToolEnded(ask(m, "write", `{}`)[0].id, ToolResult{}, failed, time.Second)
		call := ask(m, "look", `{}`)[0]
		if (call.state == protocol.ToolRunning) != runs {
			t.Errorf("after a write that ended with %q, the third look is %s", failure, call.state)
		}
	}
	m := begun(machineSpec())
	for n := 1; n <= 3; n++ {
		call := ask(m, "write", `{"text":"a"}`)[0]
		if ran := call.state == protocol.ToolRunning; ran != (n <= 2) {
			t.Errorf("write %d runs: %t", n, ran)
		} else if ran {
			m.ToolEnded(call.id, ToolResult{Output: "written"}, nil, time.Second)
		}
	}
}

func TestATurnOverItsLimitsIsAskedForItsAnswerWithoutTools(t *testing.T) {
	for name, exceed := range map[string]func(*driver){
		"rounds": func(m *driver) {
			for n := 0; !m.CallInput().WithoutTools; n++ {
				if call := ask(m, "look", fmt.Sprintf(`{"n":%d}`, n))[0]; call.state == protocol.ToolRunning {
					m.ToolEnded(call.id, ToolResult{Output: "x"}, nil, time.Second)
				}
			}
		},
		"calls": func(m *driver) {
			var inputs []string
			for n := range maxToolCalls + 250 {
				inputs = append(inputs, fmt.Sprintf(`{"n":%d}`, n))
			}
			ran := 0
			for n, call := range ask(m, "look", inputs...) {
				if call.state != protocol.ToolRunning {
					continue
				}
				if ran++; n >= maxToolCalls {
					t.Errorf("call %d runs", n+1)
				}
				m.ToolEnded(call.id, ToolResult{Output: "x"}, nil, time.Millisecond)
			}
			if ran != maxToolCalls {
				t.Errorf("%d of %d calls run, want %d", ran, len(inputs), maxToolCalls)
			}
			told := 0
			input := m.CallInput()
			for _, message := range input.OwnMessages() {
				if n := len(message.ToolCalls); n > 0 && n != len(inputs) { // what the provider sealed with the calls stays with them
					t.Errorf("a message has %d of %d calls", n, len(inputs))
				}
				if strings.HasPrefix(message.Text, string(protocol.ToolCallOverLimit)) {
					told++
				}
			}
			if told != 250 {
				t.Errorf("the model sees the reason of %d calls beyond the limit, want 250", told)
			}
		},
		"seconds": func(m *driver) {
			m.ToolEnded(ask(m, "look", `{"n":1}`)[0].id, ToolResult{Output: "x"}, nil, maxToolTime)
			ask(m, "look", `{"n":2}`)
		},
	} {
		m := begun(machineSpec())
		exceed(m)
		input := m.CallInput()
		if !input.WithoutTools || m.ended {
			t.Fatalf("%s: the model is not asked without tools", name)
		}
		calls, results := 0, 0
		for _, message := range input.OwnMessages() {
			calls += len(message.ToolCalls)
			if message.Role == "tool" {
				results++
			}
		}
		if calls != results {
			t.Errorf("%s: %d calls have %d results", name, calls, results)
		}
		if input.HideTools {
			t.Errorf("%s: the tools are hidden at once", name)
		}
		ask(m, "look", `{"ignores":"that no tool may be called"}`)
		if input := m.CallInput(); m.ended || !input.HideTools {
			t.Fatalf("%s: a model that calls a tool all the same is not asked without seeing any", name)
		}
		m.ModelText(m.call, "That is what I have.")
		m.ModelStopped(m.call, llm.StopEndTurn)
		if m.state != protocol.TurnIncomplete || m.End.Reason != protocol.StopToolLimit {
			t.Errorf("%s: the turn ended as %s, %+v", name, m.state, m.End)
		}
	}
}

func TestAModelReadsOnInAResultThatWasCut(t *testing.T) {
	m := begun(machineSpec())
	whole := strings.Repeat("The tide rises. ", 10_000)
	m.tools[policy.ReadMore] = Tool{Kind: "compute", Title: "Read on", ReadOnly: true}
	call := ask(m, "look", `{}`)[0]
	m.ToolEnded(call.id, ToolResult{Output: whole[:1600], Whole: whole, Bytes: len(whole)}, nil, time.Second)
	if text := m.CallInput().results[call.id].text(); !strings.Contains(text, `{"result_id": "r1", "from": 1600}`) {
		t.Fatalf("the model gets %q", text[1600:])
	}
	read := 1600
	for n := range 5 {
		more := ask(m, policy.ReadMore, fmt.Sprintf(`{"result_id":"r1","from":%d}`, read))[0]
		_, piece, _ := strings.Cut(m.CallInput().results[more.id].output, "\n")
		piece, _, _ = strings.Cut(piece, "\n</result>")
		if more.state != protocol.ToolSucceeded || piece == "" || !strings.HasPrefix(whole[read:], piece) {
			t.Fatalf("piece %d: %s, %.80q", n, more.state, piece)
		}
		read += len(piece)
	}
	if read != len(whole) {
		t.Errorf("%d of %d bytes were read", read, len(whole))
	}
	for _, input := range []string{`{"result_id":"r9","from":0}`, `{"result_id":"r1","from":-1}`, fmt.Sprintf(`{"result_id":"r1","from":%d}`, len(whole)), `7`} {
		if wrong := ask(m, policy.ReadMore, input)[0]; wrong.state != protocol.ToolFailed {
			t.Errorf("%s is %s", input, wrong.state)
		}
	}
}

func TestAModelReadsOnInACutResultThatItGetsFromTheLedger(t *testing.T) {
	m := begun(machineSpec())
	whole := foreign.Frame(foreign.WebPage, "", strings.Repeat("The tide rises. ", 200))
	m.tools[policy.ReadMore] = Tool{Kind: "compute", Title: "Read on", ReadOnly: true}
	for range answeredAfter {
		m.ToolEnded(ask(m, "look", `{}`)[0].id, ToolResult{Output: whole[:1600], Whole: whole, Bytes: len(whole)}, nil, time.Second)
	}
	call := ask(m, "look", `{}`)[0]
	text := m.CallInput().results[call.id].text()
	_, after, closed := strings.Cut(text, "\n</webpage>")
	read := fmt.Sprintf("a result of %d bytes. To read on, call read_more with {\"result_id\": \"r1\", \"from\": 1600}", len(whole))
	if !closed || !strings.Contains(after, read) || !strings.HasSuffix(after, repeatedNote) {
		t.Errorf("the model gets %q", text[1500:])
	}
	more := ask(m, policy.ReadMore, `{"result_id":"r1","from":1600}`)[0]
	if more.state != protocol.ToolSucceeded {
		t.Errorf("the rest is %s", more.state)
	}
}

func TestAResultWhoseRestIsNotKeptSaysSo(t *testing.T) {
	m := begun(machineSpec())
	whole := strings.Repeat("x", maxStored/2+1)
	for n := range 2 {
		call := ask(m, "look", fmt.Sprintf(`{"n":%d}`, n))[0]
		m.ToolEnded(call.id, ToolResult{Output: whole[:100], Whole: whole, Bytes: len(whole)}, nil, time.Second)
		text := m.CallInput().results[call.id].text()
		if kept := strings.Contains(text, "read_more"); kept != (n == 0) || strings.Contains(text, "The rest is left out") != (n == 1) {
			t.Errorf("result %d: %s", n, text[100:])
		}
	}
	for _, part := range m.Parts() {
		if !part.Truncated {
			t.Errorf("%s does not say that it is cut", part.PartID)
		}
	}
}

// The calls of one step run at the same time, so identical ones would give the same result, at the cost of each.
func TestIdenticalReadsOfAStepRunOnce(t *testing.T) {
	for _, failing := range []bool{false, true} {
		m := begun(machineSpec())
		same := `{"at":"sea"}`
		calls := ask(m, "look", same, `{"at":"land"}`, same, same, same, same, same, same)
		if got := runs(m); !slices.Equal(got, []protocol.ToolID{calls[0].id, calls[1].id}) {
			t.Fatalf("%d calls run, want 2", len(got))
		}
		m.ToolEnded(calls[1].id, ToolResult{Output: "trees"}, nil, time.Second)
		if failing {
			m.ToolEnded(calls[0].id, ToolResult{}, &protocol.ToolError{Code: "closed", Detail: "It is closed."}, time.Second)
		} else {
			m.ToolEnded(calls[0].id, ToolResult{Output: "waves"}, nil, time.Second)
		}
		input := m.CallInput()
		if input.WithoutTools || !m.calling {
			t.Fatalf("the model is not called with tools")
		}
		for i, call := range calls {
			text := input.results[call.id].text()
			if again := strings.Contains(text, "was not made again"); i != 1 && (again != (i > 0) || strings.HasPrefix(text, "closed") != failing || strings.HasPrefix(text, "waves") == failing) {
				t.Errorf("call %d gave %q", i, text)
			}
		}
		if call := ask(m, "look", same)[0]; call.state != protocol.ToolRunning {
			t.Errorf("the second call in a row is %s", call.state)
		}
	}
}

// runs returns the calls that the decisions since the last take start.
func runs(m *driver) (ids []protocol.ToolID) {
	for _, effect := range m.take().Effects {
		if run, is := effect.(RunTool); is {
			ids = append(ids, run.ID)
		}
	}
	return ids
}

func TestIdenticalReadsOfAStepSurviveATakeover(t *testing.T) {
	m := begun(machineSpec())
	calls := ask(m, "look", `{}`, `{}`)
	decided := m.take()
	frames, err := protocol.AppendEvents(nil, m.spec.TurnID, 1, time.Now(), decided.Events)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(&turnlog.Stored{Spec: m.spec, Frames: frames, Records: decided.Records}, machineTools, true)
	if err != nil {
		t.Fatal(err)
	}
	d := drive(restored)
	d.Adopt(protocol.CauseDrain)
	if got := runs(d); !slices.Equal(got, []protocol.ToolID{calls[0].id}) {
		t.Fatalf("%d calls run, want the first", len(got))
	}
	d.ToolEnded(calls[0].id, ToolResult{Output: "waves"}, nil, time.Second)
	if d.toolCalls[1].state != protocol.ToolSucceeded || !d.calling {
		t.Errorf("the second call is %s", d.toolCalls[1].state)
	}
}

// One approval decides on identical calls of a step, unless the user changes the input: the others then ask.
func TestIdenticalReadsOfAStepAskOnce(t *testing.T) {
	asks := machineTools["send"]
	asks.ReadOnly = true
	for _, decision := range []protocol.Decision{protocol.ApproveOnce, protocol.ApproveWithEdits, protocol.RejectCall} {
		m := newDriver(machineSpec(), map[string]Tool{"send": asks}, true)
		m.Begin()
		m.Proceed()
		m.Now = time.Now()
		calls := ask(m, "send", `{"n":1}`, `{"n":1}`)
		if len(m.approvals) != 1 {
			t.Fatalf("%d approvals are requested", len(m.approvals))
		}
		m.take()
		a := m.approvals[0]
		if _, err := m.Command(&Command{Kind: CommandDecide, SteeringID: protocol.NewSteeringID(), ApprovalID: a.ApprovalID, Digest: a.InputDigest, Decision: decision, EditedInput: json.RawMessage(`{"n":2}`), Hash: "h"}); err != nil {
			t.Fatal(err)
		}
		want := map[protocol.Decision]protocol.ToolState{
			protocol.ApproveOnce: protocol.ToolPending, protocol.ApproveWithEdits: protocol.ToolAwaitingApproval, protocol.RejectCall: protocol.ToolFailed,
		}[decision]
		if calls[1].state != want {
			t.Errorf("after %s, the second call is %s, want %s", decision, calls[1].state, want)
		}
	}
}

// The account may have revoked its consent since the result was cut, so the call runs, which checks that.
func TestReadingOnInAResultThatNeedsAConsentRuns(t *testing.T) {
	tools := map[string]Tool{
		"look":          {Kind: "account_search", Title: "Look", ReadOnly: true, Consent: protocol.SourceConversations},
		policy.ReadMore: {Kind: "compute", Title: "Read on", ReadOnly: true},
	}
	m := newDriver(machineSpec(), tools, true)
	m.Begin()
	m.Proceed()
	whole := strings.Repeat("The tide rises. ", 200)
	m.ToolEnded(ask(m, "look", `{}`)[0].id, ToolResult{Output: whole[:1600], Whole: whole, Bytes: len(whole)}, nil, time.Second)
	call := ask(m, policy.ReadMore, `{"result_id":"r1","from":1600}`)[0]
	check := func(m *driver, decided Decision) {
		t.Helper()
		for _, effect := range decided.Effects {
			if run, is := effect.(RunTool); is && run.Name == policy.ReadMore && run.Consent == protocol.SourceConversations && strings.Contains(run.Output, whole[1600:]) {
				return
			}
		}
		t.Errorf("no call reads on: %+v", decided.Effects)
	}
	decided := m.take()
	if check(m, decided); call.state != protocol.ToolRunning {
		t.Errorf("the call is %s", call.state)
	}
	frames, err := protocol.AppendEvents(nil, m.spec.TurnID, 1, time.Now(), decided.Events)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(&turnlog.Stored{Spec: m.spec, Frames: frames, Records: decided.Records}, tools, true)
	if err != nil {
		t.Fatal(err)
	}
	m.ToolEnded(call.id, ToolResult{}, &protocol.ToolError{Code: protocol.ToolCallDenied, Detail: "The user does not allow it any more."}, time.Second)
	if ended := call.completed; call.state != protocol.ToolRejected || ended == nil || ended.Outcome != protocol.ResultDenied {
		t.Errorf("without consent, the call is %s: %+v", call.state, ended)
	}
	d := drive(restored)
	d.Adopt(protocol.CauseDrain)
	check(d, d.take())
}
