package model

import (
	"math/rand/v2"
	"strings"
	"testing"

	"turnstone/actors/llm"
)

// divide returns the text and the reasoning of an answer that arrives in pieces.
func divide(pieces ...string) (text, reasoning string) {
	var state thoughts
	held := ""
	for i, piece := range pieces {
		held, _ = state.split(held+piece, i == len(pieces)-1, func(kind llm.ChunkKind, piece string) error {
			switch kind {
			case llm.ChunkThought:
				text, reasoning = "", reasoning+text
			case llm.ChunkReasoning:
				reasoning += piece
			default:
				text += piece
			}
			return nil
		})
	}
	return text + state.unended(), reasoning
}

func TestThoughtsAreSeparatedFromTheText(t *testing.T) {
	for whole, want := range map[string][2]string{
		"It ends its reasoning with </think>. That is all.": {"It ends its reasoning with </think>. That is all.", ""},
		"It ends with </think>, then it answers.":           {"It ends with </think>, then it answers.", ""},
		"It ends with </think>.\nThat is all.":              {"It ends with </think>.\nThat is all.", ""},
		"Before (see </think>)\nafter":                      {"Before (see </think>)\nafter", ""},
		"Hm.</think>**Hello**":                              {"**Hello**", "Hm."},
		"Hm. </think>\n\nHello":                             {"Hello", "Hm. "},
		"Hm </thinking>":                                    {"", "Hm "},
		"Hm</THINK>Hello":                                   {"Hello", "Hm"},
		"<THINK>Hm</Think>Hello":                            {"Hello", "Hm"},
		"\ufeff<think>Hm</think>Hello":                      {"Hello", "Hm"},
		"\ufeffHello":                                       {"\ufeffHello", ""},
		"Hello\n\n```\n<think>x</think>\n```\n":             {"Hello\n\n```\n<think>x</think>\n```\n", ""},
		"a</reasoning>b</think>c":                           {"b</think>c", "a"},

		"<think>The tag `</think>` ends it, \"</think>\" and “</think>” too.</think>Hello": {"Hello", "The tag `</think>` ends it, \"</think>\" and “</think>” too."},
		"<think>Write `<think>x</think>`.\n</think>\nHello":                                {"Hello", "Write `<think>x</think>`.\n"},
		"<think>An odd ` and no more</think>Hello":                                         {"Hello", "An odd ` and no more"},
		"<think>As in\n```xml\n<think>\n</think>\n```\nSo.\n</think>\nHello":               {"Hello", "As in\n```xml\n<think>\n</think>\n```\nSo.\n"},
		"<think>As in\n```xml\nx\n</think>\nSee:\n```go\nx\n```\n":                         {"See:\n```go\nx\n```\n", "As in\n```xml\nx\n"},
		"<think>As in\n```\nx\n</think>\nHello":                                            {"Hello", "As in\n```\nx\n"},
		"<think>They ask: \"</think>\"Hello, she said":                                     {"Hello, she said", "They ask: \"</think>\"Hello, she said"},

		"[THINK]Hm[/THINK]Hello":                        {"Hello", "Hm"},
		"Hm\n[/THINK]\nHello":                           {"Hello", "Hm\n"},
		"◁think▷Hm◁/think▷Hello":                        {"Hello", "Hm"},
		"Hm◁/think▷Hello":                               {"Hello", "Hm"},
		"<seed:think>Hm</seed:think>Hello":              {"Hello", "Hm"},
		"Models write [THINK], ◁think▷ or <seed:think>": {"Models write [THINK], ◁think▷ or <seed:think>", ""},
		"The marks:\n[THINK]\n`[/THINK]`, as\n◁think▷x": {"The marks:\n[THINK]\n`[/THINK]`, as\n◁think▷x", ""},
		"See [the page](https://a.example) [1]":         {"See [the page](https://a.example) [1]", ""},
		"[1] is first":                                  {"[1] is first", ""},

		"<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>": {"Hello", "Hm"},
		"<|start|>assistant<|channel|>final<|message|>Hello":                                                  {"Hello", ""},
		"<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>commentary<|message|>I look.\n<|end|>\n" +
			"<|start|>assistant<|channel|>analysis<|message|>B<|end|><|start|>assistant<|channel|>final<|message|>Hello": {"I look.\nHello", "AB"},
		"A model writes\n<|channel|>analysis<|message|>x<|end|>": {"A model writes\n<|channel|>analysis<|message|>x<|end|>", ""},
	} {
		for way, pieces := range map[string][]string{"whole": {whole}, "by characters": strings.Split(whole, "")} {
			if text, reasoning := divide(pieces...); text != want[0] || reasoning != want[1] {
				t.Errorf("%q, %s: the text is %q, the reasoning %q", whole, way, text, reasoning)
			}
		}
	}
}

func TestThoughtsAreTheSameHoweverTheyAreCut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // the same texts in every run
	words := []string{
		"<think>", "</think>", "\n", " ", "a", "```", "`", "~~~", "</", "think", ">", "<Thinking>", "</THINKING>", "</reasoning>", ".", "é", "\r\n", "\ufeff", "[THINK]", "[/THINK]", "[",
		"◁think▷", "◁/think▷", "\"", "“", "”", "```go\n", "\n```\n", "<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant", "<|return|>", "<seed:think>", "</seed:think>",
	}
	for range 40_000 {
		var whole strings.Builder
		for range 1 + random.IntN(9) {
			whole.WriteString(words[random.IntN(len(words))])
		}
		text, reasoning := divide(whole.String())
		if cutText, cutReasoning := divide(strings.Split(whole.String(), "")...); cutText != text || cutReasoning != reasoning {
			t.Fatalf("%q: whole %q and %q, by characters %q and %q", whole.String(), text, reasoning, cutText, cutReasoning)
		}
	}
}
