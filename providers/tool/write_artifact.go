package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

//go:embed write_artifact.md
var writeArtifactDescription string

// WriteArtifact creates an artifact or writes a version of one.
type WriteArtifact struct{ Artifacts Artifacts }

// maxEdits limits the replacements of one call.
const maxEdits = 100

// Spec implements toolbox.Tool.
func (WriteArtifact) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "write_artifact", Kind: "artifact", Title: "Write an artifact", Description: writeArtifactDescription,
		Effect: protocol.EffectWrite, Risk: protocol.RiskLow, Reversibility: protocol.Reversible, Repeatable: true, Own: true,
		PrivateFailures: true, // a stale write fails with the difference, which may be of files or pages
		Timeout:         30 * time.Second,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"artifact_id":{"type":"string","description":"The artifact that gets a new version. Absent: a new artifact."},` +
			`"base_version":{"type":"integer","minimum":1,"description":"With artifact_id: the version that the change is based on."},` +
			`"kind":{"type":"string","enum":["document","code","html","svg","table","diagram"],"description":"Of a new artifact."},` +
			`"title":{"type":"string","description":"1 to 200 characters. With artifact_id: a new title."},` +
			`"language":{"type":"string","description":"Of new code, for example go."},` +
			`"content":{"type":"string","description":"The whole content."},` +
			`"edits":{"type":"array","maxItems":100,"items":{"type":"object","properties":{` +
			`"old":{"type":"string","description":"A text that occurs exactly once."},"new":{"type":"string"}},"required":["old","new"],"additionalProperties":false},` +
			`"description":"With artifact_id, instead of content: replacements, in this order."}},` +
			`"additionalProperties":false}`),
	}
}

// writeInput is the input of a call.
type writeInput struct {
	ArtifactID  protocol.ArtifactID   `json:"artifact_id"`
	BaseVersion int64                 `json:"base_version"`
	Kind        protocol.ArtifactKind `json:"kind"`
	Title       string                `json:"title"`
	Language    string                `json:"language"`
	Content     *string               `json:"content"`
	Edits       []turnlog.Replacement `json:"edits"`
}

// Run implements toolbox.Tool.
func (w WriteArtifact) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	var in writeInput
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return toolbox.Result{}, &toolbox.Failure{Code: turnlog.RefusedInput, Detail: "The input is not valid: " + err.Error() + "."}
	}
	if wrong := in.check(); wrong != "" {
		return toolbox.Result{}, &toolbox.Failure{Code: turnlog.RefusedInput, Detail: wrong}
	}
	written, err := w.Artifacts.WriteByCall(ctx, &turnlog.ArtifactWrite{
		Scope: call.Scope, TurnID: call.TurnID, ToolID: call.ToolID, Artifact: in.ArtifactID, BaseVersion: in.BaseVersion,
		Kind: in.Kind, Language: in.Language, Title: in.Title, Content: in.Content, Edits: in.Edits,
	})
	if err != nil {
		return toolbox.Result{}, refused(err)
	}
	return toolbox.Result{
		Output: fmt.Sprintf("The artifact %s is at version %d, with %d bytes. The user sees it.", written.ArtifactID, written.Version, written.Bytes),
		Events: []protocol.Payload{updated(call.ToolID, written)},
	}, nil
}

// check cleans the input and returns what is wrong with it; empty: nothing.
func (in *writeInput) check() string {
	in.Title, in.Language = strings.TrimSpace(foreign.Storable(in.Title)), strings.TrimSpace(foreign.Storable(in.Language))
	if in.Content != nil {
		content := foreign.Storable(*in.Content)
		in.Content = &content
	}
	for i := range in.Edits {
		in.Edits[i].New = foreign.Storable(in.Edits[i].New)
	}
	isNew := in.ArtifactID.IsZero()
	switch {
	case in.Content != nil && len(in.Edits) > 0:
		return "Give either content or edits, not both."
	case utf8.RuneCountInString(in.Title) > protocol.MaxTitle:
		return fmt.Sprintf("A title has at most %d characters.", protocol.MaxTitle)
	case utf8.RuneCountInString(in.Language) > protocol.MaxArtifactLanguage:
		return fmt.Sprintf("A language has at most %d characters.", protocol.MaxArtifactLanguage)
	case len(in.Edits) > maxEdits:
		return fmt.Sprintf("A call has at most %d edits.", maxEdits)
	case isNew && (in.Content == nil || in.Title == ""):
		return "A new artifact needs kind, title and content. To change one, give its artifact_id."
	case isNew && !slices.Contains(protocol.ArtifactKinds, in.Kind):
		return "The kind must be document, code, html, svg, table or diagram."
	case !isNew && in.BaseVersion < 1:
		return "A change needs base_version, the version of the artifact that you have read."
	case !isNew && in.Content == nil && len(in.Edits) == 0 && in.Title == "":
		return "Nothing changes: give content, edits or a title."
	}
	if in.Kind != protocol.ArtifactCode {
		in.Language = ""
	}
	return ""
}
