package research

import (
	"fmt"
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
			text = c.falsify(text)
		}
		return modeltest.Step{Text: []string{text}, Usage: &llm.Usage{InputTokens: len(input) / 4, OutputTokens: len(text) / 4}}
	}}
}

var (
	sectionPart = regexp.MustCompile(`([^\[\]]+) (\[\d+\])\.\s*`)
	lastNumber  = regexp.MustCompile(`\d+(\D*)$`)
)

// reworded begins every second sentence of a section: the model writes it in its own words.
const reworded = "According to one report, "

// falsify rewords a section, repeats its first sentence with another number and the same source, and adds the invented sentences.
func (c *corpus) falsify(section string) string {
	var b strings.Builder
	for i, part := range sectionPart.FindAllStringSubmatch(section, -1) {
		sentence, cited := part[1], part[2]
		if i%2 == 1 {
			sentence = reworded + strings.ToLower(sentence[:1]) + sentence[1:]
		}
		fmt.Fprintf(&b, "%s %s. ", sentence, cited)
		if i == 0 {
			changed := lastNumber.ReplaceAllString(sentence, "7351$1")
			c.mu.Lock()
			c.falsified = append(c.falsified, changed)
			c.mu.Unlock()
			fmt.Fprintf(&b, "%s %s. ", changed, cited)
		}
	}
	return b.String() + invented + " " + inventedOther
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
