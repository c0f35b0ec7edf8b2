package machine

import (
	"fmt"
	"slices"
	"strings"

	"turnstone/protocol"
	"turnstone/protocol/clip"
	"turnstone/protocol/foreign"
)

// question is a question of the plan.
type question struct {
	protocol.ResearchStep
	round   int // in which it is searched; 0: not yet
	section string
}

// next returns the state that a trigger leads to. One that the table does not have is a defect of the machine.
func (q *question) next(trigger protocol.ResearchStepTrigger) protocol.ResearchStepState {
	to, legal := protocol.NextResearchStepState(q.State, trigger)
	if !legal {
		panic(fmt.Sprintf("research: no transition %s from %s of a question", trigger, q.State))
	}
	return to
}

// changeQuestion makes a transition of a question of the plan, with its event.
func (b *Batch) changeQuestion(q *question, trigger protocol.ResearchStepTrigger) {
	q.State = q.next(trigger)
	b.task.Plan = slices.Clone(b.task.Plan) // events contain the former one
	for i := range b.task.Plan {
		if b.task.Plan[i].StepID == q.StepID {
			b.task.Plan[i].State = q.State
		}
	}
	b.emit(&protocol.ResearchStepChanged{StepID: q.StepID, State: q.State})
}

// planned returns a text as a question of the plan.
func planned(text string) string { return clip.Ellipsis(foreign.OneLine(text), maxQuestion) }

// asks reports whether the plan has a question, also a struck one.
func (m *Machine) asks(text string) bool {
	return slices.ContainsFunc(m.questions, func(q *question) bool { return strings.EqualFold(q.Question, text) })
}

// has reports whether the plan has a question.
func (m *Machine) has(id string) bool {
	return slices.ContainsFunc(m.questions, func(q *question) bool { return q.StepID == id })
}

// in returns the questions in a state.
func (m *Machine) in(state protocol.ResearchStepState) (found []*question) {
	for _, q := range m.questions {
		if q.State == state {
			found = append(found, q)
		}
	}
	return found
}

// texts returns the questions of the plan.
func (m *Machine) texts() []string {
	all := make([]string, len(m.questions))
	for i, q := range m.questions {
		all[i] = q.Question
	}
	return all
}

func (m *Machine) questionOf(text string) *question {
	for _, q := range m.questions {
		if q.Question == text {
			return q
		}
	}
	panic("research: no such question")
}

func texts(questions []*question) []string {
	all := make([]string, len(questions))
	for i, q := range questions {
		all[i] = q.Question
	}
	return all
}
