package files

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/files"
	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

type listInput struct {
	resource.PageInput
	Query     string             `query:"q" doc:"A part of the name, in upper or lower case; at most 160 characters."`
	Kind      string             `query:"kind" enum:"document,text,image,audio,archive,other"`
	ProjectID protocol.ProjectID `query:"project_id" doc:"Only the files of this project; none if it does not exist or is deleted."`
	Sort      string             `query:"sort" enum:"newest,name,size" default:"newest" doc:"size: the largest first."`
}

func (h *Handlers) list(ctx context.Context, in *listInput) (*resource.Body[protocol.List[protocol.File]], error) {
	query, err := nameQuery(in.Query)
	if err != nil {
		return nil, err
	}
	filter := &files.Filter{Query: query, Kind: protocol.FileKind(in.Kind), Sort: files.Sort(in.Sort)}
	if in.ProjectID != (protocol.ProjectID{}) {
		filter.ProjectID = &in.ProjectID
	}
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, fmt.Sprintf("files %q %s %s %s", query, in.Kind, in.ProjectID, in.Sort), func(after *files.Position) ([]protocol.File, *files.Position, error) {
		return h.Store.ListFiles(ctx, caller.AccountID, filter, after, in.Limit)
	})
}

// checkProject returns protocol.CodeNotFound unless the caller has the project, and it is not deleted.
func (h *Handlers) checkProject(ctx context.Context, id protocol.ProjectID) error {
	project, err := h.ProjectReader.Project(ctx, exchange.CallerOf(ctx).AccountID, id)
	if err == nil && project.State == protocol.ProjectDeleted {
		err = &protocol.Error{Code: protocol.CodeNotFound}
	}
	return err
}

type pickInput struct {
	Query          string                  `query:"q" doc:"A part of the name, in upper or lower case; at most 160 characters."`
	ConversationID protocol.ConversationID `query:"conversation_id" doc:"The conversation of the message: the files of its project come before the others of the library."`
	Limit          int                     `query:"limit" minimum:"1" maximum:"20" default:"10"`
}

// pick returns a list without a next page: the picker is narrowed by q.
func (h *Handlers) pick(ctx context.Context, in *pickInput) (*resource.Body[protocol.List[protocol.File]], error) {
	query, err := nameQuery(in.Query)
	if err != nil {
		return nil, err
	}
	picked, err := h.Store.PickFiles(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, query, in.Limit)
	if err != nil {
		return nil, err
	}
	return resource.OK(protocol.List[protocol.File]{Data: picked}), nil
}

// nameQuery returns the searched part of a name without spaces around it.
func nameQuery(text string) (string, error) {
	query := strings.TrimSpace(text)
	if utf8.RuneCountInString(query) > protocol.MaxQueryRunes {
		return "", protocol.Invalid("query.q", fmt.Sprintf("must have at most %d characters", protocol.MaxQueryRunes))
	}
	return query, nil
}

type statesInput struct {
	Body struct {
		FileIDs []protocol.FileID `json:"file_ids" minItems:"1" maxItems:"50"`
	}
}

type fileStates struct {
	Data []protocol.FileState `json:"data"`
}

func (h *Handlers) states(ctx context.Context, in *statesInput) (*resource.Body[fileStates], error) {
	found, err := h.Store.Files(ctx, exchange.CallerOf(ctx).AccountID, in.Body.FileIDs)
	if err != nil {
		return nil, err
	}
	return resource.OK(fileStates{statesOf(in.Body.FileIDs, found)}), nil
}

func statesOf(ids []protocol.FileID, found map[protocol.FileID]*protocol.File) []protocol.FileState {
	states := make([]protocol.FileState, len(ids))
	for i, id := range ids {
		states[i] = protocol.FileState{FileID: id, State: protocol.FileMissing, File: found[id]}
		switch file := found[id]; {
		case file == nil:
		case file.DeletedAt != nil:
			states[i].State = protocol.FileDeleted
		default:
			states[i].State = protocol.FileReady
		}
	}
	return states
}

// InFile is embedded by inputs of routes below a file.
type InFile struct {
	FileID protocol.FileID `path:"file_id"`
}

// maxReferences limits the messages that a file names.
const maxReferences = 20

func (h *Handlers) get(ctx context.Context, in *InFile) (*resource.Versioned[protocol.FileDetails], error) {
	account := exchange.CallerOf(ctx).AccountID
	file, err := h.Store.File(ctx, account, in.FileID)
	if err != nil {
		return nil, err
	}
	references, err := h.Store.References(ctx, account, in.FileID, maxReferences)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(&protocol.FileDetails{File: *file, References: references}, nil)
}

type textInput struct {
	InFile
	Offset int `query:"offset" minimum:"0" maximum:"4194304" doc:"The byte at which the range starts."`
	Limit  int `query:"limit" minimum:"4" maximum:"262144" default:"65536" doc:"The maximum length of the range, in bytes."`
}

func (h *Handlers) getText(ctx context.Context, in *textInput) (*resource.Body[*protocol.TextRange], error) {
	text, err := h.Texts.Text(ctx, exchange.CallerOf(ctx).AccountID, in.FileID, in.Offset, in.Limit)
	if err != nil {
		return nil, err
	}
	return resource.OK(text), nil
}

type changeInput struct {
	InFile
	resource.IfMatch
	Body struct {
		Filename *string `json:"filename,omitempty" maxLength:"1024" doc:"1 to 255 characters, as for a new upload. Absent: unchanged."`
		Kept     bool    `json:"kept,omitempty" doc:"true: the file stays in the library when the temporary conversation that it was uploaded for ends. It cannot be undone, but the file can be deleted."`
		Version  *int64  `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Absent: the last writer wins."`
	}
}

func (h *Handlers) change(ctx context.Context, in *changeInput) (*resource.Versioned[protocol.File], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	change := &files.Change{FileID: in.FileID, Version: version, Keep: in.Body.Kept}
	switch {
	case in.Body.Filename != nil:
		name, err := filetype.CleanName("body.filename", *in.Body.Filename)
		if err != nil {
			return nil, err
		}
		change.Filename = &name
	case !in.Body.Kept:
		return nil, protocol.Invalid("body", "must have a filename, or kept: true")
	}
	return resource.WithETag(h.Store.Change(ctx, exchange.CallerOf(ctx).AccountID, change))
}

type deleteInput struct {
	InFile
	resource.IfMatch
}

func (h *Handlers) delete(ctx context.Context, in *deleteInput) (*resource.Nothing, error) {
	version, err := in.Version(nil)
	if err != nil {
		return nil, err
	}
	caller := exchange.CallerOf(ctx)
	return nil, h.Store.Delete(ctx, caller.AccountID, in.FileID, version, &caller.SessionID)
}

// InProject is embedded by inputs of routes below a project.
type InProject struct {
	ProjectID protocol.ProjectID `path:"project_id"`
}

type listOfProjectInput struct {
	InProject
	resource.PageInput
}

func (h *Handlers) listOfProject(ctx context.Context, in *listOfProjectInput) (*resource.Body[protocol.List[protocol.File]], error) {
	if err := h.checkProject(ctx, in.ProjectID); err != nil {
		return nil, err
	}
	return h.list(ctx, &listInput{PageInput: in.PageInput, ProjectID: in.ProjectID, Sort: string(files.Newest)})
}

type addInput struct {
	InProject
	Body struct {
		FileID protocol.FileID `json:"file_id"`
	}
}

func (h *Handlers) addToProject(ctx context.Context, in *addInput) (*resource.Versioned[protocol.File], error) {
	caller := exchange.CallerOf(ctx)
	return resource.WithETag(h.Projects.AddToProject(ctx, caller.AccountID, in.ProjectID, in.Body.FileID, &caller.SessionID))
}

type removeInput struct {
	InProject
	InFile
}

func (h *Handlers) removeFromProject(ctx context.Context, in *removeInput) (*resource.Nothing, error) {
	caller := exchange.CallerOf(ctx)
	return nil, h.Projects.RemoveFromProject(ctx, caller.AccountID, in.ProjectID, in.FileID, &caller.SessionID)
}
