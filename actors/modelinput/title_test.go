package modelinput

import (
	"context"
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
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

func TestAModelThatDoesNotEndItsAnswerWritesNoTitle(t *testing.T) {
	for name, play := range map[string]func(context.Context, func(llm.Chunk) error) error{
		"it writes without end": func(_ context.Context, emit func(llm.Chunk) error) error {
			for {
				if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "again and "}); err != nil {
					return err
				}
			}
		},
		"it hangs": func(ctx context.Context, emit func(llm.Chunk) error) error {
			if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "A plan"}); err != nil {
				return err
			}
			if deadline, limited := ctx.Deadline(); !limited || time.Until(deadline) > titleTimeout {
				t.Errorf("the call ends at %v", deadline)
			}
			return context.DeadlineExceeded
		},
	} {
		model := &llmtest.Script{Play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
			return play(ctx, emit)
		}}
		title, used, err := WriteTitle(t.Context(), &metering.Model{Model: model}, protocol.NewAccountID(), routing.Route{}, "question", "answer")
		if title != "" || err == nil || used.OutputTokens == 0 {
			t.Errorf("%s: the title %q, %v, with %+v", name, title, err, used)
		}
	}
}
