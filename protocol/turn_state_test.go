package protocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// machine is a transition table of protocol with the functions that the tests check against it.
type machine struct {
	name     string
	initial  string
	states   []string
	table    []Transition[string, string]
	terminal func(string) bool
	next     func(from, trigger string) (string, bool)
	erased   string // the state from which a purge erases it; empty: it keeps its terminal state
}

func machineOf[S, T ~string](name string, initial S, states []S, table []Transition[S, T], terminal func(S) bool, next func(S, T) (S, bool)) machine {
	m := machine{
		name: name, initial: string(initial),
		terminal: func(s string) bool { return terminal(S(s)) },
		next: func(from, trigger string) (string, bool) {
			to, ok := next(S(from), T(trigger))
			return string(to), ok
		},
	}
	for _, s := range states {
		m.states = append(m.states, string(s))
	}
	for _, t := range table {
		m.table = append(m.table, Transition[string, string]{string(t.From), string(t.Trigger), string(t.To)})
	}
	return m
}

// nextOf is next of a table that no state machine below actors uses.
func nextOf[S, T ~string](table []Transition[S, T]) func(S, T) (S, bool) {
	return func(from S, trigger T) (S, bool) { return next(table, from, trigger) }
}

func machines() []machine {
	projects := machineOf("project", ProjectActive, ProjectStates, ProjectTransitions, func(ProjectState) bool { return false }, NextProjectState)
	projects.erased = string(ProjectDeleted)
	accounts := machineOf("account", AccountActive, AccountStates, AccountTransitions, func(AccountState) bool { return false }, nextOf(AccountTransitions))
	accounts.erased = string(AccountErasing)
	return []machine{
		machineOf("turn", TurnQueued, TurnStates, TurnTransitions, TurnState.Terminal, NextTurnState),
		machineOf("tool call", ToolPending, ToolStates, ToolTransitions, ToolState.Terminal, NextToolState),
		machineOf("follow-up", FollowUpQueued, FollowUpStates, FollowUpTransitions, FollowUpState.Terminal, nextOf(FollowUpTransitions)),
		machineOf("steering input", InputPending, InputStates, InputTransitions, func(s InputState) bool { return s != InputPending }, NextInputState),
		machineOf("approval", ApprovalPending, ApprovalStates, ApprovalTransitions, func(s ApprovalState) bool { return s != ApprovalPending }, nextOf(ApprovalTransitions)),
		machineOf("file upload", UploadPending, UploadStates, UploadTransitions, UploadState.Terminal, NextUploadState),
		machineOf("research task", ResearchQueued, ResearchStates, ResearchTransitions, ResearchState.Terminal, NextResearchState),
		machineOf("running research task", ResearchPlanning, ResearchPhases, ResearchPhaseTransitions, func(p ResearchPhase) bool { return p == ResearchSynthesizing }, NextResearchPhase),
		machineOf("question of a research task", ResearchStepOpen, ResearchStepStates, ResearchStepTransitions, ResearchStepState.Terminal, NextResearchStepState),
		machineOf("source of a research task", SourceFound, ResearchSourceStates, ResearchSourceTransitions, ResearchSourceState.Terminal, NextResearchSourceState),
		machineOf("import", ImportReceiving, ImportStates, ImportTransitions, ImportState.Terminal, nextOf(ImportTransitions)),
		machineOf("file text", TextPending, TextStates, TextTransitions, func(s TextState) bool { return s != TextPending }, nextOf(TextTransitions)),
		projects,
		accounts,
		machineOf("node", NodeRunning, NodeStates, NodeTransitions, func(s NodeState) bool { return s == NodeDead }, nextOf(NodeTransitions)),
	}
}

func (m machine) triggers() []string {
	var list []string
	for _, t := range m.table {
		if !slices.Contains(list, t.Trigger) {
			list = append(list, t.Trigger)
		}
	}
	return list
}

// TestEveryStateAndEveryTriggerIsDecidedByTheTable checks every combination of state and trigger, including unknown
// states and unknown triggers.
func TestEveryStateAndEveryTriggerIsDecidedByTheTable(t *testing.T) {
	for _, m := range machines() {
		legal := map[[2]string]string{}
		for _, row := range m.table {
			key := [2]string{row.From, row.Trigger}
			if to, twice := legal[key]; twice {
				t.Errorf("%s: %s in %s leads to %s and to %s", m.name, row.Trigger, row.From, to, row.To)
			}
			legal[key] = row.To
			for _, state := range []string{row.From, row.To} {
				if !slices.Contains(m.states, state) {
					t.Errorf("%s: the state %q of the table is not in the list of states", m.name, state)
				}
			}
		}
		for _, from := range append(m.states, "", "unknown") {
			for _, trigger := range append(m.triggers(), "", "unknown") {
				to, ok := m.next(from, trigger)
				want, isLegal := legal[[2]string{from, trigger}]
				if ok != isLegal || to != want {
					t.Errorf("%s: %s in %s leads to %q, %v; the table says %q, %v", m.name, trigger, from, to, ok, want, isLegal)
				}
			}
		}
	}
}

func TestNothingLeavesATerminalStateAndEverythingReachesOne(t *testing.T) {
	for _, m := range machines() {
		reach := m.reachable(m.initial)
		for _, state := range m.states {
			if !reach[state] {
				t.Errorf("%s: %s is not reachable from the initial state", m.name, state)
			}
			onward := m.reachable(state)
			if m.terminal(state) && len(onward) > 1 {
				t.Errorf("%s: %s is terminal and leads to %v", m.name, state, onward)
			}
			if !slices.ContainsFunc(m.states, func(s string) bool { return onward[s] && (m.terminal(s) || s == m.erased) }) {
				t.Errorf("%s: no terminal state is reachable from %s", m.name, state)
			}
		}
	}
}

func (m machine) reachable(from string) map[string]bool {
	seen := map[string]bool{from: true}
	for grown := true; grown; {
		grown = false
		for _, row := range m.table {
			if seen[row.From] && !seen[row.To] {
				seen[row.To], grown = true, true
			}
		}
	}
	return seen
}

// TestEveryLiveTurnCanBeCancelledAndTakenOver checks that a cancel and a takeover after a crash are legal in every live
// state.
func TestEveryLiveTurnCanBeCancelledAndTakenOver(t *testing.T) {
	for _, state := range TurnStates {
		if state.Terminal() {
			continue
		}
		if _, ok := NextTurnState(state, "adopt"); !ok {
			t.Errorf("a turn that is %s cannot be adopted", state)
		}
		if to, ok := NextTurnState(state, "cancel"); state != TurnCancelling && (!ok || to != TurnCancelling) {
			t.Errorf("cancelling a turn that is %s leads to %q", state, to)
		}
	}
}

func TestAnApprovalIsDecidedOnceAndByAKnownDecision(t *testing.T) {
	decisions := []Decision{"", "approve_always"}
	for _, row := range ApprovalTransitions {
		decisions = append(decisions, row.Trigger)
	}
	for _, from := range ApprovalStates {
		for _, d := range decisions {
			a := Approval{State: from}
			err := a.Decide(d, nil)
			want, legal := next(ApprovalTransitions, from, d)
			switch {
			case legal && (err != nil || a.State != want || *a.Decision != d):
				t.Errorf("%s, %s: %s, %v", from, d, a.State, err)
			case !legal && (err == nil || a.State != from || a.Decision != nil):
				t.Errorf("%s, %q: %+v, %v", from, d, a, err)
			}
		}
	}
}

func TestOnlyTheFourLiveStatesOfTheContractAcceptSteering(t *testing.T) {
	var accepting []TurnState
	for _, state := range TurnStates {
		if state.AcceptsSteering() {
			accepting = append(accepting, state)
		}
	}
	if want := []TurnState{TurnQueued, TurnRunning, TurnRequiresAction, TurnRecovering}; !slices.Equal(accepting, want) {
		t.Errorf("steering is accepted in %v; want %v", accepting, want)
	}
}

// TestTheStatesPageIsPrintedFromTheTables compares docs/states.md with the tables. The page is never edited by hand.
func TestTheStatesPageIsPrintedFromTheTables(t *testing.T) {
	var page strings.Builder
	page.WriteString("# States\n\n" +
		"`go test ./protocol -update` prints this page from the tables of transitions in `protocol`, and a test compares the two.\n" +
		"A transition that is not in a table is refused. The CHECK constraints of the schema allow the same states;\n" +
		"those of questions and of sources have no column, and those of accounts and nodes follow from times and flags.\n")
	for _, m := range machines() {
		m.print(&page)
	}
	golden(t, "../docs/states.md", []byte(page.String()))
}

func (m machine) print(page *strings.Builder) {
	article := "a"
	if strings.Contains("aeio", m.name[:1]) {
		article = "an"
	}
	fmt.Fprintf(page, "\n## The states of %s %s\n\n```mermaid\nstateDiagram-v2\n    [*] --> %s\n", article, m.name, m.initial)
	for _, row := range m.table {
		fmt.Fprintf(page, "    %s --> %s: %s\n", row.From, row.To, row.Trigger)
	}
	for _, state := range m.states {
		if m.terminal(state) {
			fmt.Fprintf(page, "    %s --> [*]\n", state)
		}
	}
	if m.erased != "" {
		fmt.Fprintf(page, "    %s --> [*]: purge\n", m.erased)
	}
	page.WriteString("```\n\n| in | " + strings.Join(m.triggers(), " | ") + " |\n|---" + strings.Repeat("|---", len(m.triggers())) + "|\n")
	for _, from := range m.states {
		if m.terminal(from) {
			continue
		}
		fmt.Fprintf(page, "| `%s`", from)
		for _, trigger := range m.triggers() {
			to, _ := m.next(from, trigger)
			fmt.Fprintf(page, " | %s", to)
		}
		page.WriteString(" |\n")
	}
	var ends []string
	for _, state := range m.states {
		if m.terminal(state) {
			ends = append(ends, "`"+state+"`")
		}
	}
	if m.erased != "" {
		fmt.Fprintf(page, "\nTerminal: none. A purge erases one that is `%s`.\n", m.erased)
		return
	}
	fmt.Fprintf(page, "\nTerminal: %s.\n", strings.Join(ends, ", "))
}
