package main

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
)

// bound is what a score must not pass.
type bound struct {
	least bool // the score must be at least this; otherwise at most
	value float64
	unit  string
}

func atMost(value float64, unit string) bound  { return bound{value: value, unit: unit} }
func atLeast(value float64, unit string) bound { return bound{least: true, value: value, unit: unit} }

func (b bound) met(score float64) bool {
	switch {
	case math.IsNaN(score):
		return false
	case b.least:
		return score >= b.value
	default:
		return score <= b.value
	}
}

func (b bound) String() string {
	sign := "≤"
	if b.least {
		sign = "≥"
	}
	return sign + " " + number(b.value) + unit(b.unit)
}

func unit(name string) string {
	if name == "" {
		return ""
	}
	return " " + name
}

// goal is one line of the list. Some goals of the list have several parts, each with a bound of its own.
type goal struct {
	id        string // P1, or P3 p99 for a part
	what      string
	baseline  string
	must, aim bound
}

// goals are in the order of the document.
var goals = []goal{
	{"P1 (a)", "server CPU per relayed token, 300 live turns × 30 tokens/s, at most 1.1 tokens per event, every event durable before it is visible", "`httputil.ReverseProxy`", atMost(1.8, "×"), atMost(1.4, "×")},
	{"P1 (b)", "the same with 1,000 live turns, in rounds with a token delay p99 of at most 100 ms", "`httputil.ReverseProxy`", atMost(1.4, "×"), atMost(1.1, "×")},
	{"P2 (a)", "P1 (a) with the CPU of Postgres added", "the proxy", atMost(2.5, "×"), atMost(1.8, "×")},
	{"P2 (b)", "P1 (b) with the CPU of Postgres added", "the proxy", atMost(2.5, "×"), atMost(1.8, "×")},
	{"P3 p50", "added time to first token, start committed before the first byte, 300 live turns", "direct upstream", atMost(3, "ms"), atMost(1.5, "ms")},
	{"P3 p99", "the same, p99", "direct upstream", atMost(20, "ms"), atMost(10, "ms")},
	{"P4", "durable turn starts/s through HTTP, 128 in flight", "pgbench's best on the same rows", atLeast(0.8, "×"), atLeast(1.5, "×")},
	{"P4 p99", "the same, p99 of a start", "–", atMost(20, "ms"), atMost(20, "ms")},
	{"P5", "fenced journal transitions/s, 128 turns waiting", "best one by one", atLeast(4, "×"), atLeast(6, "×")},
	{"P5 p99", "the same, p99 of an append", "–", atMost(8, "ms"), atMost(4, "ms")},
	{"P6", "memory a live turn with its reader, upstream connection included, 5,000 live turns", "the proxy", atMost(1.3, "×"), atMost(1, "×")},
	{"P7 memory", "memory of one more idle reader", "bare net/http SSE", atMost(1.2, "×"), atMost(0.2, "×")},
	{"P7 events", "events a CPU second to 1,000 readers of one turn", "bare net/http SSE", atLeast(0.9, "×"), atLeast(1.1, "×")},
	{"P8", "live turns at 30 tokens/s, token delay p99 ≤ 100 ms, 0 gaps, median of the measurements", "–", atLeast(1000, "turns"), atLeast(2000, "turns")},
	{"P9", "5,000 readers drop and resume at once: until the last has its next event", "the bare SSE server's own", atMost(2000, "ms"), atMost(1000, "ms")},
	{"P9 gaps", "the same, events that were missed", "–", atMost(0, ""), atMost(0, "")},
	{"P9 queries", "the same, database transactions a hundred resumes", "–", atMost(math.Inf(1), ""), atMost(2, "")},
	{"P10 token", "CPU a token around token 20,000 of a turn", "around token 100", atMost(1.1, "×"), atMost(1, "×")},
	{"P10 start", "a start in a conversation of 100,000 messages", "in an empty one", atMost(1.2, "×"), atMost(1, "×")},
	{"P10 first token", "the same, until the first token", "in an empty one", atMost(1.2, "×"), atMost(1, "×")},
	{"P10 memory", "live heap after 1,000,000 turns", "after 10,000", atMost(1.1, "×"), atMost(1, "×")},
	{"P14 bytes", "log bytes a token, kept of a finished turn of 500 tokens", "its text", atMost(60, "B"), atMost(20, "B")},
	{"P14 replay", "replay of that turn from its one row", "–", atMost(0.3, "ms"), atMost(0.15, "ms")},
	{"P15 serve", "start: `serve` to ready with its database there", "–", atMost(1000, "ms"), atMost(300, "ms")},
	{"P15 run", "`make run`, second time", "–", atMost(20_000, "ms"), atMost(5000, "ms")},
}

// figure is what a goal came to.
type figure struct {
	Goal           string
	Ours, Baseline samples
	Unit           string // of both
	Score          samples
	Note           string
}

// report gathers figures and tables.
type report struct {
	machine  machine
	took     time.Duration
	figures  []figure
	details  []detail
	failures []string
}

type detail struct {
	goal, title string
	table       *table
}

func (r *report) add(f figure) { r.figures = append(r.figures, f) }
func (r *report) detail(goal, title string, t *table) {
	r.details = append(r.details, detail{goal, title, t})
}

func (r *report) failed(goal string, err error) {
	r.failures = append(r.failures, fmt.Sprintf("%s was not measured: %v", goal, err))
}

// list is the table of goals.
func (r *report) list() *table {
	t := newTable("", "goal", "measured", "baseline", "score", "must", "aim", "")
	for _, g := range goals {
		i := slices.IndexFunc(r.figures, func(f figure) bool { return f.Goal == g.id })
		if i < 0 {
			continue
		}
		f := r.figures[i]
		baseline := "–"
		if len(f.Baseline) > 0 {
			baseline = g.baseline + ": " + show(f.Baseline, f.Unit)
		}
		what := g.what
		if f.Note != "" {
			what += " (" + f.Note + ")"
		}
		must := g.must.String()
		if math.IsInf(g.must.value, 0) {
			must = "–"
		}
		t.add(g.id, what, show(f.Ours, f.Unit), baseline, show(f.Score, g.must.unit), must, g.aim.String(), verdict(g, f.Score.median()))
	}
	return t
}

// excuse is why a "must" may be missed without an error, and up to which score.
type excuse struct {
	bound  float64
	reason string
}

// excuses are by goal. A bound is what was measured with some room for noise: a score beyond it is a regression.
var excuses = map[string]excuse{
	"P2 (a)": {3, "a token that is an event of its own costs Postgres 20 µs, as much as all of the proxy; " + slowPostgres},
	"P3 p50": {10, sharedProcessors + "; the stages of a start add up to it: session and limit 0.7 ms, the commit 2 ms, the model 0.8 ms, the commit of the first token 1.5 ms"},
	"P3 p99": {50, sharedProcessors},
	"P4":     {0.3, "a start takes 1.1 ms of the two processors: session, limit, key, stream, the model's connection and the load itself; pgbench, which has none of these, takes 0.5 ms"},
	"P4 p99": {300, "128 starts in flight at the rate of P4 wait for each other; see its rounds at a quarter of pgbench's rate"},
	"P8":     {500, sharedProcessors},
	"P10 first token": {4, "the model is sent up to 1,000 earlier messages, and each costs about 8 µs until it is there; " +
		"100 would meet the goal, and the model would forget what its context has room for"},
}

// excused is why a goal may have this score, if it may.
func (g goal) excused(score float64) (reason string, ok bool) {
	e, known := excuses[g.id]
	within := g.must
	within.value = e.bound
	return e.reason, known && within.met(score)
}

const (
	slowPostgres     = "Postgres alone reaches a third of the rate at which the goal was set"
	sharedProcessors = "two processors also carry the load, its model and Postgres, and " + slowPostgres
)

// unmet lists the goals that were measured and missed, and have no excuse. What could not be measured is a failure of its
// own.
func (r *report) unmet() (list []string) {
	for _, f := range r.figures {
		i := slices.IndexFunc(goals, func(g goal) bool { return g.id == f.Goal })
		if i < 0 || math.IsInf(goals[i].must.value, 0) || goals[i].must.met(f.Score.median()) {
			continue
		}
		if _, excused := goals[i].excused(f.Score.median()); !excused {
			list = append(list, fmt.Sprintf("%s: %s, must be %s", f.Goal, show(f.Score, goals[i].must.unit), goals[i].must))
		}
	}
	return list
}

func verdict(g goal, score float64) string {
	switch {
	case g.aim.met(score):
		return "aim met"
	case math.IsInf(g.must.value, 0):
		return "aim not met"
	case g.must.met(score):
		return "met"
	}
	if reason, ok := g.excused(score); ok {
		return "not met, excused: " + reason
	}
	return "**not met**"
}

// show is a median with its spread.
func show(s samples, of string) string {
	if len(s) == 0 {
		return "–"
	}
	text := number(s.median())
	if len(s) > 1 {
		text += " (" + number(s.least()) + "–" + number(s.most()) + ")"
	}
	return text + unit(of)
}

// number has three digits that mean something.
func number(v float64) string {
	magnitude := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "–"
	case v == math.Trunc(v) && magnitude < 1e6 || magnitude >= 100:
		return grouped(fmt.Sprintf("%.0f", v))
	case magnitude >= 10:
		return fmt.Sprintf("%.1f", v)
	case magnitude >= 0.1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// grouped puts commas between thousands.
func grouped(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// text is the report for a terminal.
func (r *report) text() string {
	var out strings.Builder
	for _, d := range r.details {
		fmt.Fprintf(&out, "\n%s: %s\n\n%s", d.goal, d.title, d.table.aligned())
	}
	fmt.Fprintf(&out, "\n%s", r.list().aligned())
	for _, failure := range r.failures {
		fmt.Fprintln(&out, failure)
	}
	return out.String()
}

// byHand separates what a run writes from what people add; that part is kept.
const byHand = "<!-- What follows is written by hand; make bench keeps it. -->"

// markdown is the document, with what was written by hand in the one before.
func (r *report) markdown(before []byte) []byte {
	var out bytes.Buffer
	out.WriteString("# Benchmarks\n\nWritten by `make bench`: every goal is a ratio against a baseline that ran beside it in the same run, on the same\n" +
		"machine, in turn with it. A figure is the median of its rounds with the least and the most in brackets. Absolute\n" +
		"figures say what one machine showed, with the load, the model, the database and the baselines on it as well.\n\n")
	out.WriteString(r.machine.markdown(r.took))
	out.WriteString("\n## Goals\n\n" + r.list().markdown())
	for _, failure := range r.failures {
		out.WriteString("\n" + failure + "\n")
	}
	out.WriteString("\n## What was seen\n")
	for _, d := range r.details {
		fmt.Fprintf(&out, "\n### %s: %s\n\n%s", d.goal, d.title, d.table.markdown())
	}
	out.WriteString(howMeasured)
	out.WriteString("\n" + byHand + "\n")
	if _, kept, found := bytes.Cut(before, []byte(byHand+"\n")); found {
		out.Write(kept)
	}
	return out.Bytes()
}

func (r *report) write(to string) error {
	before, err := os.ReadFile(to)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, r.markdown(before), 0o644)
}

// table is rows of cells under a head.
type table struct{ rows [][]string }

func newTable(head ...string) *table { return &table{rows: [][]string{head}} }

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		switch v := cell.(type) {
		case float64:
			row[i] = number(v)
		default:
			row[i] = fmt.Sprint(v)
		}
	}
	t.rows = append(t.rows, row)
}

// last is the newest row with its heads, for whoever waits.
func (t *table) last() string {
	var parts []string
	for i, cell := range t.rows[len(t.rows)-1] {
		parts = append(parts, strings.TrimSpace(t.rows[0][i]+" "+cell))
	}
	return strings.Join(parts, ", ")
}

func (t *table) markdown() string {
	var out strings.Builder
	for i, row := range t.rows {
		out.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			out.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return out.String()
}

func (t *table) aligned() string {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var out strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			out.WriteString(cell + strings.Repeat(" ", widths[i]-len([]rune(cell))+2))
		}
		out.WriteString("\n")
	}
	return out.String()
}
