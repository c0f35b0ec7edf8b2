package turn

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
)

// stalling returns a model that sends one word and then nothing until it is stopped.
func stalling() *llmtest.Script {
	return &llmtest.Script{Play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "partial "}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}}
}

func TestCommandsGetTheirFirstReceiptAfterTheTurnHasEndedAndItsActorIsGone(t *testing.T) {
	store := actorstest.NewMemory()
	n := startNode(t, store, stalling(), nil)
	spec := startTurn(t, n, "hi")
	read(t, n, spec, 0, isDelta)
	all := newCancel()
	all.Scope = protocol.CancelTurnAndFollowUps
	input, withdrawn := newInput("c1", "use JWT"), newInput("c3", "use cookies")
	commands := []*machine.Command{
		withdrawn, {Kind: machine.CommandWithdraw, SteeringID: withdrawn.SteeringID}, // before the next step, which applies what is pending
		input, {Kind: machine.CommandApply, SteeringID: input.SteeringID}, newCancel(), all,
	}
	var receipts []protocol.SteeringReceipt
	for _, c := range commands {
		receipt, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, c)
		if err != nil && c != all { // the turn may have ended between the two cancels
			t.Fatal(err)
		}
		receipts = append(receipts, receipt)
	}
	read(t, n, spec, 0, nil)
	other := makeNode(t, store, stalling(), nil) // never ran the turn
	for i, c := range commands[:5] {
		again, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, c)
		want := receipts[i]
		want.Replayed = true
		if err != nil || again != want {
			t.Errorf("command %d: %+v, %v, want %+v", i, again, err, want)
		}
	}
	input.Hash = "other"
	if _, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, input); protocol.CodeOf(err) != protocol.CodeInvalid {
		t.Errorf("the same client_steering_id for another input got %v", err)
	}
	if _, err := other.Command(t.Context(), spec.AccountID, spec.TurnID, newInput("c2", "late")); protocol.CodeOf(err) != protocol.CodeSteeringClosed {
		t.Errorf("a new input got %v", err)
	}
}

func TestAnOperatorsCancelHoldsTheQueueAndADeletionDropsIt(t *testing.T) {
	for _, c := range []struct {
		by   protocol.CancelledBy
		want protocol.CancelScope
	}{
		{protocol.CancelledByOperator, protocol.CancelTurn},
		{protocol.CancelledByDeletion, protocol.CancelTurn}, // of the project, which may be restored
		{protocol.CancelledByDeletion, protocol.CancelTurnAndFollowUps},
	} {
		by, want := c.by, c.want
		store := actorstest.NewMemory()
		n := startNode(t, store, stalling(), nil)
		spec := startTurn(t, n, "hi")
		read(t, n, spec, 0, isDelta)
		if err := n.CancelTurn(t.Context(), spec.AccountID, spec.TurnID, by, want); err != nil {
			t.Fatal(err)
		}
		log := string(read(t, n, spec, 0, nil))
		finish := store.Turns[spec.TurnID].Finishes[0]
		if !strings.Contains(log, fmt.Sprintf(`"by":%q,"scope":%q`, by, want)) || !finish.PauseQueue || finish.DropQueue != (want == protocol.CancelTurnAndFollowUps) {
			t.Errorf("%s: DropQueue is %v, PauseQueue is %v, the log is %s", by, finish.DropQueue, finish.PauseQueue, log)
		}
	}
}

// newInput returns a new steering input.
func newInput(client, text string) *machine.Command {
	return &machine.Command{
		Kind: machine.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: client, Text: text, Hash: text, Delivery: protocol.DeliverNextStep,
	}
}

// newCancel returns a new cancel of the turn.
func newCancel() *machine.Command {
	return &machine.Command{Kind: machine.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser}
}
