package machine

import (
	"fmt"
	"slices"
	"strings"

	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/researchlog"
	"turnstone/protocol/turnlog"
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

// planned returns a text as a question of the plan.
func planned(text string) string { return clip(foreign.OneLine(text), maxQuestion) }

// asks reports whether the plan has a question, also a struck one.
func (m *Machine) asks(text string) bool {
	return slices.ContainsFunc(m.questions, func(q *question) bool { return strings.EqualFold(q.Question, text) })
}

// clip cuts a text after a number of characters.
func clip(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return strings.TrimSpace(string(runes[:limit-1])) + "…"
	}
	return text
}

// publishPlan reports the whole plan.
func (b *Batch) publishPlan() {
	b.task.Plan = make([]protocol.ResearchStep, len(b.questions))
	for i, q := range b.questions {
		b.task.Plan[i] = q.ResearchStep
	}
	b.emit(&protocol.ResearchPlanned{Plan: b.task.Plan})
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

// has reports whether the plan has a question.
func (m *Machine) has(id string) bool {
	return slices.ContainsFunc(m.questions, func(q *question) bool { return q.StepID == id })
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

// open returns the questions in a state.
func (m *Machine) in(state protocol.ResearchStepState) (found []*question) {
	for _, q := range m.questions {
		if q.State == state {
			found = append(found, q)
		}
	}
	return found
}

// Steer accepts a command of the user. It returns the receipt; protocol.CodeSteeringClosed once the report is being written,
// and the first receipt for a repeated command.
func (b *Batch) Steer(command *researchlog.Steering) (*protocol.ResearchReceipt, error) {
	if earlier, known := b.received[command.ClientID]; known {
		if earlier.digest != command.Digest {
			return nil, protocol.Invalid("body.client_steering_id", "was sent before with another command")
		}
		receipt := earlier.ResearchReceipt
		receipt.Replayed = true
		return &receipt, nil
	}
	switch waiting := b.waiting(); {
	case b.task.State != protocol.ResearchQueued && b.task.State != protocol.ResearchRunning, b.task.Phase == protocol.ResearchSynthesizing, b.hurry:
		return nil, errSteeringClosed(&b.task)
	case command.Kind == protocol.ResearchWriteNow && b.task.Phase == protocol.ResearchPlanning && b.writeWaits():
		current := b.task
		return nil, protocol.Conflict(protocol.CodeConflict, &current, "The report was already requested. It is written after the first search.")
	case command.Kind == protocol.ResearchInput && waiting >= protocol.MaxResearchInputs:
		return nil, &protocol.Error{Code: protocol.CodeTooManyInputs, RetryAfter: 5, Detail: fmt.Sprintf("At most %d inputs can wait to be taken into account.", protocol.MaxResearchInputs)}
	case slices.ContainsFunc(command.Strike, func(id string) bool { return !b.has(id) }):
		return nil, protocol.Invalid("body.strike", "names a question that is not in the plan")
	case command.Kind == protocol.ResearchPlan:
		if err := b.checkPlan(command); err != nil {
			return nil, err
		}
	}
	b.enact(researchlog.Entry{Kind: researchlog.EntrySteering, Steering: command})
	receipt := b.received[command.ClientID].ResearchReceipt
	return &receipt, nil
}

// checkPlan returns an error if a change of the plan has no room for all that it adds, or leaves nothing to search.
func (b *Batch) checkPlan(command *researchlog.Steering) error {
	added := 0
	for i, text := range command.Add {
		text = planned(text)
		if text != "" && !b.asks(text) && !slices.ContainsFunc(command.Add[:i], func(other string) bool { return strings.EqualFold(planned(other), text) }) {
			added++
		}
	}
	if room := protocol.MaxResearchPlan - len(b.questions); added > room {
		return protocol.Invalid("body.add", fmt.Sprintf("adds %d questions, and the plan has room for %d: it can have %d, with those that were struck", added, room, protocol.MaxResearchPlan))
	}
	left := slices.ContainsFunc(b.questions, func(q *question) bool {
		return q.State == protocol.ResearchStepDone || q.State != protocol.ResearchStepStruck && !slices.Contains(command.Strike, q.StepID)
	})
	if len(command.Strike) > 0 && added == 0 && !left {
		return protocol.Invalid("body.strike", "leaves no question in the plan. Add one, or cancel the task")
	}
	return nil
}

func errSteeringClosed(task *protocol.ResearchTask) error {
	detail := "The task has ended, and cannot be steered any more."
	if !task.State.Terminal() {
		detail = "The report is being written, so the task cannot be steered any more."
	}
	current := *task
	return protocol.Conflict(protocol.CodeSteeringClosed, &current, detail)
}

// waiting returns the number of inputs that no step takes into account yet.
func (m *Machine) waiting() (n int) {
	for _, in := range m.inputs {
		if in.Kind == protocol.ResearchInput && !in.applied {
			n++
		}
	}
	return n
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

// writeWaits reports whether the user wants the report as soon as there is something to write.
func (m *Machine) writeWaits() bool {
	return slices.ContainsFunc(m.inputs, func(in *input) bool { return in.Kind == protocol.ResearchWriteNow && !in.applied })
}

// writeNow ends the search, because the user wants the report.
func (b *Batch) writeNow() {
	b.hurry = true
	for _, in := range b.inputs {
		if in.Kind == protocol.ResearchWriteNow && !in.applied {
			b.applied(in, nil)
		}
	}
}

func (b *Batch) applied(in *input, step *string) {
	in.applied = true
	b.emit(&protocol.ResearchSteered{SteeringID: in.SteeringID, Outcome: protocol.ResearchApplied, Kind: in.Kind, Text: in.Text, StepID: step})
}

// applyInputs notes that a step takes all inputs so far into account, and returns them.
func (b *Batch) applyInputs(key string) (texts []string) {
	for _, in := range b.inputs {
		if in.Kind != protocol.ResearchInput {
			continue
		}
		texts = append(texts, in.Text)
		if !in.applied {
			b.applied(in, &key)
		}
	}
	return texts
}

// returnInputs reports the commands that were not applied. Their texts become held follow-ups.
func (b *Batch) returnInputs() {
	for i, in := range b.inputs {
		if in.applied {
			continue
		}
		in.applied = true
		returned := &protocol.ResearchSteered{SteeringID: in.SteeringID, Outcome: protocol.ResearchReturned, Kind: in.Kind, Text: in.Text}
		if in.Kind == protocol.ResearchInput {
			id := protocol.DeriveTaskFollowUpID(b.spec.TaskID, i+1)
			returned.FollowUpID = &id
			b.returned = append(b.returned, turnlog.ReturnedInput{FollowUpID: id, Text: in.Text})
		}
		b.emit(returned)
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

// texts returns the questions of the plan.
func (m *Machine) texts() []string {
	all := make([]string, len(m.questions))
	for i, q := range m.questions {
		all[i] = q.Question
	}
	return all
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
