package http

import (
	"encoding/json"
	"testing"

	"turnstone/actors/llm"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/scripted"
)

// The models of these tests keep the rules of real ones, except uncancellableModel.
func TestTheModelsOfTestsKeepTheContract(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) llm.Model{
		"dictated": func(*testing.T) llm.Model {
			dictated := make(dictatedModel, 2)
			dictated <- "one "
			dictated <- "two"
			close(dictated)
			return dictated
		},
		"recording": func(*testing.T) llm.Model { return &recordingModel{} },
		"echoing":   func(*testing.T) llm.Model { return echoingModel{scripted.New(scripted.Options{})} },
		"calling": func(*testing.T) llm.Model {
			return &callingModel{
				Model: scripted.New(scripted.Options{}), calls: []llm.ToolCall{{ID: "1", Name: "calculate", Input: json.RawMessage(`{"expression":"6*7"}`)}},
			}
		},
	} {
		t.Run(name, func(t *testing.T) { modeltest.RunModel(t, "Multiply "+wantsTool, open) })
	}
}
