package work

import (
	"context"
	"crypto/sha256"
	_ "embed" // the instructions
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"turnstone/actors/llm"
	"turnstone/actors/research/evidence"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/researchlog"
)

//go:embed instructions.md
var instructionsText string

// instructions are the instructions for each kind of step: the sections of instructions.md.
var instructions = func() map[researchlog.StepKind]string {
	all := map[researchlog.StepKind]string{}
	for _, section := range strings.Split(instructionsText, "\n## ")[1:] {
		kind, text, _ := strings.Cut(section, "\n")
		all[researchlog.StepKind(kind)] = strings.TrimSpace(text)
	}
	return all
}()

// ask has a model do a step.
func (w *Worker) ask(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) (*researchlog.Result, error) {
	text, usage, err := w.complete(ctx, spec, step)
	result := &researchlog.Result{Usage: usage}
	if err != nil {
		return result, err
	}
	switch step.Kind {
	case researchlog.StepPlan, researchlog.StepGaps:
		result.Questions = questions(text, step.Limit)
	case researchlog.StepRevise:
		result.Questions, result.Struck = revision(text, step)
	case researchlog.StepJudge:
		if result.Quotes = quotes(text, step); strings.TrimSpace(text) == "" { // "none" says that no passage answers a question
			return result, errNothing
		}
	default:
		if result.Text = strings.TrimSpace(text); result.Text == "" {
			return result, errNothing
		}
	}
	return result, nil
}

var errNothing = &Problem{Detail: "The model wrote nothing.", Retryable: true}

// maxTokenBytes is more than the bytes of a token in any language. Of a model that ignores its limit of tokens, so much is read, because
// the user pays for the answer.
const maxTokenBytes = 16

var errTooLong = errors.New("the answer is longer than its limit")

// complete makes the model call of a step.
func (w *Worker) complete(ctx context.Context, spec *researchlog.Spec, step *researchlog.Step) (text string, usage protocol.Usage, err error) {
	input := question(step)
	request := llm.Request{
		Route: w.Route.Name, Model: w.Route.Model, ReasoningEffort: w.Route.ReasoningEffort, FirstByte: w.Route.FirstByte, Step: 1, TurnInput: 1,
		System:   researchlog.StepMarker + string(step.Kind) + "\n\n" + fmt.Sprintf(instructions[step.Kind], max(1, step.Limit)),
		Messages: []llm.Message{{Role: "user", Text: input}},
	}
	left := int(step.Tokens) - llm.EstimateInput(&request)
	request.MaxOutputTokens = min(max(left, 256), w.Route.MaxOutputTokens)
	var answer strings.Builder
	received := 0
	used, err := w.Model.Stream(ctx, spec.AccountID, request, func(chunk llm.Chunk) error {
		switch chunk.Kind {
		case llm.ChunkText:
			answer.WriteString(chunk.Text)
		case llm.ChunkThought:
			answer.Reset()
		}
		if received += len(chunk.Text); received > maxTokenBytes*request.MaxOutputTokens {
			return errTooLong
		}
		return nil
	})
	if errors.Is(err, errTooLong) {
		err = nil // what was read is used
	}
	usage = protocol.Usage{
		InputTokens: used.InputTokens, OutputTokens: used.OutputTokens, ReasoningTokens: used.ReasoningTokens, CachedInputTokens: used.CachedInputTokens, Estimated: used.Estimated,
	}
	return foreign.Clean(foreign.Storable(answer.String())), usage, err
}

// question returns what a model gets of a step. What others have written is in frames.
func question(step *researchlog.Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Question of the user:\n%s\n", step.Asked)
	if len(step.Inputs) > 0 {
		fmt.Fprintf(&b, "\nThe user added, oldest first:\n%s\n", bullets(step.Inputs))
	}
	if len(step.About) > 0 {
		b.WriteString("\nQuestions of the plan:\n")
		for i, q := range step.About {
			fmt.Fprintf(&b, "%d. %s\n", i+1, q)
		}
	}
	title := ""
	if step.Found != nil {
		title = foreign.Attribute("title", step.Found.Title)
	}
	for i, text := range step.Texts {
		b.WriteString("\n" + foreign.Frame(foreign.WebPage, foreign.Attribute("part", strconv.Itoa(i+1))+title, text) + "\n")
	}
	for _, quote := range step.Quotes {
		b.WriteString("\n" + foreign.Frame(foreign.WebPage, foreign.Attribute("number", strconv.Itoa(quote.Number))+foreign.Attribute("title", quote.Title), quote.Text) + "\n")
	}
	return b.String()
}

func bullets(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString("- " + text + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var (
	listMark = regexp.MustCompile(`^\s*(?:[-*+•]|\d{1,2}[.):])\s+`)
	strikes  = regexp.MustCompile(`^\s*-\s*(\d{1,2})\s*\.?\s*$`)
	numbered = regexp.MustCompile(`^\s*[-*]?\s*(\d{1,2})\s*[:.)]\s*(.+)$`)
	nothing  = regexp.MustCompile(`(?i)^\W*none\W*$`)
)

// questions returns the lines of an answer that are questions.
func questions(text string, limit int) (found []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(listMark.ReplaceAllString(line, ""))
		line = strings.Trim(line, "*_\"“”")
		if line == "" || nothing.MatchString(line) || strings.HasSuffix(line, ":") || len(found) == limit {
			continue
		}
		found = append(found, line)
	}
	return found
}

// revision returns the questions that an answer adds, and the indices of those that it strikes.
func revision(text string, step *researchlog.Step) (added []string, struck []int) {
	var rest strings.Builder
	for line := range strings.Lines(text) {
		if m := strikes.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1]) // the pattern matches digits only
			if n >= 1 && n <= len(step.About) && !slices.Contains(struck, n-1) {
				struck = append(struck, n-1)
			}
			continue
		}
		rest.WriteString(line)
	}
	return questions(rest.String(), step.Limit), struck
}

// quotes returns the quotes of an answer: a line each, with the number of the question.
func quotes(text string, step *researchlog.Step) (found []researchlog.Quote) {
	for line := range strings.Lines(text) {
		m := numbered.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || nothing.MatchString(m[2]) || len(found) == step.Limit {
			continue
		}
		number, _ := strconv.Atoi(m[1]) // the pattern matches digits only
		found = append(found, researchlog.Quote{Number: number, Text: strings.Trim(strings.TrimSpace(m[2]), "\"“”„«»")})
	}
	return found
}

// clean returns a text of others without characters that cannot be stored or seen, cut after a number of bytes.
func clean(text string, limit int) string {
	return foreign.Cut(foreign.Clean(foreign.Storable(text)), limit)
}

func sum(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

// choose returns the passages of a text about some questions, in the order of the text, without overlaps.
func choose(text string, about []string) (spans []evidence.Span) {
	each := passagesBytes / max(1, len(about))
	for _, q := range about {
		for _, span := range evidence.Passages(text, q, each) {
			if !slices.ContainsFunc(spans, func(s evidence.Span) bool { return span.Start < s.End && s.Start < span.End }) {
				spans = append(spans, span)
			}
		}
	}
	slices.SortFunc(spans, func(a, b evidence.Span) int { return a.Start - b.Start })
	return spans
}

// locator names where a byte of a text is: its page, sheet, slide or chapter, or its paragraph.
func locator(text string, blocks []protocol.TextBlock, at int) string {
	for _, b := range blocks {
		if at >= b.Offset && at < b.Offset+b.Length {
			return fmt.Sprintf("%s %d", b.Kind, b.Page)
		}
	}
	return fmt.Sprintf("paragraph %d", 1+strings.Count(text[:at], "\n\n"))
}
