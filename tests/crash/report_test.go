package crash

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"turnstone/protocol"
)

// result is the published result of a run.
type result struct {
	root string

	Command      string         `json:"command"`
	Date         string         `json:"date"`
	Commit       string         `json:"commit"`
	Seed         uint64         `json:"seed"`
	Seconds      float64        `json:"seconds"`
	Rounds       int            `json:"rounds"`
	FaultsTotal  int            `json:"faults"`
	PerSecond    float64        `json:"faults_per_second"`
	Faults       map[string]int `json:"faults_by_kind"`
	Requests     int            `json:"requests"`
	Acknowledged int            `json:"acknowledged_writes"`
	Turns        int            `json:"turns"`
	Adopted      int            `json:"turns_taken_over"`
	Queues       int            `json:"queues_drained"`
	QueueItems   int            `json:"queued_items"`
	QueueFaults  int            `json:"faults_while_queues_drain"`
	Events       int            `json:"events_stored"`
	EventsRead   int            `json:"events_read"`
	Effects      int            `json:"tool_effects"`
	Decided      int            `json:"approvals_decided"`
	Tasks        int            `json:"research_tasks"`
	Shares       int            `json:"shares"`
	Files        int            `json:"files"`
	Imports      int            `json:"imports"`
	Branches     int            `json:"branches_and_forks"`
	Erased       int            `json:"accounts_erased"`
	TasksAdopted int            `json:"research_tasks_taken_over"`
	TasksStopped int            `json:"research_tasks_cancelled"`
	Lost         int            `json:"lost"`
	Gaps         int            `json:"gaps"`
	ChangedBytes int            `json:"changed_bytes"`
	DoubleEnds   int            `json:"double_terminals"`
	NotDurable   int            `json:"seen_not_durable"`
	Doubled      int            `json:"doubled_effects"`
	Others       int            `json:"other_violations"`
	CommitsFound int            `json:"unknown_commits_resolved"`
	CommitsRight int            `json:"unknown_commits_resolved_right"`
	CommitsPast  int            `json:"unknown_commits_past_a_crash"` // found aborted, but no longer comparable because Postgres crashed
	CommitsOpen  int            `json:"unknown_commits_said_to_be_unknown"`
	Histories    int            `json:"histories_checked"`
	HistorySteps int            `json:"history_operations"`
	Illegal      int            `json:"histories_illegal"`
	Undecided    int            `json:"histories_undecided"`
	Rest         float64        `json:"longest_rest_seconds"` // longest time from the last fault until everything had ended
	Takeovers    spread         `json:"takeover_ms"`
	Recoveries   spread         `json:"recovery_ms"`

	recoveries []time.Duration
}

// spread summarizes durations in milliseconds.
type spread struct {
	Count int `json:"count"`
	P50   int `json:"p50"`
	P99   int `json:"p99"`
	Max   int `json:"max"`
}

func spreadOf(times []time.Duration) spread {
	if len(times) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(times))
	at := func(q float64) int { return int(sorted[int(q*float64(len(sorted)-1))].Milliseconds()) }
	return spread{len(sorted), at(0.5), at(0.99), at(1)}
}

// count adds the figures of a round.
func (r *result) count(faults []fault, operations []operation, reads int) {
	for _, f := range faults {
		r.Faults[f.Kind]++
		r.FaultsTotal++
	}
	r.Requests += len(operations)
	r.EventsRead += reads
	for _, o := range operations {
		if o.acknowledged() && !o.reads() {
			r.Acknowledged++
		}
		if !o.acknowledged() || o.Replayed {
			continue
		}
		switch o.Kind {
		case opDecide:
			r.Decided++
		case opShare:
			r.Shares++
		case opFile:
			r.Files++
		case opImport:
			r.Imports++
		case opBranch, opFork:
			r.Branches++
		case opErase:
			r.Erased++
		}
	}
	r.recover(faults, operations)
}

// interrupting lists the faults that interrupt the service.
var interrupting = []string{
	"kill -9", "SIGTERM, then a start", "SIGTERM while a successor runs", "SIGSTOP until taken over, SIGCONT", "Postgres stopped at once",
}

// recover measures the time from each interruption to the end of the next acknowledged write that was sent after it.
func (r *result) recover(faults []fault, operations []operation) {
	for _, f := range faults {
		if !slices.Contains(interrupting, f.Kind) {
			continue
		}
		best := time.Duration(-1)
		for _, o := range operations {
			if o.acknowledged() && !o.reads() && o.Began > f.At && (best < 0 || o.Ended < best) {
				best = o.Ended
			}
		}
		if best >= 0 {
			r.recoveries = append(r.recoveries, best-f.At)
		}
	}
}

func (r *result) store(stored *snapshot, effects []string) {
	r.Effects += len(effects)
	for _, turn := range stored.Turns {
		r.Turns++
		r.Events += int(turn.Next - 1)
		if turn.Epoch > 1 {
			r.Adopted++
		}
	}
	for _, task := range stored.Tasks {
		r.Tasks++
		if task.Adopted {
			r.TasksAdopted++
		}
		if task.State == protocol.ResearchCancelled {
			r.TasksStopped++
		}
	}
}

func (r *result) resolved(right bool) {
	r.CommitsFound++
	if right {
		r.CommitsRight++
	}
}

func (r *result) fill(a *run) {
	r.Date, r.Seed = time.Now().UTC().Format(time.DateOnly), a.seed
	commit, _ := exec.Command("git", "-C", r.root, "rev-parse", "--short=12", "HEAD").Output() // outside a clone it is empty
	r.Commit = strings.TrimSpace(string(commit))
	r.Command = fmt.Sprintf("make crash CRASH_FOR=%s SEED=%d", *crashFor, a.seed)
	if r.Seconds > 0 {
		r.PerSecond = float64(int(10*float64(r.FaultsTotal)/r.Seconds)) / 10
	}
	for kind, into := range map[string]*int{
		lost: &r.Lost, gaps: &r.Gaps, changedBytes: &r.ChangedBytes, doubleTerminal: &r.DoubleEnds, notDurable: &r.NotDurable,
		doubledEffects: &r.Doubled, illegalHistory: &r.Illegal,
	} {
		*into = a.notes.count(kind)
	}
	named := []string{lost, gaps, changedBytes, doubleTerminal, notDurable, doubledEffects, illegalHistory}
	for _, kind := range a.notes.kinds() {
		if !slices.Contains(named, kind) {
			r.Others += a.notes.count(kind)
		}
	}
	a.notes.mu.Lock()
	defer a.notes.mu.Unlock()
	r.CommitsOpen = a.notes.unresolved
	v := a.notes.histories
	r.Histories, r.HistorySteps, r.Undecided = v.histories, v.operations, v.undecided
	r.Takeovers, r.Recoveries = spreadOf(a.notes.takeovers), spreadOf(r.recoveries)
}

// rows returns the human-readable table.
func (r *result) rows() [][2]string {
	number := func(n int) string { return fmt.Sprint(n) }
	times := func(s spread) string {
		return fmt.Sprintf("p50 %d ms, p99 %d ms, longest %d ms (%d)", s.P50, s.P99, s.Max, s.Count)
	}
	rows := [][2]string{
		{"faults", fmt.Sprintf("%d in %.0f s, %.1f a second", r.FaultsTotal, r.Seconds, r.PerSecond)},
		{"requests; writes acknowledged", fmt.Sprintf("%d; %d", r.Requests, r.Acknowledged)},
		{"turns; taken over at least once", fmt.Sprintf("%d; %d", r.Turns, r.Adopted)},
		{"queues drained; their items; faults meanwhile", fmt.Sprintf("%d; %d; %d", r.Queues, r.QueueItems, r.QueueFaults)},
		{"events stored; read by clients", fmt.Sprintf("%d; %d", r.Events, r.EventsRead)},
		{"approvals decided; effects of the tools", fmt.Sprintf("%d; %d", r.Decided, r.Effects)},
		{"research tasks; taken over at least once; cancelled", fmt.Sprintf("%d; %d; %d", r.Tasks, r.TasksAdopted, r.TasksStopped)},
		{"shares; files", fmt.Sprintf("%d; %d", r.Shares, r.Files)},
		{"imports; branches and forks; accounts erased", fmt.Sprintf("%d; %d; %d", r.Imports, r.Branches, r.Erased)},
		{"**lost**", number(r.Lost)},
		{"**gaps**", number(r.Gaps)},
		{"**changed bytes**", number(r.ChangedBytes)},
		{"**double terminals**", number(r.DoubleEnds)},
		{"**seen, not durable**", number(r.NotDurable)},
		{"**doubled effects**", number(r.Doubled)},
		{"other violations", number(r.Others)},
		{"unknown commits resolved right", fmt.Sprintf("%d of %d", r.CommitsRight, r.CommitsFound)},
		{"found aborted, and Postgres crashed before that could be compared", number(r.CommitsPast)},
		{"commits reported as unknown", number(r.CommitsOpen)},
		{"histories checked by porcupine; illegal; not decided", fmt.Sprintf("%d (%d operations); %d; %d", r.Histories, r.HistorySteps, r.Illegal, r.Undecided)},
		{"from a fault to the first turn taken over", times(r.Takeovers)},
		{"from an interruption to the next acknowledged write", times(r.Recoveries)},
		{"longest time to rest after the last fault", fmt.Sprintf("%.1f s", r.Rest)},
	}
	return rows
}

func (r *result) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s at %s\n", r.Command, r.Commit)
	for _, row := range r.rows() {
		fmt.Fprintf(&out, "  %-68s %s\n", strings.Trim(row[0], "*"), row[1])
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(&out, "    %-66s %d\n", kind, r.Faults[kind])
	}
	return out.String()
}

// The marks in docs/reliability.md that enclose the table.
const (
	tableBegins = "<!-- made by make crash: begin -->\n"
	tableEnds   = "<!-- made by make crash: end -->\n"
)

func (r *result) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "`%s`, commit %s, %s:\n\n| | |\n|---|---|\n", r.Command, r.Commit, r.Date)
	for _, row := range r.rows() {
		fmt.Fprintf(&out, "| %s | %s |\n", row[0], row[1])
	}
	out.WriteString("\n| fault | how often |\n|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(&out, "| %s | %d |\n", kind, r.Faults[kind])
	}
	return out.String()
}

// publish writes reliability.json and the table in docs/reliability.md.
func (r *result) publish() error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.root, "reliability.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	path := filepath.Join(r.root, "docs", "reliability.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(page), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no marks for the table", path)
	}
	return os.WriteFile(path, []byte(before+tableBegins+r.table()+tableEnds+after), 0o644)
}
