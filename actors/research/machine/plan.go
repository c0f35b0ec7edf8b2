package machine

import (
	"fmt"
	"slices"

	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// addPlanStep adds the first step.
func (b *Batch) addPlanStep() {
	b.add(researchlog.Step{Key: "plan", Kind: researchlog.StepPlan, Asked: b.spec.Question, Inputs: b.applyInputs("plan"), Limit: b.limits.questions, Tokens: planTokens})
}

// planned uses the plan of a model.
func (b *Batch) planned(s *step) {
	if s.result.Failed != "" {
		code := protocol.ResearchModelFailed
		if s.result.DailyLimit {
			code = protocol.ResearchDailyLimit
		}
		b.end(protocol.ResearchFails, &protocol.ResearchFailure{Code: code, Detail: s.result.Failed})
		return
	}
	if !b.addQuestions(s.result.Questions, b.limits.questions) && len(b.questions) == 0 {
		b.addQuestions([]string{b.spec.Question}, 1)
	}
	b.publishPlan()
}

// addQuestions adds at most limit questions to the plan. It reports whether it has added one.
func (b *Batch) addQuestions(texts []string, limit int) bool {
	added := 0
	for _, text := range texts {
		if text = planned(text); text == "" || b.asks(text) || added == limit || len(b.questions) == protocol.MaxResearchPlan {
			continue
		}
		added++
		b.questions = append(b.questions, &question{ResearchStep: protocol.ResearchStep{
			StepID: fmt.Sprintf("q%d", len(b.questions)+1), Question: text, State: protocol.ResearchStepOpen,
		}})
	}
	return added > 0
}

// publishPlan reports the whole plan.
func (b *Batch) publishPlan() {
	b.task.Plan = make([]protocol.ResearchStep, len(b.questions))
	for i, q := range b.questions {
		b.task.Plan[i] = q.ResearchStep
	}
	b.emit(&protocol.ResearchPlanned{Plan: b.task.Plan})
}

// strike strikes a question that was not searched to the end.
func (b *Batch) strike(id string) {
	for _, q := range b.questions {
		if q.StepID == id && !q.State.Terminal() {
			b.changeQuestion(q, protocol.ResearchStepStrikes)
			b.drop(func(s *step) bool {
				return s.Kind == researchlog.StepSearch && slices.Equal(s.About, []string{q.Question})
			})
		}
	}
}

func (b *Batch) applySteering(command *researchlog.Steering) {
	b.emit(&protocol.ResearchSteered{SteeringID: command.SteeringID, Outcome: protocol.ResearchAccepted, Kind: command.Kind, Text: command.Text})
	b.received[command.ClientID] = receipt{protocol.ResearchReceipt{
		SteeringID: command.SteeringID, TaskID: b.spec.TaskID, State: "accepted", Sequence: b.sequence,
	}, command.Digest}
	in := &input{Steering: command}
	b.inputs = append(b.inputs, in)
	switch command.Kind {
	case protocol.ResearchWriteNow:
		if b.task.Phase != protocol.ResearchPlanning { // otherwise it waits until something was read
			b.writeNow()
			b.drop(func(*step) bool { return true })
		}
	case protocol.ResearchPlan:
		for _, id := range command.Strike {
			b.strike(id)
		}
		if b.addQuestions(command.Add, protocol.MaxResearchPlan) {
			b.publishPlan()
		}
		b.applied(in, nil)
	}
}

// revise adds a step that changes the plan as the inputs that wait demand. It reports whether one is needed.
func (b *Batch) revise() bool {
	if b.waiting() == 0 || !b.allOver(researchlog.StepRevise) || !b.canGather(planTokens) {
		return false
	}
	key := fmt.Sprintf("revise-%d", 1+b.count(researchlog.StepRevise))
	b.add(researchlog.Step{
		Key: key, Kind: researchlog.StepRevise, Asked: b.spec.Question, About: b.texts(), Inputs: b.applyInputs(key),
		Limit: b.limits.questions, Tokens: planTokens,
	})
	return true
}

func (m *Machine) count(kind researchlog.StepKind) (n int) {
	for _, s := range m.steps {
		if s.Kind == kind {
			n++
		}
	}
	return n
}

// revised uses the changes of a model. Without them, the plan stays as it is.
func (b *Batch) revised(s *step) {
	if b.addQuestions(s.result.Questions, b.limits.questions) {
		b.publishPlan()
	}
	for _, i := range s.result.Struck {
		if i >= 0 && i < len(s.About) && len(b.in(protocol.ResearchStepStruck)) < len(b.questions)-1 {
			b.strike(b.questions[i].StepID)
		}
	}
}
