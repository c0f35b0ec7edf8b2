package projects

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/projects"
	"turnstone/protocol"
)

type listInput struct {
	resource.PageInput
	State string `query:"state" enum:"active,archived,deleted,any" default:"active"`
}

func (h *Handlers) list(ctx context.Context, in *listInput) (*resource.Body[protocol.List[protocol.Project]], error) {
	state := protocol.ProjectState(in.State)
	if in.State == "any" {
		state = ""
	}
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "projects "+in.State, func(after *protocol.ProjectID) ([]protocol.Project, *protocol.ProjectID, error) {
		return h.Store.ListProjects(ctx, caller.AccountID, state, after, in.Limit)
	})
}

type createProjectInput struct {
	Body struct {
		Name string `json:"name" doc:"1 to 200 characters after trimming."`
	}
}

func (h *Handlers) create(ctx context.Context, in *createProjectInput) (*resource.Created[protocol.Project], error) {
	name, err := resource.RequiredTitle("body.name", in.Body.Name)
	if err != nil {
		return nil, err
	}
	caller := exchange.CallerOf(ctx)
	project, err := h.Store.CreateProject(ctx, caller.AccountID, name, &caller.SessionID)
	if err != nil {
		return nil, err
	}
	return resource.NewCreated("", project), nil
}

func (h *Handlers) get(ctx context.Context, in *InProject) (*resource.Versioned[protocol.Project], error) {
	return resource.WithETag(h.Store.Project(ctx, exchange.CallerOf(ctx).AccountID, in.ProjectID))
}

type renameProjectInput struct {
	InProject
	resource.IfMatch
	Body struct {
		Name    string `json:"name" doc:"1 to 200 characters after trimming."`
		Version *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) rename(ctx context.Context, in *renameProjectInput) (*resource.Versioned[protocol.Project], error) {
	change, err := changeOf(ctx, in.ProjectID, in.IfMatch, in.Body.Version)
	if err != nil {
		return nil, err
	}
	name, err := resource.RequiredTitle("body.name", in.Body.Name)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Store.Rename(ctx, exchange.CallerOf(ctx).AccountID, change, name))
}

type archiveProjectInput struct {
	InProject
	resource.IfMatch
	Body struct {
		Archived bool   `json:"archived"`
		Version  *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) archive(ctx context.Context, in *archiveProjectInput) (*resource.Versioned[protocol.Project], error) {
	change, err := changeOf(ctx, in.ProjectID, in.IfMatch, in.Body.Version)
	if err != nil {
		return nil, err
	}
	account := exchange.CallerOf(ctx).AccountID
	return resource.WithETag(h.Store.SetArchivedWithUploads(ctx, account, change, in.Body.Archived, func(ctx context.Context, upload protocol.UploadID) error {
		_, err := h.Uploads.Cancel(ctx, account, upload)
		return err
	}))
}

type deleteInput struct {
	InProject
	resource.IfMatch
	Confirm string `header:"X-Confirm" doc:"The token of the preceding 409 confirmation_required."`
}

// restorable is what a client that deletes a project has to know.
const restorable = "The project is hidden with its conversations, instructions, prompts and list of files, and can be restored for " + projects.Retention +
	". Then it is erased; its files stay in the library."

func (h *Handlers) delete(ctx context.Context, in *deleteInput) (*resource.Versioned[protocol.Project], error) {
	change, err := changeOf(ctx, in.ProjectID, in.IfMatch, nil)
	if err != nil {
		return nil, err
	}
	caller := exchange.CallerOf(ctx)
	deletion := &projects.Deletion{Change: *change, By: exchange.Of(ctx).Requester(), Confirm: func(content *projects.Content) error {
		return h.Confirmations.Confirm(caller, in.Confirm, in.ProjectID.String(), content.Version, content.WillDelete, restorable)
	}}
	return resource.WithETag(h.Store.DeleteWithLiveTurns(ctx, caller.AccountID, deletion, func(ctx context.Context, turn protocol.TurnID) error {
		return h.Turns.CancelTurn(ctx, caller.AccountID, turn, protocol.CancelledByDeletion, protocol.CancelTurn)
	}))
}

type restoreProjectInput struct {
	InProject
	resource.IfMatch
	Body struct {
		Version *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match."`
	}
}

func (h *Handlers) restore(ctx context.Context, in *restoreProjectInput) (*resource.Versioned[protocol.Project], error) {
	change, err := changeOf(ctx, in.ProjectID, in.IfMatch, in.Body.Version)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Store.RestoreProject(ctx, exchange.CallerOf(ctx).AccountID, change, exchange.Of(ctx).Requester()))
}

type listWorkInput struct {
	InProject
	resource.PageInput
}

func (h *Handlers) listWork(ctx context.Context, in *listWorkInput) (*resource.Body[protocol.List[protocol.Work]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "work of "+in.ProjectID.String(), func(after *protocol.WorkID) ([]protocol.Work, *protocol.WorkID, error) {
		return h.Store.ListWork(ctx, caller.AccountID, in.ProjectID, after, in.Limit)
	})
}
