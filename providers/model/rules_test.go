package model_test

import (
	"testing"

	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/providers/model/modeltest"
)

func TestTheModelOfTheActorsTestsKeepsTheRules(t *testing.T) {
	modeltest.RunModel(t, "What is a turnstone?", func(*testing.T) llm.Model { return llmtest.Answer("A ", "bird.") })
}
