package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"turnstone/actors/llm"
)

func offered(request llm.Request, name string) bool {
	return !request.WithoutCalls && slices.ContainsFunc(request.Tools, func(tool llm.Tool) bool { return tool.Name == name })
}

// inputName returns the name of an input of the offered tool: usual if the schema has that name, otherwise the schema's
// only property.
func inputName(request llm.Request, name, usual string) string {
	for _, tool := range request.Tools {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if tool.Name != name || json.Unmarshal(tool.Schema, &schema) != nil {
			continue
		}
		if _, found := schema.Properties[usual]; !found && len(schema.Properties) == 1 {
			for only := range schema.Properties {
				return only
			}
		}
	}
	return usual
}

// newCall derives the identifier of a call from its position in the conversation, so that a repeated step has the
// same calls.
func newCall(request llm.Request, index int, name string, input map[string]any) llm.ToolCall {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(errors.Join(errors.New("scripted: encoding an input of plain values"), err))
	}
	return llm.ToolCall{ID: fmt.Sprintf("call_%d_%d", len(request.Messages), index), Name: name, Input: raw}
}
