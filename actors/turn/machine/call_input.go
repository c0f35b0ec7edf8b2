package machine

import (
	"maps"
	"strings"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// CallInput is a copy of the machine's data for one model call, from which the call's goroutine builds the request.
type CallInput struct {
	Spec    *turnlog.Spec
	Step    int
	steps   []stepResult
	results map[protocol.ToolID]toolResult
	inputs  map[int][]string // by the step whose request contains them
	prefix  string           // of a cut-off answer that is continued
	Found   bool             // results of tools have files

	WithoutTools bool          // the model may call no tool any more
	HideTools    bool          // and has ignored that, so it must not see any
	Waited       time.Duration // for approvals
	Cut          bool          // results were cut, so that the model can read on in them

	Route     int  // the number of the route that answers, from 1; 0: the first
	Answering bool // the model has produced output, so the route must not change
}

// CallInput copies what the next call needs.
func (m *Machine) CallInput() CallInput {
	c := CallInput{
		Spec: m.spec, Step: m.step(), steps: m.steps, results: maps.Clone(m.results), inputs: map[int][]string{},
		WithoutTools: m.over != "", HideTools: m.over != "" && m.retried, Waited: m.waited, Cut: len(m.cutResults) > 0, prefix: string(m.text), Found: len(m.found) > 0,
		Route: m.routing.Route, Answering: m.output > 0 || len(m.steps) > 0,
	}
	for _, input := range m.inputs {
		switch {
		case input.step > 0:
			c.inputs[input.step] = append(c.inputs[input.step], input.text)
		case input.pending() && input.requestedIn == m.call:
			c.inputs[c.Step] = append(c.inputs[c.Step], input.text)
		}
	}
	return c
}

// Messages returns the messages of the request: the earlier messages of the branch, which end with the user's message
// of this turn, then those of OwnMessages. turnInput is 1 + the index of the user's message. trimmed means that older
// messages were left out of the history.
func (c *CallInput) Messages(history []turnlog.HistoryMessage, trimmed bool) (messages []llm.Message, turnInput int) {
	own := c.OwnMessages()
	messages = make([]llm.Message, 0, len(history)+len(own))
	for i := range history {
		message := &history[i]
		if trimmed && len(messages) == 0 && message.Role != protocol.RoleUser {
			continue // an answer whose question was left out
		}
		if text := messageText(message); text != "" {
			messages = append(messages, llm.Message{Role: message.Role, Text: text, Pictures: message.Pictures})
		}
	}
	return append(messages, own...), len(messages)
}

// OwnMessages returns the messages of the turn itself after the user's message: its finished steps, the inputs of the
// current step, and the prefix of an answer that is continued.
func (c *CallInput) OwnMessages() (messages []llm.Message) {
	for _, step := range c.steps {
		messages = append(messages, c.stepMessages(step)...)
	}
	for _, text := range c.inputs[c.Step] {
		messages = append(messages, llm.Message{Role: protocol.RoleUser, Text: text})
	}
	if c.prefix != "" {
		messages = append(messages, llm.Message{Role: protocol.RoleAssistant, Text: c.prefix})
	}
	return messages
}

// Inputs returns the steering inputs of the turn that the request contains.
func (c *CallInput) Inputs() (texts []string) {
	for _, of := range c.inputs {
		texts = append(texts, of...)
	}
	return texts
}

// Results calls each for the outputs of the turn's tool calls, and for the texts of those that failed.
func (c *CallInput) Results(each func(tool, output string, sources []protocol.Source, failed bool)) {
	for _, step := range c.steps {
		for i, call := range step.Calls {
			result := c.results[step.Tools[i]]
			each(call.Name, result.output, result.sources, result.failed)
		}
	}
}

// stepMessages returns a finished step in the form that the model gets: its inputs, its text and calls, and the results
// of its tools.
func (c *CallInput) stepMessages(step stepResult) []llm.Message {
	var messages []llm.Message
	for _, text := range c.inputs[step.Step] {
		messages = append(messages, llm.Message{Role: protocol.RoleUser, Text: text})
	}
	messages = append(messages, llm.Message{
		Role: protocol.RoleAssistant, Text: step.Text, ToolCalls: step.Calls, Opaque: step.Opaque, OpaqueOwner: step.Owner,
	})
	for i, call := range step.Calls {
		result := c.results[step.Tools[i]]
		messages = append(messages, llm.Message{Role: "tool", ToolCallID: call.ID, Text: result.text(), ToolFailed: result.failed})
	}
	return messages
}

// messageText returns the text of a stored message for the model. Reasoning and tool calls of earlier turns are left
// out; steering inputs appear at the position where they were applied.
func messageText(message *turnlog.HistoryMessage) string {
	if len(message.Parts) == 1 && message.Parts[0].Type == protocol.PartText && message.Status != protocol.MessageCancelled {
		return strings.TrimSpace(message.Parts[0].Text) // of a thousand messages, most are such: nothing is copied
	}
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
