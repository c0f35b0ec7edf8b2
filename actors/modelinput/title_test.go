package modelinput

import (
	"strings"
	"testing"

	"turnstone/actors/llm/llmtest"
	"turnstone/actors/metering"
	"turnstone/actors/routing"
	"turnstone/protocol"
)

func TestTitlesAreOneCleanLine(t *testing.T) {
	for answer, want := range map[string]string{
		"\"Arithmetic With Sevens.\"\n\nHope that helps!": "Arithmetic With Sevens",
		"## A  Plan\tfor Spring":                          "A Plan for Spring",
		"日本語のタイトル":                                        "日本語のタイトル",
		"safe\u202eevil":                                  "safeevil",
		strings.Repeat("long ", 40):                       strings.TrimSpace(strings.Repeat("long ", 40)[:79]) + "…",
	} {
		title, _, err := WriteTitle(t.Context(), &metering.Model{Model: llmtest.Answer(answer)}, protocol.NewAccountID(), routing.Route{}, "question", "answer")
		if err != nil || title != want {
			t.Errorf("%q became %q, %v; want %q", answer, title, err, want)
		}
	}
	if title, _, err := WriteTitle(t.Context(), &metering.Model{Model: llmtest.Answer(" \n")}, protocol.NewAccountID(), routing.Route{}, "question", ""); err == nil {
		t.Errorf("an answer without text became the title %q", title)
	}
}
