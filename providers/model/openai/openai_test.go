package openai_test

import (
	"testing"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/openai"
)

func subject(wire string) modeltest.Subject {
	return modeltest.Subject{
		Wire: wire, Family: openai.Family, SendsSealed: wire == modeltest.Responses,
		New: func(baseURL, key string, options model.Options) (llm.Model, error) {
			return openai.New(openai.Options{BaseURL: baseURL, APIKey: key, API: wire, Client: options})
		},
	}
}

func TestChatKeepsTheContract(t *testing.T) { modeltest.Run(t, subject(modeltest.Chat)) }

func TestResponsesKeepTheContract(t *testing.T) { modeltest.Run(t, subject(modeltest.Responses)) }
