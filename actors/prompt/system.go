package prompt

import (
	"turnstone/actors/turn/machine"
	"turnstone/protocol/foreign"
)

// systemPrompt returns the system prompt of every request. trimmed means that older messages were left out, files that
// messages contain files; instructions are those of the project, or empty.
func systemPrompt(trimmed, files bool, instructions string) string {
	text := basePrompt(trimmed)
	if files {
		text += " " + machine.CitationRule
	}
	if instructions != "" {
		text += "\n\nThe user gave these instructions for all conversations of this project:\n\n" +
			foreign.Frame(foreign.Instructions, "", instructions)
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
