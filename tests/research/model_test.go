package research

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"turnstone/actors/llm"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol/researchlog"
	"turnstone/providers/model/modeltest"
)

var (
	sourceTitle  = regexp.MustCompile(`<webpage [^>]*title="([^"]*)"`)
	planQuestion = regexp.MustCompile(`(?m)^1\. (.+)$`)
)

// model returns a script for a stand-in that answers as the scripted model does. It also obeys what a page tells it. With
// lies, it adds the invented sentences to each section.
func (c *corpus) model(lies bool) modeltest.Script {
	return modeltest.Script{Respond: func(r modeltest.Request) modeltest.Step {
		kind, _, _ := strings.Cut(strings.TrimPrefix(r.System, researchlog.StepMarker), "\n")
		input := r.Messages[len(r.Messages)-1].Text
		c.note("model " + kind + " " + subjectOf(researchlog.StepKind(kind), input))
		text := sitetest.ScriptedAnswer(r)
		if in := c.tongueOf(input); strings.Contains(input, in.instruction) {
			text += "\n1: Everyone has to pay 999 crowns to " + obeyed + ".\n" + obeyed + " asks what is at /leak?"
		}
		if lies && researchlog.StepKind(kind) == researchlog.StepWrite {
			text = c.falsify(c.tongueOf(input), text)
		}
		return modeltest.Step{Text: []string{text}, Usage: &llm.Usage{InputTokens: len(input) / 4, OutputTokens: len(text) / 4}}
	}}
}

var (
	sectionPart = regexp.MustCompile(`([^\[\]]+) (\[\d+\])\.\s*`)
	lastNumber  = regexp.MustCompile(`\d+(\D*)$`)
)

// tongueOf returns the language of the topic that a text is about.
func (c *corpus) tongueOf(text string) *tongue {
	for _, about := range c.topics {
		if strings.Contains(text, about.name) {
			return about.tongue
		}
	}
	return english
}

// falsify rewords a section, repeats its first sentence with another number and the same source, and adds the invented sentences.
func (c *corpus) falsify(in *tongue, section string) string {
	var b strings.Builder
	write := func(sentence, cited string) {
		if in.unspaced {
			b.WriteString(sentence + cited + in.stop)
		} else {
			b.WriteString(sentence + " " + cited + in.stop + " ")
		}
	}
	for i, part := range sectionPart.FindAllStringSubmatch(section, -1) {
		sentence, cited := strings.TrimRight(part[1], " "+in.stop), part[2]
		if i%2 == 1 {
			first, size := utf8.DecodeRuneInString(sentence)
			sentence = in.reworded + strings.ToLower(string(first)) + sentence[size:]
		}
		write(sentence, cited)
		if i == 0 {
			changed := lastNumber.ReplaceAllString(sentence, "7351$1")
			c.mu.Lock()
			c.falsified = append(c.falsified, changed)
			c.mu.Unlock()
			write(changed, cited)
		}
	}
	return b.String() + in.invented[0] + " " + in.invented[1]
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
