package openai

import (
	"testing"

	"turnstone/actors/llm"
)

// OpenAI's reasoning models refuse max_tokens; many compatible servers support nothing else.
func TestTheOutputLimitFieldDependsOnTheServer(t *testing.T) {
	for base, native := range map[string]bool{
		"": true, "https://api.openai.com/v1": true, "https://x.openai.azure.com/openai/v1": true,
		"https://x.cognitiveservices.azure.com/openai/deployments/d?api-version=2024-10-21": true, "https://x.services.ai.azure.com/models": true, "http://localhost:11434/v1": false,
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

func TestTheDefaultFormatDependsOnTheServer(t *testing.T) {
	for base, api := range map[string]string{"": APIResponses, "https://api.openai.com/v1/": APIResponses, "http://localhost:11434/v1": APIChat} {
		if made, err := New(Options{BaseURL: base}); err != nil || made.api != api {
			t.Errorf("%s: %+v, %v", base, made, err)
		}
	}
}

func TestAzureGetsItsVersionAndItsKey(t *testing.T) {
	made, err := New(Options{BaseURL: "https://x.openai.azure.com/openai/deployments/d/?api-version=2024-10-21", APIKey: "k"})
	if err != nil || made.header().Get("Api-Key") != "k" || made.header().Get("Authorization") != "" {
		t.Fatalf("%v, %v", made, err)
	}
	if got := made.client.Address("chat/completions"); got != "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21" {
		t.Error(got)
	}
}
