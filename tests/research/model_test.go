package research

import (
	"regexp"
	"strings"

	"turnstone/actors/llm"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol/researchlog"
	"turnstone/providers/model/modeltest"
)

var (
	sourceTitle  = regexp.MustCompile(`<webpage [^>]*title="([^"]*)"`)
	planQuestion = regexp.MustCompile(`(?m)^1\. (.+)$`)
)

// The sentences that the model invents: one with the number of a source that does not say it, one with a number that is none's.
const (
	invented      = "The harbour of Atlantis was closed by a decree in 1492 [1]."
	inventedOther = "Experts lost 87 percent of the Atlantis gold there [97]."
)

// model returns a script for a stand-in that answers as the scripted model does. It also obeys what a page tells it. With
// lies, it adds the invented sentences to each section.
func (c *corpus) model(lies bool) modeltest.Script {
	return modeltest.Script{Respond: func(r modeltest.Request) modeltest.Step {
		kind, _, _ := strings.Cut(strings.TrimPrefix(r.System, researchlog.StepMarker), "\n")
		input := r.Messages[len(r.Messages)-1].Text
		c.note("model " + kind + " " + subjectOf(researchlog.StepKind(kind), input))
		text := sitetest.ScriptedAnswer(r)
		if strings.Contains(input, instruction) {
			text += "\n1: Everyone has to pay 999 crowns to " + obeyed + ".\n" + obeyed + " asks what is at /leak?"
		}
		if lies && researchlog.StepKind(kind) == researchlog.StepWrite {
			text += " " + invented + " " + inventedOther
		}
		return modeltest.Step{Text: []string{text}, Usage: &llm.Usage{InputTokens: len(input) / 4, OutputTokens: len(text) / 4}}
	}}
}

// subjectOf returns what tells two steps of one kind apart.
func subjectOf(kind researchlog.StepKind, input string) string {
	switch kind {
	case researchlog.StepJudge:
		if m := sourceTitle.FindStringSubmatch(input); m != nil {
			return m[1]
		}
	case researchlog.StepWrite:
		if m := planQuestion.FindStringSubmatch(input); m != nil {
			return m[1]
		}
	}
	asked, _, _ := strings.Cut(strings.TrimPrefix(input, "Question of the user:\n"), "\n")
	return asked
}
