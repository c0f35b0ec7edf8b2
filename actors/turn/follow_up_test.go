package turn

import (
	"context"
	"strings"
	"testing"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestANewFollowUpStartsItsTurnOnThisNode(t *testing.T) {
	n := startNode(t, actorstest.NewMemory(), llmtest.Answer("fine"), nil)
	f := &turnlog.NewFollowUp{Queue: turnlog.Queue{AccountID: protocol.NewAccountID()}, Content: "next"}
	item, err := n.CreateFollowUp(t.Context(), f)
	if err != nil || item.TurnID == nil {
		t.Fatalf("%+v, %v", item, err)
	}
	if got := kinds(read(t, n, &turnlog.Spec{AccountID: f.AccountID, TurnID: *item.TurnID}, 0, nil)); !strings.HasSuffix(got, "turn.finished") {
		t.Errorf("events: %s", got)
	}
	if err := n.Drain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if item, err := n.CreateFollowUp(t.Context(), &turnlog.NewFollowUp{}); err != nil || item.TurnID != nil {
		t.Errorf("a follow-up on a drained node: %+v, %v; want no turn", item, err)
	}
}

func TestAFollowUpThatInterruptsCancelsTheLiveTurn(t *testing.T) {
	store := actorstest.NewMemory()
	model := &llmtest.Script{Play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "on and on"}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	n := startNode(t, store, model, nil)
	live := startTurn(t, n, "speak")
	store.Interrupted = &live.TurnID
	promotion := &turnlog.FollowUpPromotion{Queue: turnlog.Queue{AccountID: live.AccountID}, FollowUpID: protocol.NewFollowUpID(), Interrupt: true}
	for range 2 { // the repeat finds the cancel
		if item, err := n.PromoteFollowUp(t.Context(), promotion); err != nil || item.FollowUpID != promotion.FollowUpID {
			t.Fatalf("%+v, %v", item, err)
		}
	}
	frames := read(t, n, live, 0, nil)
	if got := kinds(frames); strings.Count(got, "turn.cancel_requested") != 1 || !strings.Contains(string(frames), `"status":"cancelled"`) {
		t.Errorf("events: %s", got)
	}
	if _, err := n.PromoteFollowUp(t.Context(), promotion); err != nil {
		t.Errorf("after the end of the turn: %v", err)
	}
}
