package actors

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"turnstone/protocol"
)

// What a model is given of a conversation: the newest messages of the branch, within two limits.
const (
	// bytesPerToken is a cautious guess for choosing the messages before anything is sent: real tokenizers yield 3 to 4.5
	// bytes of English a token, and fewer of other scripts. It turns the tokens of a route's context into bytes.
	bytesPerToken = 3
	// maxContextMessages is the number of messages. It bounds the delay of the first token, since each message costs about
	// 10 µs until it is with the model: it is read, decoded, encoded and sent. It is far above what a conversation of
	// ordinary length has, so that the model forgets nothing that its context has room for.
	maxContextMessages = 1000
)

// callContext is a model step as the machine knows it, copied out so that the call's goroutine can build the request.
type callContext struct {
	step    int
	spec    *protocol.TurnSpec
	steps   []stepResult
	results map[protocol.ToolID]toolResult
	inputs  map[int][]string // by the step whose request contains them
	prefix  string           // of a cut answer that is continued
}

type toolResult struct {
	output string
	failed bool
}

// toolResultOf is what a tool answered, as the model should read it.
func toolResultOf(p *protocol.ToolCompleted) toolResult {
	if p.Error != nil {
		return toolResult{output: p.Error.Code + ": " + p.Error.Detail, failed: true}
	}
	return toolResult{output: p.Output}
}

// context copies what the next call needs.
func (m *turnMachine) context() callContext {
	c := callContext{
		step: m.step(), spec: m.spec, steps: m.steps, results: maps.Clone(m.results), inputs: map[int][]string{},
		prefix: string(m.text),
	}
	for _, input := range m.inputs {
		switch {
		case input.step > 0:
			c.inputs[input.step] = append(c.inputs[input.step], input.text)
		case input.pending() && input.asked == m.call:
			c.inputs[c.step] = append(c.inputs[c.step], input.text)
		}
	}
	return c
}

// buildRequest makes the request of one model step: the newest earlier messages, then what this turn did so far, which
// takes its room from theirs. trimmed reports that older messages were left out.
func buildRequest(ctx context.Context, store TurnStore, c callContext, route Route, tools []ModelTool) (request ModelRequest, trimmed bool, err error) {
	own := c.ownMessages()
	room := (route.ContextTokens-route.MaxOutputTokens)*bytesPerToken - messageBytes(own)
	history, trimmed, err := readHistory(ctx, store, c.spec, max(0, room))
	if err != nil {
		return request, false, err
	}
	request = ModelRequest{
		Model: route.Model, System: systemPrompt(trimmed), Tools: tools, ReasoningEffort: route.ReasoningEffort,
		MaxOutputTokens: route.MaxOutputTokens, FirstByte: route.FirstByte, Step: c.step,
	}
	for _, message := range history {
		if trimmed && len(request.Messages) == 0 && message.Role != protocol.RoleUser {
			continue // an answer whose question was left out
		}
		if text := messageText(message); text != "" {
			request.Messages = append(request.Messages, ModelMessage{Role: message.Role, Text: text})
		}
	}
	request.TurnInput = len(request.Messages) // the history ends with what the user said
	request.Messages = append(request.Messages, own...)
	return request, trimmed, nil
}

// ownMessages are those of the turn itself after the user's: its steps, the inputs of this step, and the answer that is to
// be continued.
func (c *callContext) ownMessages() (messages []ModelMessage) {
	for _, step := range c.steps {
		messages = append(messages, c.stepMessages(step)...)
	}
	for _, text := range c.inputs[c.step] {
		messages = append(messages, ModelMessage{Role: protocol.RoleUser, Text: text})
	}
	if c.prefix != "" {
		messages = append(messages, ModelMessage{Role: protocol.RoleAssistant, Text: c.prefix})
	}
	return messages
}

// readHistory reads what was said before and what is answered. At the beginning of a conversation that is the turn's own
// input, which costs no look at the store.
func readHistory(ctx context.Context, store TurnStore, s *protocol.TurnSpec, maxBytes int) ([]protocol.HistoryMessage, bool, error) {
	if s.ParentMessageID == nil {
		return []protocol.HistoryMessage{{
			Role: protocol.RoleUser, Status: protocol.MessageComplete, Parts: []protocol.Part{{Type: protocol.PartText, Text: s.Input}},
		}}, false, nil
	}
	history, trimmed, err := store.History(ctx, s.AccountID, s.ConversationID, s.BranchID, s.UserMessageID, maxContextMessages, maxBytes)
	if err != nil {
		return nil, false, fmt.Errorf("reading the conversation: %w", err)
	}
	return history, trimmed, nil
}

// stepMessages is a finished step as the model sees it: the inputs it was given, what it said, what its tools answered.
func (c *callContext) stepMessages(step stepResult) []ModelMessage {
	var messages []ModelMessage
	for _, text := range c.inputs[step.Step] {
		messages = append(messages, ModelMessage{Role: protocol.RoleUser, Text: text})
	}
	messages = append(messages, ModelMessage{
		Role: protocol.RoleAssistant, Text: step.Text, ToolCalls: step.Calls, Opaque: step.Opaque, OpaqueOwner: step.Owner,
	})
	for i, call := range step.Calls {
		result := c.results[step.Tools[i]]
		messages = append(messages, ModelMessage{Role: "tool", ToolCallID: call.ID, Text: result.output, ToolFailed: result.failed})
	}
	return messages
}

// messageText is a stored message as the model should read it again. Reasoning and tool traffic of earlier turns are
// left out; what was steered stands where it was said.
func messageText(message protocol.HistoryMessage) string {
	var text []byte
	for _, part := range message.Parts {
		switch {
		case part.Type == protocol.PartNotice && part.Kind == "steering":
			text = append(text, "\n[The user added: "+part.Text+"]\n"...)
		default:
			text = appendPartText(text, part)
		}
	}
	if message.Role == protocol.RoleAssistant && message.Status == protocol.MessageCancelled && len(text) > 0 {
		text = append(text, "\n[The user stopped this answer here.]"...)
	}
	return strings.TrimSpace(string(text))
}

func systemPrompt(trimmed bool) string {
	const base = "You are a helpful, honest assistant. Answer in the language of the user. Use Markdown; put code into fenced blocks with their language."
	if trimmed {
		return base + " The beginning of this conversation was left out because it is too long; say so when the user refers to it."
	}
	return base
}
