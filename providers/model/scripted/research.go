package scripted

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"turnstone/actors/llm"
	"turnstone/protocol/researchlog"
	"turnstone/protocol/words"
)

var (
	questionAsked = regexp.MustCompile(`(?s)^Question of the user:\n(.*?)\n(?:\n|$)`)
	plannedLine   = regexp.MustCompile(`(?m)^(\d+)\. (.+)$`)
	addedLine     = regexp.MustCompile(`(?m)^- (.+)$`)
	framedSource  = regexp.MustCompile(`(?s)<webpage ([^>]*)>\n?(.*?)\n?</webpage>`)
	numberOf      = regexp.MustCompile(`number="(\d+)"`)
	limitOf       = regexp.MustCompile(`at most (\d+)`)
	sentenceEnd   = regexp.MustCompile(`[.!?]["”»]?(?:\s|$)|[。！？]["”»]?|\n\n`)
)

// plansResearch reports whether a request is for the plan of a research task. The plan follows a directive in the question; the
// other steps do not.
func plansResearch(request llm.Request) bool {
	return strings.HasPrefix(request.System, researchlog.StepMarker+string(researchlog.StepPlan)+"\n")
}

// researchStep answers a step of a research task. What it says is taken from the request, so the same step always gets the same
// answer. ok is false for a request that is no such step.
func researchStep(request llm.Request) (text string, ok bool) {
	kind, _, _ := strings.Cut(request.System, "\n")
	kind, ok = strings.CutPrefix(kind, researchlog.StepMarker)
	if !ok || len(request.Messages) == 0 {
		return "", false
	}
	input := request.Messages[len(request.Messages)-1].Text
	asked := ""
	if m := questionAsked.FindStringSubmatch(input); m != nil {
		asked = strings.TrimSpace(m[1])
	}
	limit := 3
	if m := limitOf.FindStringSubmatch(request.System); m != nil {
		limit, _ = strconv.Atoi(m[1]) // the pattern matches digits only
	}
	switch researchlog.StepKind(kind) {
	case researchlog.StepPlan:
		return planOf(asked, limit), true
	case researchlog.StepRevise:
		return revisionOf(input, asked), true
	case researchlog.StepJudge:
		return quotesOf(input, limit), true
	case researchlog.StepWrite:
		return sectionOf(input), true
	case researchlog.StepSummarize:
		return summaryOf(input), true
	}
	return "NONE", true
}

// planOf divides a question: the question itself, its causes and examples of it.
func planOf(asked string, limit int) string {
	topic := strings.TrimRight(asked, "?!. ")
	lines := []string{asked, "What causes or explains this: " + topic + "?", "Which examples and measurements are there of this: " + topic + "?"}
	return strings.Join(lines[:min(limit, len(lines))], "\n")
}

// revisionOf adds a question for the newest input of the user.
func revisionOf(input, asked string) string {
	before, _, _ := strings.Cut(input, "\nQuestions of the plan:")
	added := addedLine.FindAllStringSubmatch(before, -1)
	if len(added) == 0 {
		return "NONE"
	}
	return strings.TrimRight(asked, "?!. ") + ", with respect to this: " + strings.TrimRight(added[len(added)-1][1], "?!. ") + "?"
}

// quotesOf copies the sentences of a source that have most words of each question.
func quotesOf(input string, limit int) string {
	var text strings.Builder
	for _, frame := range framedSource.FindAllStringSubmatch(input, -1) {
		text.WriteString(html.UnescapeString(frame[2]) + "\n\n")
	}
	all := sentencesOf(text.String())
	var lines []string
	used := map[string]bool{}
	for _, q := range plannedLine.FindAllStringSubmatch(input, -1) {
		wanted := contentWords(q[2])
		best, most := "", 1
		for _, sentence := range all {
			if n := overlap(wanted, sentence); n > most && !used[sentence] {
				best, most = sentence, n
			}
		}
		if best != "" && len(lines) < limit {
			used[best] = true
			lines = append(lines, q[1]+": "+strings.Join(strings.Fields(best), " "))
		}
	}
	if len(lines) == 0 {
		return "NONE"
	}
	return strings.Join(lines, "\n")
}

// sectionOf cites each excerpt once.
func sectionOf(input string) string {
	var b strings.Builder
	for _, frame := range framedSource.FindAllStringSubmatch(input, -1) {
		number := numberOf.FindStringSubmatch(frame[1])
		if number == nil {
			continue
		}
		sentence := strings.Join(strings.Fields(html.UnescapeString(frame[2])), " ")
		fmt.Fprintf(&b, "%s [%s]. ", strings.TrimRight(sentence, ".!?。！？ "), number[1])
	}
	return strings.TrimSpace(b.String())
}

// summaryOf takes the first sentence of each section.
func summaryOf(input string) string {
	var lines []string
	for _, frame := range framedSource.FindAllStringSubmatch(input, -1) {
		section := strings.TrimSpace(html.UnescapeString(frame[2]))
		if all := sentencesOf(section); len(all) > 0 && !slices.Contains(lines, all[0]) {
			lines = append(lines, all[0])
		}
	}
	return strings.Join(lines, " ")
}

func sentencesOf(text string) (all []string) {
	at := 0
	for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
		if sentence := strings.TrimSpace(text[at:end[1]]); len(sentence) > 20 {
			all = append(all, sentence)
		}
		at = end[1]
	}
	if rest := strings.TrimSpace(text[at:]); len(rest) > 20 {
		all = append(all, rest)
	}
	return all
}

// contentWords returns the longer words of a text, and the characters of scripts without spaces.
func contentWords(text string) map[string]bool {
	found := map[string]bool{}
	for _, token := range words.Tokenize(text) {
		if first, _ := utf8.DecodeRuneInString(token.Text); len(token.Text) > 3 || words.Unspaced(first) {
			found[token.Text] = true
		}
	}
	return found
}

func overlap(wanted map[string]bool, sentence string) (n int) {
	for word := range contentWords(sentence) {
		if wanted[word] {
			n++
		}
	}
	return n
}
