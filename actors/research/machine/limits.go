package machine

import "turnstone/protocol"

// bounds bound what a task of a depth does.
type bounds struct {
	questions  int // of the first plan
	rounds     int // of searching and reading
	followUps  int // questions that one round adds
	candidates int // of one search
	pages      int // read in one round
	quotes     int // kept of one source
}

var depths = map[protocol.ResearchDepth]bounds{
	protocol.ResearchQuick:    {questions: 3, rounds: 1, followUps: 0, candidates: 6, pages: 8, quotes: 3},
	protocol.ResearchStandard: {questions: 6, rounds: 2, followUps: 3, candidates: 8, pages: 24, quotes: 4},
	protocol.ResearchDeep:     {questions: 10, rounds: 3, followUps: 4, candidates: 12, pages: 60, quotes: 5},
}

// The tokens that a call of a model may use, with its input. A call that the budget does not allow is not made.
const (
	planTokens      = 2_000
	judgeTokens     = 5_000
	gapsTokens      = 8_000
	writeTokens     = 12_000
	summarizeTokens = 12_000
	leastTokens     = 1_000 // less is not worth a call

	// leastBudget lets a model write a plan, judge a source and write a section.
	leastBudget = 12_000
)

const (
	maxSectionQuotes = 24                       // that one section is written from
	maxQuestion      = protocol.MaxResearchStep // characters of a question of the plan
	maxSection       = 20_000                   // bytes
	maxTitle         = 120                      // characters of the title of a report
	maxConflicts     = 12                       // that a report names
)

// gatherShare is the part of the budget of tokens that may be spent before the report is written, in percent.
const gatherShare = 70

// canGather reports whether the budget allows a further call of a model before the report is written.
func (m *Machine) canGather(tokens int64) bool {
	return m.task.Spent.Tokens+tokens <= m.task.Budget.Tokens*gatherShare/100
}

// writable returns the tokens that a call for the report may use; 0: none is made.
func (m *Machine) writable(tokens int64, calls int) int64 {
	left := (m.task.Budget.Tokens - m.task.Spent.Tokens) / int64(max(1, calls))
	if left < leastTokens || m.stopped || m.failing != "" {
		return 0
	}
	return min(tokens, left)
}
