package machine

import (
	"testing"

	"turnstone/actors/llm"
	"turnstone/protocol"
)

func TestAContinuedAnswerIsFinishedBeforePendingInputsAreApplied(t *testing.T) {
	m := newDriver(machineSpec(), machineTools, true)
	m.Begin()
	m.Proceed()
	m.ModelText(1, "one two ")
	_, err := m.Command(&Command{Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c", Text: "shorter", Hash: "h", Delivery: protocol.DeliverNextStep})
	if err != nil {
		t.Fatal(err)
	}
	m.ModelFailed(1, &llm.Error{Code: "model_unavailable", Cut: true})
	if m.inputs[0].step != 0 || string(m.text) != "one two " {
		t.Errorf("applied in step %d, prefix %q", m.inputs[0].step, m.text)
	}
	m.ModelText(2, "three")
	m.ModelStopped(2, llm.StopEndTurn)
	m.ModelText(3, "short")
	if m.inputs[0].step != 2 || m.fold.Parts()[0].Text != "one two three" {
		t.Errorf("applied in step %d after %+v", m.inputs[0].step, m.fold.Parts())
	}
}
