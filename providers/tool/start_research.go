package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"turnstone/actors/policy"
	"turnstone/actors/research"
	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/researchlog"
)

//go:embed start_research.md
var startResearchDescription string

// Research starts research tasks. Find reads a task. Create stores a task; of two with the same identifier, it stores the first one
// and returns it. CanCreate returns the error that Create would return.
type Research struct {
	Admission *research.Admission
	Find      func(ctx context.Context, account protocol.AccountID, id protocol.TaskID) (*protocol.ResearchTask, error)
	Create    func(ctx context.Context, spec *researchlog.Spec) (*protocol.ResearchTask, error)
	CanCreate func(ctx context.Context, spec *researchlog.Spec) error
}

// StartResearch starts a research task in the conversation of its turn.
type StartResearch struct{ Research }

type researchInput struct {
	Question string                    `json:"question"`
	Depth    protocol.ResearchDepth    `json:"depth"`
	Sources  []protocol.ResearchSource `json:"sources"`
	FileIDs  []protocol.FileID         `json:"file_ids"`
}

// Spec implements toolbox.Tool.
func (s StartResearch) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "start_research", Kind: "research", Title: "Start a research task", Description: startResearchDescription,
		Effect: protocol.EffectWrite, Risk: protocol.RiskMedium, Reversibility: protocol.Compensable, Repeatable: true, AlwaysAsks: true,
		Timeout: 30 * time.Second,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"question":{"type":"string","minLength":1,"maxLength":4000,"description":"What the report is to answer."},` +
			`"depth":{"type":"string","enum":["quick","standard","deep"],"default":"standard","description":"How much is read."},` +
			`"sources":{"type":"array","minItems":1,"maxItems":3,"items":{"enum":["web","files","conversations"]},"default":["web"],"description":"The places that are searched."},` +
			`"file_ids":{"type":"array","maxItems":20,"items":{"type":"string"},"description":"The only files that are searched. They need no consent."}},` +
			`"required":["question"],"additionalProperties":false}`),
		Describe: describeResearch, Check: s.check,
	}
}

func describeResearch(input json.RawMessage) policy.Description {
	var in researchInput
	_ = json.Unmarshal(input, &in) // it is valid
	budget := protocol.ResearchBudgets[in.Depth]
	places := make([]string, len(in.Sources))
	described := policy.Description{Resource: "research"}
	for i, place := range in.Sources {
		places[i] = map[protocol.ResearchSource]string{
			protocol.ResearchWeb: "the web", protocol.ResearchFiles: "your files", protocol.ResearchConversations: "your conversations",
		}[place]
		if place == protocol.ResearchWeb {
			described.Outward = in.Question
			described.Effects = append(described.Effects, "Questions about this are sent to the search engine, and pages are read.")
		}
	}
	if len(in.FileIDs) > 0 {
		places = append(places, fmt.Sprintf("%d of your files", len(in.FileIDs)))
	}
	described.Summary = fmt.Sprintf("Researches this in %s: %s", strings.Join(places, ", "), in.Question)
	described.Effects = append(described.Effects,
		fmt.Sprintf("It uses up to %d tokens and %d pages, for up to %d minutes.", budget.Tokens, budget.Pages, budget.Seconds/60),
		"The report is added to this conversation.")
	return described
}

// check returns why a call would start no task.
func (s StartResearch) check(ctx context.Context, call *toolbox.Call) error {
	spec, err := s.admitted(ctx, call)
	if err != nil {
		return err
	}
	if err := s.CanCreate(ctx, spec); err != nil {
		return notStarted(err)
	}
	return nil
}

// admitted returns the specification of the task that a call starts.
func (s StartResearch) admitted(ctx context.Context, call *toolbox.Call) (*researchlog.Spec, error) {
	var in researchInput
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return nil, &toolbox.Failure{Code: protocol.ToolCallInvalid, Detail: "The input is not valid: " + foreign.Escape(err.Error()) + "."}
	}
	if _, known := protocol.ResearchBudgets[in.Depth]; !known {
		return nil, &toolbox.Failure{Code: protocol.ToolCallInvalid, Detail: "The depth must be quick, standard or deep."}
	}
	spec := &researchlog.Spec{
		AccountID: call.AccountID, TaskID: protocol.DeriveTaskID(call.ToolID), ConversationID: call.ConversationID, TurnID: &call.TurnID,
		Question: in.Question, Depth: in.Depth, Sources: in.Sources, FileIDs: in.FileIDs, Budget: protocol.ResearchBudgets[in.Depth], CreatedAt: time.Now(),
	}
	if err := s.Admission.Admit(ctx, spec); err != nil {
		return nil, notStarted(err)
	}
	return spec, nil
}

// Run implements toolbox.Tool.
func (s StartResearch) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	task, err := s.start(ctx, call)
	if err != nil {
		return toolbox.Result{}, err
	}
	return toolbox.Result{
		Output: fmt.Sprintf("The research task %s is %s. The user sees its progress and gets the report in this conversation.", task.TaskID, task.State),
	}, nil
}

// start starts the task of a call. A task that the call has started before a crash is not admitted again: by now it may have used the
// tokens of the day.
func (s StartResearch) start(ctx context.Context, call *toolbox.Call) (*protocol.ResearchTask, error) {
	earlier, err := s.Find(ctx, call.AccountID, protocol.DeriveTaskID(call.ToolID))
	if protocol.CodeOf(err) != protocol.CodeNotFound {
		return earlier, err
	}
	spec, err := s.admitted(ctx, call)
	if err != nil {
		return nil, err
	}
	task, err := s.Create(ctx, spec)
	if err != nil {
		return nil, notStarted(err)
	}
	return task, nil
}

// notStarted returns why a task does not start, as a failure of the call if the model or the user can do something about it.
func notStarted(err error) error {
	var known *protocol.Error
	if !errors.As(err, &known) || known.Code == protocol.CodeUnavailable || known.Code == protocol.CodeInternal {
		return err
	}
	if known.Code == protocol.CodeBudgetReached {
		return &toolbox.Failure{Code: "daily_limit", Detail: known.Detail}
	}
	detail := known.Detail
	for _, wrong := range known.Fields {
		_, field, _ := strings.Cut(wrong.Field, ".")
		detail = field + " " + wrong.Message
	}
	return &toolbox.Failure{Code: protocol.ToolCallInvalid, Detail: detail}
}
