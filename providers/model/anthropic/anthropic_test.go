package anthropic_test

import (
	"testing"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/anthropic"
	"turnstone/providers/model/modeltest"
)

func subject() modeltest.Subject {
	return modeltest.Subject{
		Wire: modeltest.Anthropic, Family: anthropic.Family, SendsSealed: true,
		New: func(baseURL, key string, options model.Options) (llm.Model, error) {
			return anthropic.New(anthropic.Options{BaseURL: baseURL, APIKey: key, Client: options})
		},
	}
}

func TestMessagesKeepTheContract(t *testing.T) { modeltest.Run(t, subject()) }
