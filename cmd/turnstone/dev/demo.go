package dev

import (
	"context"
	"fmt"
	"time"

	"turnstone/actors/turn/machine"
	"turnstone/persistence/conversations"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// DemoTitle is the title of the demonstration conversation.
const DemoTitle = "A tour of Turnstone"

// DemoPrompts are the messages of the demonstration conversation. The answer to the first one is steered while it
// streams. The others queue behind it, so the conversation also shows that a queue runs without a client.
var DemoPrompts = []string{
	"Explain why there are two tides a day.",
	"What is (17 + 4) * 2?",
	"Write a small function in Go that greets somebody.",
	"What is Turnstone, and what can I try here?",
}

const demoSteering = "And say it once more for a child of ten, please."

// demonstrate adds a conversation to the demonstration account that shows the features of the service. The turns are
// real: the model answers them. demonstrate does not wait for their end.
func demonstrate(ctx context.Context, s Service, account protocol.AccountID) error {
	conversation, err := s.Stores().Conversations.CreateConversation(ctx, account, &conversations.NewConversation{
		ConversationID: protocol.NewConversationID(), Title: DemoTitle,
	})
	if err != nil {
		return err
	}
	for i, prompt := range DemoPrompts {
		started, err := s.Turns().StartTurn(ctx, &turnlog.Start{
			AccountID: account, ConversationID: &conversation.ConversationID, Input: prompt, IfBusy: "queue", At: time.Now(),
		})
		if err != nil {
			return fmt.Errorf("starting a turn of the demonstration: %w", err)
		}
		if i > 0 || started.Spec == nil {
			continue
		}
		_, err = s.Turns().Command(ctx, account, started.Spec.TurnID, &machine.Command{
			Kind: machine.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "demonstration", Text: demoSteering,
			Delivery: protocol.DeliverNextStep,
		})
		if err != nil && protocol.CodeOf(err) != protocol.CodeSteeringClosed { // the turn may already have ended
			return fmt.Errorf("steering the demonstration: %w", err)
		}
	}
	return nil
}
