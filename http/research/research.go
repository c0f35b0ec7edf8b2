// Package research handles the requests for research tasks. The tasks run in package actors/research.
//
// It contains no SQL and no state.
package research

import (
	"context"
	stdhttp "net/http"
	"time"

	"turnstone/actors/research"
	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/sse"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// Tasks runs tasks; see package actors/research.
type Tasks interface {
	Create(ctx context.Context, spec *researchlog.Spec) (*protocol.ResearchTask, error)
	Cancel(ctx context.Context, account protocol.AccountID, id protocol.TaskID) (*protocol.ResearchTask, error)
	Steer(ctx context.Context, account protocol.AccountID, id protocol.TaskID, command *researchlog.Steering) (*protocol.ResearchReceipt, error)
	Follow(account protocol.AccountID, id protocol.TaskID, after int64) *research.Reader
}

// Store reads tasks; see package persistence/research.
type Store interface {
	OwnsTask(ctx context.Context, account protocol.AccountID, id protocol.TaskID) error
	Task(ctx context.Context, account protocol.AccountID, id protocol.TaskID) (*protocol.ResearchTask, error)
	List(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, report string, after *protocol.TaskID, limit int) ([]*protocol.ResearchTask, *protocol.TaskID, error)
	ListAll(ctx context.Context, account protocol.AccountID, open bool, after *protocol.TaskID, limit int) ([]*protocol.ResearchTask, *protocol.TaskID, error)
	Sources(ctx context.Context, account protocol.AccountID, id protocol.TaskID, after, limit int) ([]protocol.ResearchKeptSource, *int, error)
}

// Admission decides whether a task may start; see package actors/research.
type Admission interface {
	Admit(ctx context.Context, spec *researchlog.Spec) error
}

// Handlers handle the requests for research tasks.
type Handlers struct {
	Tasks     Tasks
	Store     Store
	Admission Admission
	Streams   *exchange.Streams
	Keys      *auth.Keys
	Now       func() time.Time
}

// InTask is embedded by inputs of routes below a task.
type InTask struct {
	TaskID protocol.TaskID `path:"task_id"`
}

type createTaskInput struct {
	resource.InConversation
	Body struct {
		Question   string                    `json:"question" minLength:"1" maxLength:"4000" doc:"What the report is to answer."`
		Depth      protocol.ResearchDepth    `json:"depth,omitempty" enum:"quick,standard,deep" default:"standard"`
		Sources    []protocol.ResearchSource `json:"sources,omitempty" enum:"web,files,conversations,connectors" minItems:"1" maxItems:"4" doc:"The places that are searched. Default: web. files and conversations need the consent of the account, unless file_ids names the files. connectors is refused, because the service has none yet."`
		FileIDs    []protocol.FileID         `json:"file_ids,omitempty" maxItems:"20" doc:"Files that are searched, and the only ones. They need no consent."`
		Connectors []string                  `json:"connectors,omitempty" maxItems:"50" doc:"Bindings of the project that are searched. Any is refused, because the service has no connectors yet."`
		Budget     *taskBudgetInput          `json:"budget,omitempty" doc:"What the task may use. Each amount that is absent is that of the depth."`
	}
}

type taskBudgetInput struct {
	Tokens  *int64 `json:"tokens,omitempty" minimum:"1" maximum:"10000000"`
	Pages   *int64 `json:"pages,omitempty" minimum:"1" maximum:"500"`
	Seconds *int64 `json:"seconds,omitempty" minimum:"1" maximum:"14400"`
}

func (h *Handlers) create(ctx context.Context, in *createTaskInput) (*resource.CreatedOnce[protocol.ResearchTask], error) {
	if len(in.Body.Connectors) > 0 {
		return nil, protocol.Invalid("body.connectors[0]", "is not a binding of the project")
	}
	caller := exchange.CallerOf(ctx)
	spec := &researchlog.Spec{
		AccountID: caller.AccountID, TaskID: protocol.NewTaskID(), ConversationID: in.ConversationID, SessionID: &caller.SessionID,
		Question: in.Body.Question, Depth: in.Body.Depth, Sources: in.Body.Sources, FileIDs: in.Body.FileIDs, Budget: budgetOf(in.Body.Depth, in.Body.Budget), CreatedAt: h.Now(),
	}
	if err := h.Admission.Admit(ctx, spec); err != nil {
		return nil, err
	}
	task, err := h.Tasks.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return resource.NewCreatedOnce("", task), nil
}

func budgetOf(depth protocol.ResearchDepth, in *taskBudgetInput) protocol.ResearchAmounts {
	budget := protocol.ResearchBudgets[depth]
	if in == nil {
		return budget
	}
	for _, one := range []struct {
		in *int64
		to *int64
	}{{in.Tokens, &budget.Tokens}, {in.Pages, &budget.Pages}, {in.Seconds, &budget.Seconds}} {
		if one.in != nil {
			*one.to = *one.in
		}
	}
	return budget
}

type listTasksInput struct {
	resource.InConversation
	Report string `query:"report" maxLength:"64" doc:"Only the task that has written this report: the identifier of its message or of its artifact."`
	resource.PageInput
}

func (h *Handlers) list(ctx context.Context, in *listTasksInput) (*resource.Body[protocol.List[*protocol.ResearchTask]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "research "+in.ConversationID.String()+in.Report, func(after *protocol.TaskID) ([]*protocol.ResearchTask, *protocol.TaskID, error) {
		return h.Store.List(ctx, caller.AccountID, in.ConversationID, in.Report, after, in.Limit)
	})
}

type listAllTasksInput struct {
	State string `query:"state" enum:"open,any" default:"any" doc:"open: only the tasks that have not ended."`
	resource.PageInput
}

func (h *Handlers) listAll(ctx context.Context, in *listAllTasksInput) (*resource.Body[protocol.List[*protocol.ResearchTask]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "research "+in.State, func(after *protocol.TaskID) ([]*protocol.ResearchTask, *protocol.TaskID, error) {
		return h.Store.ListAll(ctx, caller.AccountID, in.State == "open", after, in.Limit)
	})
}

func (h *Handlers) get(ctx context.Context, in *InTask) (*resource.Body[*protocol.ResearchTask], error) {
	task, err := h.Store.Task(ctx, exchange.CallerOf(ctx).AccountID, in.TaskID)
	if err != nil {
		return nil, err
	}
	return resource.OK(task), nil
}

type listTaskSourcesInput struct {
	InTask
	resource.PageInput
}

func (h *Handlers) sources(ctx context.Context, in *listTaskSourcesInput) (*resource.Body[protocol.List[protocol.ResearchKeptSource]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "research sources "+in.TaskID.String(), func(after *int) ([]protocol.ResearchKeptSource, *int, error) {
		from := -1
		if after != nil {
			from = *after
		}
		return h.Store.Sources(ctx, caller.AccountID, in.TaskID, from, in.Limit)
	})
}

func (h *Handlers) cancel(ctx context.Context, in *InTask) (*resource.Body[*protocol.ResearchTask], error) {
	task, err := h.Tasks.Cancel(ctx, exchange.CallerOf(ctx).AccountID, in.TaskID)
	if err != nil {
		return nil, err
	}
	return resource.OK(task), nil
}

type taskEventsInput struct {
	InTask
	resource.ResumeInput
}

// getEvents streams the events of a task after a sequence.
func (h *Handlers) getEvents(w stdhttp.ResponseWriter, r *stdhttp.Request, in *taskEventsInput) error {
	after, err := in.Position()
	if err != nil {
		return err
	}
	account := exchange.CallerOf(r.Context()).AccountID
	bounded, cancel := exchange.UntilFirstByte(r.Context())
	defer cancel()
	task, err := h.Store.Task(bounded, account, in.TaskID)
	if err != nil {
		return err
	}
	return h.Streams.ServeLog(w, r, account, &exchange.Log{Ended: task.State.Terminal(), Last: task.LastSequence, After: after, Follow: func(after int64) sse.Reader {
		return h.Tasks.Follow(account, in.TaskID, after)
	}})
}
