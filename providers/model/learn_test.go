package model

import (
	"strings"
	"testing"
)

func TestARefusalTeachesTheParameterThatItNames(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"Unsupported parameter: 'parallel_tool_calls' is not supported with this model.","param":"parallel_tool_calls"}}`:                           "parallel_tool_calls",
		`{"error":{"message":"deepseek-reasoner does not support this tool_choice"}}`:                                                                                    "tool_choice",
		`{"error":{"message":"<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode"}}`: "tool_choice",
		`{"error":{"message":"registry.ollama.ai/library/llama3.2-vision does not support tools"}}`:                                                                      "tools",
		`{"error":{"message":"Function calling is not enabled for models/gemma-3-27b-it"}}`:                                                                              "tools",
		`{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}}`:                                               "tools",
		`{"error":{"message":"Unsupported value: 'reasoning.summary' is not supported","param":"reasoning.summary"}}`:                                                    "reasoning.summary",
		`{"error":{"message":"Item 'rs_1' of type 'reasoning' was provided without its required following item. It is invalid.","param":"input"}}`:                       "",
	} {
		refusal := readProviderError([]byte(body))
		var known lessons
		if known.learn(&refusal); strings.Join(known.drop, " ") != want {
			t.Errorf("%s: dropped %v", body, known.drop)
		}
	}
}
