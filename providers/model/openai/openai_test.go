package openai_test

import (
	"testing"

	"turnstone/actors"
	"turnstone/providers/model"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/openai"
)

func subject(wire string) modeltest.Subject {
	return modeltest.Subject{
		Wire: wire, Family: openai.Family, SendsSealed: wire == modeltest.Responses,
		New: func(baseURL, key string, times model.Options) (actors.Model, error) {
			return openai.New(openai.Options{BaseURL: baseURL, APIKey: key, API: wire, Times: times})
		},
	}
}

func TestChatKeepsTheContract(t *testing.T) { modeltest.Run(t, subject(modeltest.Chat)) }

func TestResponsesKeepTheContract(t *testing.T) { modeltest.Run(t, subject(modeltest.Responses)) }
