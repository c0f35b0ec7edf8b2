// Package toolboxtest has the suite that every tool passes, and a tool for tests. Only tests import it.
package toolboxtest

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
)

// Schema allows an object with a query or a number, or without them.
const Schema = `{"type":"object","properties":{
	"query":{"type":"string","minLength":1,"pattern":"\\S","description":"Any text."},
	"n":{"type":"integer","description":"Any number."}},"additionalProperties":false}`

// Tool is a tool for tests.
type Tool struct {
	// Is describes the tool. Empty fields that the suite requires get defaults: a tool that only reads.
	Is toolbox.Spec
	// Play runs a call whose ctx has not ended. nil: the result is empty.
	Play func(ctx context.Context, call *toolbox.Call) (toolbox.Result, error)
}

var _ toolbox.Tool = (*Tool)(nil)

// Says returns a tool that returns a text.
func Says(spec *toolbox.Spec, say func() (string, error)) *Tool {
	return &Tool{Is: *spec, Play: func(context.Context, *toolbox.Call) (toolbox.Result, error) {
		text, err := say()
		return toolbox.Result{Output: text}, err
	}}
}

// Spec implements toolbox.Tool.
func (t *Tool) Spec() toolbox.Spec {
	spec := t.Is
	spec.Kind, spec.Title = cmp.Or(spec.Kind, "compute"), cmp.Or(spec.Title, spec.Name)
	spec.Description = cmp.Or(spec.Description, "A tool for tests. Each test decides what a call returns.")
	spec.Effect, spec.Risk = cmp.Or(spec.Effect, protocol.EffectRead), cmp.Or(spec.Risk, protocol.RiskLow)
	spec.Reversibility, spec.Timeout = cmp.Or(spec.Reversibility, protocol.Reversible), cmp.Or(spec.Timeout, time.Minute)
	if spec.Schema == nil {
		spec.Schema = json.RawMessage(Schema)
	}
	return spec
}

// Run implements toolbox.Tool.
func (t *Tool) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	if err := ctx.Err(); err != nil || t.Play == nil {
		return toolbox.Result{}, err
	}
	return t.Play(ctx, call)
}
