package goals

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"turnstone/cmd/loadtest/figures"
)

// Figure is the result of a goal.
type Figure struct {
	Goal           string
	Ours, Baseline figures.Samples
	Unit           string // of Ours and Baseline
	Score          figures.Samples
	Note           string
}

// Report collects figures, tables and failures. One goroutine uses it.
type Report struct {
	Host     figures.Host
	Took     time.Duration
	figures  []Figure
	details  []detail
	failures []string
}

type detail struct {
	goal, title string
	table       *figures.Table
}

// Add adds the result of a goal.
func (r *Report) Add(f Figure) { r.figures = append(r.figures, f) }

// Detail adds a table of measurements.
func (r *Report) Detail(goal, title string, t *figures.Table) {
	r.details = append(r.details, detail{goal, title, t})
}

// Failed adds a goal that could not be measured.
func (r *Report) Failed(goal string, err error) {
	r.failures = append(r.failures, fmt.Sprintf("%s was not measured: %v", goal, err))
}

// list returns the table of goals: a row for each goal that was measured.
func (r *Report) list() *figures.Table {
	t := figures.NewTable("", "goal", "measured", "baseline", "score", "must", "aim", "")
	for _, g := range goals {
		i := slices.IndexFunc(r.figures, func(f Figure) bool { return f.Goal == g.id })
		if i < 0 {
			continue
		}
		f := r.figures[i]
		baseline := "–"
		if len(f.Baseline) > 0 {
			baseline = g.baseline + ": " + figures.Show(f.Baseline, f.Unit)
		}
		what := g.what
		if f.Note != "" {
			what += " (" + f.Note + ")"
		}
		must := g.must.String()
		if math.IsInf(g.must.value, 0) {
			must = "–"
		}
		t.Add(g.id, what, figures.Show(f.Ours, f.Unit), baseline, figures.Show(f.Score, g.must.unit), must, g.aim.String(), verdict(g, f.Score.Median()))
	}
	return t
}

// Unmet lists the goals that were measured and missed, and whose miss is not known or has become worse. A goal that could
// not be measured is reported by Failed instead.
func (r *Report) Unmet() (list []string) {
	for _, f := range r.figures {
		i := slices.IndexFunc(goals, func(g goal) bool { return g.id == f.Goal })
		if i < 0 || math.IsInf(goals[i].must.value, 0) || goals[i].must.met(f.Score.Median()) {
			continue
		}
		if _, known := goals[i].known(f.Score.Median()); !known {
			list = append(list, fmt.Sprintf("%s: %s, must be %s", f.Goal, figures.Show(f.Score, goals[i].must.unit), goals[i].must))
		}
	}
	return list
}

// Text returns the report for a terminal.
func (r *Report) Text() string {
	var out strings.Builder
	for _, d := range r.details {
		fmt.Fprintf(&out, "\n%s: %s\n\n%s", d.goal, d.title, d.table.Aligned())
	}
	fmt.Fprintf(&out, "\n%s", r.list().Aligned())
	for _, failure := range r.failures {
		fmt.Fprintln(&out, failure)
	}
	return out.String()
}

// byHand separates the generated part of the document from the part that people write, which a run does not change.
const byHand = "<!-- What follows is written by hand; make bench keeps it. -->"

// markdown returns the document. The part after byHand is copied from before, the previous document.
func (r *Report) markdown(before []byte) []byte {
	var out bytes.Buffer
	out.WriteString("# Benchmarks\n\nWritten by `make bench`. A goal that has a baseline is measured in the same run and on the same host computer as the\n" +
		"baseline, in alternating rounds. A figure is the median of its rounds, with the minimum and the maximum in brackets.\n" +
		"Absolute figures are those of one host computer that also ran the load, the model, the database and the baselines.\n\n")
	out.WriteString(r.Host.Markdown(r.Took))
	out.WriteString("\n## Goals\n\n" + r.list().Markdown())
	for _, failure := range r.failures {
		out.WriteString("\n" + failure + "\n")
	}
	out.WriteString("\n## Measurements\n")
	for _, d := range r.details {
		fmt.Fprintf(&out, "\n### %s: %s\n\n%s", d.goal, d.title, d.table.Markdown())
	}
	out.WriteString(howMeasured)
	out.WriteString("\n" + byHand + "\n")
	if _, kept, found := bytes.Cut(before, []byte(byHand+"\n")); found {
		out.Write(kept)
	}
	return out.Bytes()
}

// Write writes the document.
func (r *Report) Write(to string) error {
	before, err := os.ReadFile(to)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, r.markdown(before), 0o644)
}
