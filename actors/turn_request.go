package actors

import (
	"context"
	"fmt"
	"slices"

	"turnstone/actors/llm"
	"turnstone/actors/routing"
	"turnstone/actors/turn"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// A model gets the newest messages of the branch, within two limits.
const (
	// bytesPerToken is a conservative estimate, used to choose the messages before anything is sent: real tokenizers
	// have 3 to 4.5 bytes per token of English, and fewer for other scripts. It converts the context of a route from
	// tokens to bytes.
	bytesPerToken = 3
	// maxContextMessages is the maximum number of messages. It limits the delay of the first token: each message takes
	// about 10 µs to be read, decoded, encoded and sent. A conversation of ordinary length has far fewer messages, so
	// the model gets everything that fits into its context.
	maxContextMessages = 1000
)

// buildRequest builds the request of one model step: the newest earlier messages, then the messages of this turn so
// far, whose size reduces the space for the earlier ones. trimmed reports that older messages were left out.
func buildRequest(ctx context.Context, store TurnStore, p turn.Prompt, route routing.Route, tools []llm.Tool) (request llm.Request, trimmed bool, err error) {
	instructions, err := readInstructions(ctx, store, p.Spec)
	if err != nil {
		return request, false, err
	}
	size := len(instructions)
	for _, message := range p.OwnMessages() {
		size += len(message.Text)
	}
	history, trimmed, err := readHistory(ctx, store, p.Spec, max(0, (route.ContextTokens-route.MaxOutputTokens)*bytesPerToken-size))
	if err != nil {
		return request, false, err
	}
	messages, input := p.Messages(history, trimmed)
	return llm.Request{
		Model: route.Model, System: turn.SystemPrompt(trimmed, instructions), Messages: messages, TurnInput: input, Tools: allowedTools(tools, p.Spec),
		ReasoningEffort: route.ReasoningEffort, MaxOutputTokens: route.MaxOutputTokens, FirstByte: route.FirstByte, Step: p.Step,
	}, trimmed, nil
}

// readInstructions reads the instructions that the project of the conversation had when the turn started; empty if there
// are none.
func readInstructions(ctx context.Context, store TurnStore, s *turnlog.Spec) (string, error) {
	if s.ProjectID == nil || s.InstructionsVersion == 0 {
		return "", nil
	}
	instructions, err := store.Instructions(ctx, s.AccountID, *s.ProjectID, s.InstructionsVersion)
	if err != nil {
		return "", fmt.Errorf("reading the instructions: %w", err)
	}
	return instructions, nil
}

// allowedTools returns the tools that the project of the conversation had not disabled when the turn started.
func allowedTools(tools []llm.Tool, s *turnlog.Spec) []llm.Tool {
	if len(s.DisabledTools) == 0 {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t llm.Tool) bool { return slices.Contains(s.DisabledTools, t.Name) })
}

// readHistory reads the earlier messages and the user's message of this turn. In the first turn of a conversation that
// is only the turn's own input, which needs no read from the store.
func readHistory(ctx context.Context, store TurnStore, s *turnlog.Spec, maxBytes int) ([]turnlog.HistoryMessage, bool, error) {
	if s.ParentMessageID == nil {
		return []turnlog.HistoryMessage{{
			Role: protocol.RoleUser, Status: protocol.MessageComplete, Parts: []protocol.Part{{Type: protocol.PartText, Text: s.Input}},
		}}, false, nil
	}
	history, trimmed, err := store.History(ctx, s.AccountID, s.ConversationID, s.BranchID, s.UserMessageID, maxContextMessages, maxBytes)
	if err != nil {
		return nil, false, fmt.Errorf("reading the conversation: %w", err)
	}
	return history, trimmed, nil
}
