package machine

import (
	"strings"
	"testing"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestAnEventOfALaterVersionMakesALogUnreadable(t *testing.T) {
	m := runningMachine(t)
	frames, err := protocol.AppendEvents(nil, m.spec.TurnID, 1, m.spec.CreatedAt, m.take().Events)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(frames), `"type":"answer.started"`, `"type":"answer.unknown"`, 1)
	stored := &turnlog.Stored{Spec: m.spec, Frames: []byte(text), Head: turnlog.Head{State: protocol.TurnRunning, Accepts: true}}
	if _, err := Restore(stored, machineTools, false); err == nil {
		t.Error("a log with an event of an unknown type was restored")
	}
	repaired := drive(Repair(stored, machineTools))
	if repaired.GiveUp(false); repaired.sequence != m.sequence+2 || repaired.state != protocol.TurnFailed {
		t.Errorf("the turn ended as %s at %d, with a log of %d events", repaired.state, repaired.sequence, m.sequence)
	}
}

// Every live state can occur in a turn that has to be given up, including one with an accepted cancel.
func TestATurnCanBeGivenUpInEveryState(t *testing.T) {
	for _, state := range protocol.TurnStates {
		if state.Terminal() {
			continue
		}
		stored := &turnlog.Stored{Spec: machineSpec(), Head: turnlog.Head{State: state, Accepts: state.AcceptsSteering()}}
		want := protocol.TurnFailed
		if state == protocol.TurnCancelling {
			want = protocol.TurnCancelled
		}
		givenUp := drive(Repair(stored, machineTools))
		if givenUp.GiveUp(false); givenUp.state != want || givenUp.take().End == nil {
			t.Errorf("a turn in %s was given up as %s, want %s", state, givenUp.state, want)
		}
		forced := drive(Repair(stored, machineTools))
		if forced.ForceCancel(protocol.NewSteeringID()); forced.state != protocol.TurnCancelled || forced.take().End == nil {
			t.Errorf("a turn in %s was cancelled by force and is %s", state, forced.state)
		}
	}
}
