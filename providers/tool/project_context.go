package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

//go:embed project_context.md
var projectContextDescription string

// Projects reads projects. Package persistence/projects implements it.
type Projects interface {
	Project(ctx context.Context, account protocol.AccountID, id protocol.ProjectID) (*protocol.Project, error)
	// Instructions returns the instructions of a project: a version, or with nil the current ones.
	Instructions(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, version *int64) (*protocol.Instructions, error)
}

// ProjectContext describes the project of the conversation.
type ProjectContext struct {
	Projects Projects
	Files    Files
}

const maxProjectFiles = 50 // that are listed

// Spec implements toolbox.Tool.
func (ProjectContext) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "project_context", Kind: "project", Title: "Look at the project", Description: projectContextDescription, Effect: protocol.EffectRead,
		Risk: protocol.RiskLow, Reversibility: protocol.Reversible, Repeatable: true,
		Private: true, Untrusted: true, // strangers may have named the files
		InProject: true, Timeout: 10 * time.Second, Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool.
func (p ProjectContext) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	missing := &toolbox.Failure{Code: turnlog.RefusedMissing, Detail: "This conversation is not in a project."}
	if call.ProjectID == nil {
		return toolbox.Result{}, missing
	}
	project, err := p.Projects.Project(ctx, call.AccountID, *call.ProjectID)
	switch {
	case protocol.CodeOf(err) == protocol.CodeNotFound, err == nil && project.State == protocol.ProjectDeleted:
		return toolbox.Result{}, missing
	case err != nil:
		return toolbox.Result{}, err
	}
	instructions, err := p.Projects.Instructions(ctx, call.AccountID, project.ProjectID, nil)
	if err != nil {
		return toolbox.Result{}, err
	}
	files, err := p.Files.ProjectFileHeads(ctx, call.AccountID, project.ProjectID, maxProjectFiles)
	if err != nil {
		return toolbox.Result{}, err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "The project has %d conversations and %d files.\n%s\n", project.ConversationCount, project.FileCount,
		foreign.Frame(foreign.Result, foreign.Attribute("name", "project"), project.Name))
	if instructions.Content == "" {
		out.WriteString("It has no instructions.\n")
	} else {
		out.WriteString(foreign.Frame(foreign.Instructions, foreign.Attribute("version", fmt.Sprint(instructions.Version)), instructions.Content) + "\n")
	}
	out.WriteString(listFiles(project, files))
	return toolbox.Result{Output: strings.TrimSpace(out.String()), Framed: true}, nil
}

// listFiles returns a list of the newest files of a project.
func listFiles(project *protocol.Project, files []turnlog.FileHead) string {
	if len(files) == 0 {
		return "It has no files."
	}
	var list strings.Builder
	for i := range files {
		fmt.Fprintf(&list, "%s: %q, %s\n", files[i].FileID, files[i].Filename, files[i].MediaType)
	}
	shown := foreign.Frame(foreign.Result, foreign.Attribute("name", "files"), list.String())
	if int64(len(files)) < project.FileCount {
		shown += fmt.Sprintf("\n[These are the newest %d files. Find others with search_files.]", len(files))
	}
	return shown
}
