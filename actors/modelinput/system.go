package modelinput

import (
	"turnstone/actors/turn/machine"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

// systemPrompt returns the system prompt of every request. trimmed means that older messages were left out, files that
// messages contain files.
func systemPrompt(trimmed, files bool, instructions *turnlog.Instructions) string {
	text := basePrompt(trimmed)
	if files {
		text += " " + machine.CitationRule
	}
	if instructions.Project != "" {
		text += "\n\nThe user gave these instructions for all conversations of this project:\n\n" +
			foreign.Frame(foreign.Instructions, "", instructions.Project)
	}
	if instructions.Account != "" {
		text += "\n\nThe user gave these instructions for all conversations"
		if instructions.Project != "" {
			text += "; where they contradict those of the project, follow the project's"
		}
		text += ":\n\n" + foreign.Frame(foreign.Instructions, "", instructions.Account)
	}
	return text
}

func basePrompt(trimmed bool) string {
	const base = "You are a helpful, honest assistant. Answer in the language of the user. Use Markdown; put code into fenced blocks with their language."
	if trimmed {
		return base + " The beginning of this conversation was left out because it is too long; say so when the user refers to it."
	}
	return base
}
