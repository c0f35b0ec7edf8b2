package main

import (
	"context"
	"fmt"
	"time"

	"turnstone/actors"
	"turnstone/persistence"
	"turnstone/protocol"
)

const demoTitle = "A tour of Turnstone"

// demoPrompts are said in a first look's conversation. The first is steered while it is answered; the others queue behind
// it, so the conversation also shows that a queue needs nobody who looks.
var demoPrompts = []string{
	"Explain why there are two tides a day.",
	"What is (17 + 4) * 2?",
	"Write a small function in Go that greets somebody.",
	"What is Turnstone, and what can I try here?",
}

const demoSteering = "And say it once more for a child of ten, please."

// demonstrate fills the account of a first look with a conversation that shows what there is to see. What is asked is
// real: the model answers, and nothing waits for it.
func (s *service) demonstrate(ctx context.Context, account protocol.AccountID) error {
	conversation, err := s.db.CreateConversation(ctx, account, &persistence.NewConversation{
		ConversationID: protocol.NewConversationID(), Title: demoTitle,
	})
	if err != nil {
		return err
	}
	for i, prompt := range demoPrompts {
		started, err := s.node.StartTurn(ctx, &protocol.TurnStart{
			AccountID: account, ConversationID: &conversation.ConversationID, Input: prompt, IfBusy: "queue", At: time.Now(),
		})
		if err != nil {
			return fmt.Errorf("asking for a demonstration: %w", err)
		}
		if i > 0 || started.Spec == nil {
			continue
		}
		_, err = s.node.Command(ctx, account, started.Spec.TurnID, &actors.Command{
			Kind: actors.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "demonstration", Text: demoSteering,
			Delivery: protocol.DeliverNextStep,
		})
		if err != nil && protocol.CodeOf(err) != protocol.CodeSteeringClosed { // it may have been answered already
			return fmt.Errorf("steering a demonstration: %w", err)
		}
	}
	return nil
}
