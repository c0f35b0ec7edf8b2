package prompt

import (
	"turnstone/actors/policy"
	"turnstone/actors/toolbox"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// written returns what the user has written in messages.
func written(history []turnlog.HistoryMessage) (texts []string) {
	for _, message := range history {
		if message.Role != protocol.RoleUser {
			continue
		}
		for _, part := range message.Parts {
			texts = append(texts, part.Text)
		}
	}
	return texts
}

// reading notes what a request contains, for the policy of the calls that follow. user is what the user has written in the
// messages, which show files now. The texts are shared with the request.
func reading(p *machine.Prompt, tools *toolbox.Catalogue, user []string, history []turnlog.HistoryMessage, instructions string) *policy.Reading {
	r := &policy.Reading{User: append(user, p.Inputs()...)}
	if instructions != "" {
		r.Private = append(r.Private, instructions)
	}
	derived := false // what the model wrote may repeat what it has read from elsewhere
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
		if entry == nil || entry.Private { // a tool that is not known any more may have been one
			r.Private, derived = append(r.Private, output), true
		}
		r.Untrusted = r.Untrusted || entry == nil || entry.Untrusted
	}
	for _, message := range history {
		if len(message.Attachments) > 0 {
			r.Untrusted, derived = true, true
		}
		for _, part := range message.Parts {
			switch {
			case part.Type == protocol.PartTool && part.Error != nil:
				note(part.ToolName, part.Error.Detail, nil, true)
			case part.Type == protocol.PartTool && part.Output == "": // its outcome is not known
			case part.Type == protocol.PartTool:
				note(part.ToolName, part.Output, part.Sources, false)
			case message.Role == protocol.RoleUser && len(message.Attachments) > 0, message.Role != protocol.RoleUser && derived:
				r.Private = append(r.Private, part.Text, part.Code)
			}
		}
	}
	p.Results(note)
	return r
}
