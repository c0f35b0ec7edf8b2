package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

//go:embed read_artifact.md
var readArtifactDescription string

// ReadArtifact returns the content of an artifact, or lists the artifacts of the conversation.
type ReadArtifact struct{ Artifacts Artifacts }

// maxListedArtifacts limits the artifacts of a list.
const maxListedArtifacts = 50

// Spec implements toolbox.Tool.
func (ReadArtifact) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "read_artifact", Kind: "artifact", Title: "Read an artifact", Description: readArtifactDescription,
		Effect: protocol.EffectRead, Risk: protocol.RiskLow, Reversibility: protocol.Reversible, Repeatable: true,
		// An artifact may have been written from files or pages that the model does not see any more.
		Private: true, Untrusted: true,
		Timeout: 15 * time.Second,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"artifact_id":{"type":"string","description":"Absent: lists the artifacts."},` +
			`"version":{"type":"integer","minimum":1,"description":"Default: the current version."},` +
			`"offset":{"type":"integer","minimum":0,"description":"Read from this byte."}},"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool.
func (r ReadArtifact) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	var in struct {
		ArtifactID protocol.ArtifactID `json:"artifact_id"`
		Version    int64               `json:"version"`
		Offset     int                 `json:"offset"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil || in.Version < 0 || in.Offset < 0 {
		return toolbox.Result{}, &toolbox.Failure{Code: turnlog.RefusedInput, Detail: "The input needs the id of an artifact, and numbers must not be negative."}
	}
	if in.ArtifactID.IsZero() {
		return r.list(ctx, call)
	}
	var version *int64
	if in.Version > 0 {
		version = &in.Version
	}
	found, err := r.Artifacts.ReadForCall(ctx, call.Scope, in.ArtifactID, version)
	switch {
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		return toolbox.Result{}, &toolbox.Failure{Code: turnlog.RefusedMissing, Detail: "The conversation has no artifact with this id, or not this version of it."}
	case err != nil:
		return toolbox.Result{}, err
	}
	text, start, end := cutAt(found.Content, in.Offset)
	output := foreign.Frame(foreign.Artifact, foreign.Attribute("id", found.ArtifactID.String())+foreign.Attribute("kind", string(found.Kind))+
		foreign.Attribute("title", found.Title)+foreign.Attribute("version", fmt.Sprint(found.Version))+foreign.Attribute("by", string(found.CreatedBy)), text)
	if start > 0 || end < len(found.Content) {
		output += fmt.Sprintf("\n[These are the bytes %d to %d of %d.", start, end, len(found.Content))
		if end < len(found.Content) {
			output += fmt.Sprintf(" Read on at the offset %d.", end)
		}
		output += "]"
	}
	return toolbox.Result{Output: output, Framed: true, Empty: found.Content == ""}, nil
}

// cutAt returns what one call returns of a content from an offset on: whole lines if they fit, and whole characters.
func cutAt(content string, offset int) (text string, start, end int) {
	start, end = min(offset, len(content)), len(content)
	for start < len(content) && start > 0 && !utf8.RuneStart(content[start]) {
		start--
	}
	if end-start > maxRead {
		end = start + maxRead
		for !utf8.RuneStart(content[end]) {
			end--
		}
		if line := strings.LastIndexByte(content[start:end], '\n'); line > maxRead/2 {
			end = start + line + 1
		}
	}
	return content[start:end], start, end
}

func (r ReadArtifact) list(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	found, err := r.Artifacts.ListForCall(ctx, call.Scope, maxListedArtifacts)
	if err != nil {
		return toolbox.Result{}, err
	}
	if len(found) == 0 {
		return toolbox.Result{Output: "The conversation has no artifacts.", Empty: true}, nil
	}
	var out strings.Builder
	for i := range found {
		a := &found[i]
		fmt.Fprintf(&out, "%s: %s, version %d by the %s, %d bytes, %q\n", a.ArtifactID, a.Kind, a.Version, a.CreatedBy, a.Bytes, a.Title)
	}
	return toolbox.Result{Output: out.String()}, nil
}
