package machine

import (
	"testing"
	"time"

	"turnstone/protocol"
)

// checkedTools are tools of which send is checked before its approval is requested.
func checkedTools() map[string]Tool {
	tools := map[string]Tool{"send": machineTools["send"], "look": machineTools["look"]}
	send := tools["send"]
	send.Checks = true
	tools["send"] = send
	return tools
}

func checks(d Decision) (found []CheckTool) {
	for _, effect := range d.Effects {
		if check, is := effect.(CheckTool); is {
			found = append(found, check)
		}
	}
	return found
}

func TestACallThatCannotSucceedFailsBeforeTheUserIsAsked(t *testing.T) {
	for _, refused := range []bool{true, false} {
		m := newDriver(machineSpec(), checkedTools(), true)
		m.Begin()
		m.Proceed()
		m.Now = time.Now()
		call := ask(m, "send", `{"n":1}`)[0]
		asked := checks(m.take())
		if len(asked) != 1 || asked[0].ID != call.id || len(m.approvals) != 0 || call.state != protocol.ToolPending {
			t.Fatalf("%d checks, %d approvals, the call is %s", len(asked), len(m.approvals), call.state)
		}
		var failure *protocol.ToolError
		if refused {
			failure = &protocol.ToolError{Code: protocol.ToolCallInvalid, Detail: "Too many tasks."}
		}
		m.ToolChecked(call.id, failure)
		m.ToolChecked(call.id, failure) // a repeat has no effect
		switch {
		case refused && (call.state != protocol.ToolFailed || *call.completed.Error != *failure || len(m.approvals) != 0 || !m.calling):
			t.Errorf("the refused call is %s with %d approvals", call.state, len(m.approvals))
		case !refused && (call.state != protocol.ToolAwaitingApproval || len(m.approvals) != 1 || m.state != protocol.TurnRequiresAction):
			t.Errorf("the call is %s with %d approvals, the turn is %s", call.state, len(m.approvals), m.state)
		}
	}
}

// A decision on another call must not end the turn's wait for the check, or start the check again.
func TestATurnDoesNotParkWhileACallIsChecked(t *testing.T) {
	tools := checkedTools()
	tools["publish"] = machineTools["send"]
	m := newDriver(machineSpec(), tools, true)
	m.Begin()
	m.Proceed()
	m.Now = time.Now()
	other := ask(m, "publish", `{"n":1}`)[0]
	m.take()
	if _, parks := m.Parks(); !parks || other.state != protocol.ToolAwaitingApproval {
		t.Fatalf("the other call is %s", other.state)
	}
	checked := &toolCall{id: protocol.DeriveToolID(m.spec.TurnID, 99), name: "send", input: other.input, state: protocol.ToolPending, number: 2}
	m.toolCalls = append(m.toolCalls, checked)
	m.startPending()
	if _, parks := m.Parks(); parks || len(checks(m.take())) != 1 {
		t.Error("the turn parks while a call is checked")
	}
	m.startPending()
	if again := checks(m.take()); len(again) != 0 {
		t.Error("the call is checked twice at the same time")
	}
}

func TestACancelDoesNotWaitForACheck(t *testing.T) {
	m := newDriver(machineSpec(), checkedTools(), true)
	m.Begin()
	m.Proceed()
	call := ask(m, "send", `{"n":1}`)[0]
	if _, err := m.Command(&Command{Kind: CommandCancel, SteeringID: protocol.NewSteeringID()}); err != nil {
		t.Fatal(err)
	}
	m.ToolChecked(call.id, nil)
	if m.state != protocol.TurnCancelled || call.state != protocol.ToolCancelled || len(m.approvals) != 0 {
		t.Errorf("the turn is %s, the call %s", m.state, call.state)
	}
}
