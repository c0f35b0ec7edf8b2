package tool

import (
	"context"
	_ "embed" // the description
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/timelimit"
	"turnstone/protocol/turnlog"
	"turnstone/providers/code"
)

//go:embed run_code.md
var runCodeDescription string

// RunCode executes JavaScript, and stores the tables and charts that it makes as artifacts.
type RunCode struct {
	Files     Files
	Artifacts Artifacts
	Code      *Code
}

// Spec implements toolbox.Tool. The results are private and untrusted, because they derive from files. So are failures: they
// show texts that the code has thrown or printed.
func (r RunCode) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "run_code", Kind: "compute", Title: "Run code", Description: runCodeDescription,
		Effect: protocol.EffectWrite, Risk: protocol.RiskLow, Reversibility: protocol.Reversible, Repeatable: true, Own: true,
		Private: true, PrivateFailures: true, Untrusted: true, Unavailable: r.Code.Unavailable,
		Timeout: timelimit.Of(75 * time.Second), // 10 for a slot, 30 for the run, the rest for files and artifacts
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"code":{"type":"string","minLength":1,"description":"The JavaScript code."},` +
			`"file_ids":{"type":"array","maxItems":8,"items":{"type":"string"},"description":"The files that the code reads."}},` +
			`"required":["code"],"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool.
func (r RunCode) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	var in struct {
		Code    string            `json:"code"`
		FileIDs []protocol.FileID `json:"file_ids"`
	}
	if stored, err := r.stored(ctx, call); err != nil || stored.Output != "" {
		return stored, err
	}
	err := json.Unmarshal(call.Input, &in)
	switch {
	case r.Code.Unavailable != "":
		return toolbox.Result{}, &toolbox.Failure{Code: "unavailable", Detail: r.Code.Unavailable}
	case err != nil || strings.TrimSpace(in.Code) == "":
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_input", Detail: "Code is needed, and file_ids must be ids of files."}
	case len(in.Code) > code.MaxCode:
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_input", Detail: fmt.Sprintf("The code has %d bytes, and at most %d are possible.", len(in.Code), code.MaxCode)}
	case len(in.FileIDs) > code.MaxFiles:
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_input", Detail: fmt.Sprintf("Code reads at most %d files.", code.MaxFiles)}
	}
	task := &code.Task{Code: in.Code}
	task.Now, task.Seed = determined(call)
	files, err := r.files(ctx, call, in.FileIDs)
	if err != nil {
		return toolbox.Result{}, err
	}
	task.Load = func(ctx context.Context) ([]code.File, error) { return files, r.read(ctx, call, in.FileIDs, files) }
	made, err := r.Code.run(ctx, call, task)
	if err != nil {
		return toolbox.Result{}, err
	}
	return r.store(ctx, call, made)
}

// stored returns the result of a call that has stored artifacts before an interruption; without Output: it has not. Such a call
// does not run again: a second run may fail, and then nothing would name the artifacts.
func (r RunCode) stored(ctx context.Context, call *toolbox.Call) (result toolbox.Result, err error) {
	var ids []protocol.ToolID
	for n := range code.MaxArtifacts {
		ids = append(ids, protocol.DeriveWriteID(call.ToolID, n+1))
	}
	all, err := r.Artifacts.WrittenByCall(ctx, call.Scope, ids)
	if err != nil {
		return toolbox.Result{}, err
	}
	for _, by := range ids {
		if written := all[by]; written != nil {
			result.Output += fmt.Sprintf("The user sees the %s %q as the artifact %s.\n", written.Kind, written.Title, written.ArtifactID)
			result.Events = append(result.Events, updated(by, written))
		}
	}
	if result.Output != "" {
		result.Output = "The call ran before an interruption; its output is lost. Of its tables and charts, these were stored:\n" + result.Output
	}
	return result, nil
}

// determined returns the time and the seed of a call. They follow from its identifiers, so a call that is run again after a crash
// makes the same. The time is that of the start of the turn, to the second.
func determined(call *toolbox.Call) (now time.Time, seed uint64) {
	return call.TurnID.Time().UTC().Truncate(time.Second), binary.BigEndian.Uint64(call.ToolID[8:])
}

// files returns the files of a call without their texts. They are in its scope, and not too large together. Two files of one
// name get different ones.
func (r RunCode) files(ctx context.Context, call *toolbox.Call, ids []protocol.FileID) (files []code.File, err error) {
	size := 0
	names := map[string]bool{}
	for _, id := range ids {
		head, err := readable(ctx, r.Files, call.Scope, id)
		if err != nil {
			return nil, err
		}
		if size += head.Size; size > code.MaxFileBytes {
			return nil, &toolbox.Failure{Code: "too_large", Detail: fmt.Sprintf("The texts of the files have more than %d MiB together.", code.MaxFileBytes>>20)}
		}
		name := head.Filename
		for n := 2; names[name]; n++ {
			name = fmt.Sprintf("%s (%d)", head.Filename, n)
		}
		names[name] = true
		files = append(files, code.File{ID: id.String(), Name: name})
	}
	return files, nil
}

// read reads the texts of files.
func (r RunCode) read(ctx context.Context, call *toolbox.Call, ids []protocol.FileID, files []code.File) (err error) {
	for i, id := range ids {
		if files[i].Text, _, err = r.Files.FileContent(ctx, call.AccountID, id); err != nil {
			return err
		}
	}
	return nil
}

// store writes the tables and charts, and returns the result with a line about each. Each has its effect once, as that of
// write_artifact. One that cannot be stored is said, and does not undo the others.
func (r RunCode) store(ctx context.Context, call *toolbox.Call, made *code.Result) (toolbox.Result, error) {
	result := toolbox.Result{Output: made.Output}
	if made.Cut > 0 {
		result.Output += fmt.Sprintf("\n[The output was cut at %d bytes; %d more are left out.]\n", len(made.Output), made.Cut)
	}
	for i, one := range made.Artifacts {
		content := foreign.Storable(one.Content)
		written, err := r.Artifacts.WriteByCall(ctx, &turnlog.ArtifactWrite{
			Scope: call.Scope, TurnID: call.TurnID, ToolID: protocol.DeriveWriteID(call.ToolID, i+1), Kind: one.Kind, Title: foreign.Storable(one.Title), Content: &content,
		})
		var refusal *turnlog.Refusal
		switch {
		case errors.As(err, &refusal):
			result.Output += fmt.Sprintf("The %s %q was not stored: %s\n", one.Kind, one.Title, refusal.Detail)
			continue
		case err != nil:
			return toolbox.Result{}, err
		}
		result.Output += fmt.Sprintf("The user sees the %s %q as the artifact %s.\n", one.Kind, written.Title, written.ArtifactID)
		result.Events = append(result.Events, updated(protocol.DeriveWriteID(call.ToolID, i+1), written))
	}
	if result.Output == "" {
		result.Output, result.Empty = "The code ended without an error. It printed nothing, and its last expression has no value.", true
	}
	return result, nil
}
