package machine

import (
	"testing"
	"time"

	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestAnApprovalThatNobodyDecidesExpiresAndTheTurnGoesOn(t *testing.T) {
	m := begun(machineSpec())
	m.Now = time.Now()
	call := ask(m, "send", `{"n":1}`)[0]
	until, parks := m.Parks()
	if !parks || !until.Equal(protocol.Millis(m.Now.Add(defaultApprovalLifetime))) || m.state != protocol.TurnRequiresAction {
		t.Fatalf("the turn is %s and parks until %s: %v", m.state, until, parks)
	}
	m.take()
	m.Now = until.Add(-time.Millisecond)
	if m.Wake(); len(m.take().Events) != 0 {
		t.Error("the approval has expired early")
	}
	m.Now = until
	m.Wake()
	if call.state != protocol.ToolRejected || m.state != protocol.TurnRunning || *m.approvals[0].Decision != protocol.DecisionExpired || !m.calling {
		t.Errorf("the call is %s, the turn is %s", call.state, m.state)
	}
	receipt, err := m.Command(&Command{Kind: CommandDecide, ApprovalID: m.approvals[0].ApprovalID, Digest: m.approvals[0].InputDigest, Decision: protocol.ApproveOnce, Hash: "h"})
	if protocol.CodeOf(err) != protocol.CodeApprovalDecided {
		t.Errorf("a decision after that got %+v, %v", receipt, err)
	}
}

// The node that processes the decision may have other tools than the one that asked.
func TestAnApprovedCallDoesNotRunIfItsToolIsGoneOrHasChanged(t *testing.T) {
	changed := machineTools["send"]
	changed.Plan = func(call *policy.Call) policy.Plan {
		plan := planSend(call)
		plan.Definition = "another"
		return plan
	}
	for name, tools := range map[string]map[string]Tool{
		"the same": machineTools, "gone": {"look": machineTools["look"]}, "changed": {"send": changed},
	} {
		m := begun(machineSpec())
		m.Now = time.Now()
		asked := m.take()
		ask(m, "send", `{"n":1}`)
		decided := m.take()
		frames, err := protocol.AppendEvents(nil, m.spec.TurnID, 1, m.Now, append(asked.Events, decided.Events...))
		if err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(&turnlog.Stored{Spec: m.spec, Frames: frames, Records: append(asked.Records, decided.Records...)}, tools, true)
		if err != nil {
			t.Fatal(err)
		}
		d := drive(restored)
		d.Now = m.Now
		a := d.approvals[0]
		if _, err := d.Command(&Command{Kind: CommandDecide, SteeringID: protocol.NewSteeringID(), ApprovalID: a.ApprovalID, Digest: a.InputDigest, Decision: protocol.ApproveOnce, Hash: "h"}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ran := false
		for _, effect := range d.take().Effects {
			if _, is := effect.(RunTool); is {
				ran = true
			}
		}
		if ran != (name == "the same") {
			t.Errorf("%s: the call runs: %v", name, ran)
		}
		if state := d.toolCalls[0].state; !ran && state != protocol.ToolFailed {
			t.Errorf("%s: the call is %s", name, state)
		}
	}
}

// A read can send its input out of the service, for example to a search engine. The user approves that once.
func TestAnApprovedReadIsNotRunAgainAfterATakeoverUnlessItIsRepeatable(t *testing.T) {
	for name, want := range map[string]protocol.ToolState{"search": protocol.ToolOutcomeUnknown, "note": protocol.ToolRunning} {
		tools := map[string]Tool{
			"search": {Kind: "web_search", Title: "Search", ReadOnly: true, Plan: planSend},
			"note":   {Kind: "artifact", Title: "Note", Repeatable: true, Plan: planSend},
		}
		m := newDriver(machineSpec(), tools, true)
		m.Begin()
		m.Proceed()
		ask(m, name, `{"n":1}`)
		a := m.approvals[0]
		accept(t, m, &Command{Kind: CommandDecide, SteeringID: protocol.NewSteeringID(), ApprovalID: a.ApprovalID, Digest: a.InputDigest, Decision: protocol.ApproveOnce, Hash: "h"})
		d := m.take()
		frames, err := protocol.AppendEvents(nil, m.spec.TurnID, 1, m.spec.CreatedAt, d.Events)
		if err != nil {
			t.Fatal(err)
		}
		adopted, err := Restore(&turnlog.Stored{Spec: m.spec, Frames: frames, Records: d.Records}, tools, false)
		if err != nil {
			t.Fatal(err)
		}
		drive(adopted).Adopt("restart")
		if got := adopted.toolCalls; len(got) > 0 && got[0].state != want || adopted.results[a.ToolID].failed != (want != protocol.ToolRunning) {
			t.Errorf("an approved call of %s is %s, %+v", name, got[0].state, adopted.results[a.ToolID])
		}
	}
}
