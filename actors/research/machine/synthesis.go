package machine

import (
	"fmt"
	"slices"
	"strings"

	"turnstone/actors/research/evidence"
	"turnstone/protocol"
	"turnstone/protocol/clip"
	"turnstone/protocol/foreign"
	"turnstone/protocol/researchlog"
)

// beginWriting ends the search for sources, and has a model write a section about each question that has excerpts.
func (b *Batch) beginWriting() {
	b.drop(func(s *step) bool { return s.Kind != researchlog.StepWrite && s.Kind != researchlog.StepSummarize })
	b.merge()
	b.drop(func(s *step) bool { return s.Kind == researchlog.StepJudge })
	b.keepQuotes()
	b.leaveUnread()
	b.conflicts = b.contradictions()
	b.enter(protocol.ResearchPhaseWrites)
	var write []*question
	for _, q := range b.questions {
		quotes := b.quotesOf(q)
		switch {
		case q.State == protocol.ResearchStepStruck:
			continue
		case q.State.Terminal():
		case len(quotes) == 0:
			b.changeQuestion(q, protocol.ResearchStepSkips)
		default:
			b.changeQuestion(q, protocol.ResearchStepFinishes)
		}
		if len(quotes) > 0 {
			write = append(write, q)
		}
	}
	tokens := b.writable(writeTokens, len(write)+1)
	if tokens == 0 {
		return
	}
	for _, q := range write {
		b.add(researchlog.Step{
			Key: "write-" + q.StepID, Kind: researchlog.StepWrite, Asked: b.spec.Question, About: []string{q.Question}, Quotes: b.quotesOf(q), Inputs: b.inputTexts(), Tokens: tokens,
		})
	}
}

// inputTexts returns the texts of all inputs.
func (m *Machine) inputTexts() (texts []string) {
	for _, in := range m.inputs {
		if in.Kind == protocol.ResearchInput && in.applied {
			texts = append(texts, in.Text)
		}
	}
	return texts
}

// advanceWriting has the summary written once there are all sections, and then ends the task.
func (b *Batch) advanceWriting() {
	if !b.allOver(researchlog.StepWrite) {
		return
	}
	var sections []string
	for _, q := range b.questions {
		if q.section != "" {
			sections = append(sections, q.section)
		}
	}
	if tokens := b.writable(summarizeTokens, 1); len(sections) > 1 && tokens > 0 {
		b.add(researchlog.Step{Key: "summarize", Kind: researchlog.StepSummarize, Asked: b.spec.Question, Texts: sections, Tokens: tokens})
	}
	if b.allOver(researchlog.StepSummarize) {
		b.ready = true
		b.Effects = append(b.Effects, Effect{Finish: true, Bytes: b.size()})
	}
}

// size returns about how many bytes the report has.
func (b *Batch) size() int {
	var quoted quotes
	size := len(b.assemble(wordsOf(b.spec.Language), &quoted, strings.TrimSpace))
	for _, text := range quoted.texts {
		size += len(text)
	}
	return size + 300*len(b.sources)
}

func (b *Batch) written(s *step) {
	if s.result.Failed != "" {
		b.failing = s.result.Failed
		return
	}
	b.questionOf(s.About[0]).section = plain(s.result.Text)
}

func (b *Batch) summarized(s *step) {
	if s.result.Failed == "" {
		b.summary = plain(s.result.Text)
	}
}

// plain returns what a model wrote, cut after a line if it is too long, without what stands for quotes.
func plain(text string) string {
	text = strings.TrimSpace(strings.NewReplacer(quoteStart, "", quoteEnd, "").Replace(text))
	if len(text) <= maxSection {
		return text
	}
	text = clip.Bytes(text, maxSection)
	if at := strings.LastIndex(text, "\n"); at > maxSection/2 {
		text = text[:at]
	}
	return strings.TrimSpace(text)
}

// complete ends the task with its report.
func (b *Batch) complete(message protocol.MessageID) {
	words := wordsOf(b.spec.Language)
	checked := b.check(words)
	b.renumber(checked.Order)
	artifact := protocol.DeriveReportID(b.spec.TaskID)
	b.report = &researchlog.Report{
		ConversationID: b.spec.ConversationID, ArtifactID: artifact, MessageID: message, Title: clip.Ellipsis(b.spec.Question, maxTitle), Checks: checked.ResearchChecks,
		Content: checked.text + b.listSources(words), Notice: b.messageOf(checked.text), Citations: b.citations(),
	}
	for n := range 3 {
		b.report.PartIDs = append(b.report.PartIDs, protocol.DeriveReportPartID(b.spec.TaskID, n+1))
	}
	b.task.ArtifactID, b.task.MessageID, b.task.Checks = &artifact, &message, &b.report.Checks
	b.end(protocol.ResearchReports, nil)
}

// checkedReport is the text of a report whose citations were checked, without the list of its sources.
type checkedReport struct {
	protocol.ResearchChecks
	text  string
	Order []int // the numbers of the sources before, in the order of their new numbers
}

// check checks each sentence that a model wrote. What the service adds needs no check: it quotes.
func (b *Batch) check(words *reportWords) checkedReport {
	kept := map[int][]string{}
	for _, e := range b.excerpts() {
		kept[b.number(e.source)] = append(kept[b.number(e.source)], e.text())
	}
	var report checkedReport
	checkedText := func(markdown string) string {
		checked := evidence.Check(markdown, kept, words.unsupported)
		report.Sentences += checked.Sentences
		report.Factual += checked.Factual
		report.Supported += checked.Supported
		report.Unsupported += checked.Unsupported
		report.Removed += checked.Removed
		return inert(checked.Text)
	}
	var quoted quotes
	text := b.assemble(words, &quoted, checkedText)
	text, report.Order = evidence.Renumber(text, nil)
	report.text = quoted.restore(text)
	return report
}

// quotes are texts of others in a report. They are put in after the citations got their numbers, so that no bracket in them
// becomes a citation.
type quotes struct{ texts []string }

const quoteStart, quoteEnd = "\ue000", "\ue001" // for private use

// hold returns what stands for a text until restore.
func (q *quotes) hold(text string) string {
	q.texts = append(q.texts, strings.NewReplacer("[", "(", "]", ")").Replace(foreign.OneLine(text)))
	return fmt.Sprintf("%s%d%s", quoteStart, len(q.texts)-1, quoteEnd)
}

func (q *quotes) restore(report string) string {
	pairs := make([]string, 0, 2*len(q.texts))
	for i, text := range q.texts {
		pairs = append(pairs, fmt.Sprintf("%s%d%s", quoteStart, i, quoteEnd), escape(text))
	}
	return strings.NewReplacer(pairs...).Replace(report)
}

// assemble returns the report with its headings. written is applied to what a model wrote.
func (b *Batch) assemble(words *reportWords, quoted *quotes, written func(string) string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", quoted.hold(b.spec.Question))
	for _, note := range b.remarks(words) {
		fmt.Fprintf(&out, "\n> %s\n", note)
	}
	if b.summary != "" {
		fmt.Fprintf(&out, "\n%s\n", written(demote(b.summary)))
	}
	for _, q := range b.questions {
		if q.State == protocol.ResearchStepStruck {
			continue
		}
		fmt.Fprintf(&out, "\n## %s\n", quoted.hold(q.Question))
		switch quotes := b.quotesOf(q); {
		case q.section != "":
			fmt.Fprintf(&out, "\n%s\n", written(demote(q.section)))
		case len(quotes) == 0 && q.State == protocol.ResearchStepSkipped:
			fmt.Fprintf(&out, "\n%s\n", words.skipped)
		case len(quotes) == 0:
			fmt.Fprintf(&out, "\n%s\n", words.nothing)
		default:
			for _, quote := range quotes {
				fmt.Fprintf(&out, "\n> %s [%d]\n", quoted.hold(quote.Text), quote.Number)
			}
		}
	}
	if len(b.conflicts) > 0 {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n", words.contradictions, words.disagree)
		for _, c := range b.conflicts {
			fmt.Fprintf(&out, "- “%s” [%d] — “%s” [%d]\n", quoted.hold(c.first.text()), b.number(c.first.source), quoted.hold(c.second.text()), b.number(c.second.source))
		}
	}
	return out.String()
}

// remarks returns what a reader must know about how the report was made.
func (b *Batch) remarks(words *reportWords) (notes []string) {
	if b.stopped {
		notes = append(notes, words.timeOver)
	}
	if slices.ContainsFunc(b.inputs, func(in *input) bool { return in.Kind == protocol.ResearchWriteNow && in.applied }) {
		notes = append(notes, words.endedEarly)
	}
	unwritten := slices.ContainsFunc(b.questions, func(q *question) bool {
		return q.State != protocol.ResearchStepStruck && q.section == "" && len(b.quotesOf(q)) > 0
	})
	switch {
	case unwritten && b.failing != "":
		notes = append(notes, words.modelFailed)
	case unwritten && !b.stopped:
		notes = append(notes, words.tokensOver)
	}
	if b.task.Spent.Pages >= b.task.Budget.Pages {
		notes = append(notes, words.pagesOver)
	}
	if slices.ContainsFunc(b.steps, func(s *step) bool {
		return s.Kind == researchlog.StepSearch && s.result != nil && s.result.Failed != ""
	}) {
		notes = append(notes, words.searchFailed)
	}
	return notes
}

// renumber gives the cited sources their numbers.
func (b *Batch) renumber(order []int) {
	for i, before := range order {
		s, number := b.sources[before-1], i+1
		s.Number = &number
		b.changed[s] = true
	}
}

// cited returns the sources with a number, in the order of their numbers.
func (m *Machine) cited() []*source {
	var all []*source
	for _, s := range m.sources {
		if s.Number != nil {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *source) int { return *a.Number - *b.Number })
	return all
}

// listSources returns the list at the end of the report.
func (b *Batch) listSources(words *reportWords) string {
	cited := b.cited()
	if len(cited) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n## %s\n\n", words.sources)
	for _, s := range cited {
		fmt.Fprintf(&out, "%d. %s", *s.Number, escape(foreign.OneLine(s.Title)))
		if s.URL != nil {
			fmt.Fprintf(&out, " <%s>", *s.URL)
		}
		fmt.Fprintf(&out, " (%s, SHA-256 %.12s)\n", s.AccessedAt.UTC().Format("2006-01-02"), s.SHA256)
	}
	return out.String()
}

// citations returns the cited sources for the message with the report.
func (b *Batch) citations() (all []protocol.Citation) {
	for _, s := range b.cited() {
		c := protocol.Citation{Index: *s.Number, Title: s.Title, Marker: fmt.Sprintf("[%d]", *s.Number), FileID: s.FileID}
		if s.URL != nil {
			c.URL = protocol.WebAddress(*s.URL)
		}
		all = append(all, c)
	}
	return all
}

// messageOf returns the text of the message: what a reader must know, and the summary of the report or its first section.
func (b *Batch) messageOf(text string) string {
	_, text, _ = strings.Cut(text, "\n")
	before, after, _ := strings.Cut(text, "\n## ")
	if b.summary == "" {
		_, after, _ = strings.Cut(after, "\n")
		first, _, _ := strings.Cut(after, "\n## ")
		before = strings.TrimSpace(before) + "\n\n" + strings.TrimSpace(first)
	}
	return strings.TrimSpace(before)
}

// inert returns the Markdown of a model without links, pictures and HTML, which it may have copied from a source: a report refers to
// sources by numbers only. Their characters are shown as they are.
func inert(markdown string) string {
	parts := strings.Split(strings.NewReplacer("](", `]\(`, "]:", `]\:`).Replace(markdown), "<")
	var out strings.Builder
	out.WriteString(parts[0])
	for _, part := range parts[1:] {
		sign := "<"
		if part != "" && !strings.ContainsAny(part[:1], " =-0123456789.,") { // not "less than"
			sign = "&lt;" // a backslash could be escaped by one before it
		}
		out.WriteString(sign + part)
	}
	return out.String()
}

// demote makes the headings of a model smaller than those of the report.
func demote(markdown string) string {
	lines := strings.Split(strings.TrimSpace(markdown), "\n")
	fenced := false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if level := len(line) - len(strings.TrimLeft(line, "#")); !fenced && level > 0 && level < 3 && strings.HasPrefix(line[level:], " ") {
			lines[i] = "###" + line[level:]
		}
	}
	return strings.Join(lines, "\n")
}

// escape returns a text that Markdown shows as it is.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, "<", `\<`, "*", `\*`, "_", `\_`, "`", "\\`").Replace(text)
}
