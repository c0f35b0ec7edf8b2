package openai

import (
	"testing"

	"turnstone/actors/llm"
)

// OpenAI's reasoning models refuse max_tokens; many compatible servers support nothing else.
func TestTheOutputLimitFieldDependsOnTheServer(t *testing.T) {
	for base, native := range map[string]bool{
		"": true, "https://api.openai.com/v1": true, "https://x.openai.azure.com/openai/v1": true, "http://localhost:11434/v1": false,
	} {
		made, err := New(Options{BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		body, err := made.chatBody(llm.Request{MaxOutputTokens: 7})
		if err != nil || (body.MaxCompletionTokens == 7) != native || (body.MaxTokens == 7) == native {
			t.Errorf("%s: %+v, %v", base, body, err)
		}
	}
}
