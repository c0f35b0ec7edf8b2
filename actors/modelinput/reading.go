package modelinput

import (
	"strings"

	"turnstone/actors/policy"
	"turnstone/actors/toolbox"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// written returns what the user has written in messages: the messages themselves, and the inputs for the answers.
func written(history []turnlog.HistoryMessage) (texts []string) {
	for _, message := range history {
		for _, part := range message.Parts[:len(message.Parts)-message.Shown] {
			if message.Role == protocol.RoleUser || isInput(&part) {
				texts = append(texts, withoutFences(part.Text))
			}
		}
	}
	return texts
}

// withoutFences returns a text without its fenced blocks. Users copy their content from elsewhere, for example the error of an
// artifact.
func withoutFences(text string) string {
	if !strings.Contains(text, "```") {
		return text
	}
	var out strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		marks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case fence == "" && len(marks) >= 3:
			fence = marks
		case fence == "":
			out.WriteString(line)
		case len(marks) >= len(fence) && marks == trimmed:
			fence = ""
		}
	}
	return out.String()
}

// isInput reports whether a part of an answer is an input of the user, which was applied while it was written.
func isInput(part *protocol.Part) bool {
	return part.Type == protocol.PartNotice && part.SteeringID != nil
}

// reading notes what a request contains, for the policy of the calls that follow. user is what the user has written in the
// messages, which show files now. trimmed means that older messages were left out: what the model wrote may repeat what they had.
// The texts are shared with the request.
func reading(p *machine.CallInput, tools *toolbox.Catalogue, user []string, history []turnlog.HistoryMessage, instructions *turnlog.Instructions, trimmed bool) *policy.Reading {
	r := &policy.Reading{User: append(user, p.Inputs()...), Untrusted: trimmed}
	for _, text := range []string{instructions.Project, instructions.Account} {
		if text != "" {
			r.Private = append(r.Private, text)
		}
	}
	derived := trimmed // what the model wrote may repeat what it has read from elsewhere
	note := func(tool, output string, sources []protocol.Source, failed bool) {
		entry := tools.Find(tool)
		if failed && (entry == nil || !entry.PrivateFailures) {
			return // the service has written the text
		}
		for _, source := range sources {
			if !source.URL.IsZero() {
				r.Addresses = append(r.Addresses, string(source.URL))
			}
		}
		if entry == nil || entry.Private || failed { // a tool that is not known any more may have been one
			r.Private, derived = append(r.Private, output), true
		}
		r.Untrusted = r.Untrusted || entry == nil || entry.Untrusted || failed
	}
	for _, message := range history {
		if len(message.Attachments)+message.Shown > 0 {
			r.Untrusted, derived = true, true
		}
		r.Opaque = r.Opaque || len(message.Pictures) > 0
		files := len(message.Parts) - message.Shown
		for i, part := range message.Parts {
			switch {
			case part.Type == protocol.PartTool && part.Error != nil:
				note(part.ToolName, part.Error.Detail, nil, true)
			case part.Type == protocol.PartTool && part.Output == "": // its outcome is not known
			case part.Type == protocol.PartTool:
				note(part.ToolName, part.Output, part.Sources, false)
			case i >= files, message.Role != protocol.RoleUser && derived && !isInput(&part):
				r.Private = append(r.Private, part.Text, part.Code)
			}
		}
	}
	p.Results(note)
	return r
}
