package toolbox

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"slices"

	"turnstone/actors/llm"
	"turnstone/actors/policy"
	"turnstone/protocol"
)

//go:embed read_more.md
var readMoreDescription string

var readMoreInput = json.RawMessage(`{"type":"object","properties":{` +
	`"result_id":{"type":"string","description":"The id of the result."},` +
	`"from":{"type":"integer","minimum":0,"description":"The byte to read on from."}},` +
	`"required":["result_id","from"],"additionalProperties":false}`)

// readMore is the entry of the tool in every catalogue. It is not in the list of tools.
var readMore = func() *Entry {
	schema, err := newSchema(readMoreInput)
	if err != nil {
		panic("toolbox: " + err.Error())
	}
	spec := Spec{Name: policy.ReadMore, Kind: "compute", Title: "Read on", Description: readMoreDescription, Schema: readMoreInput, Effect: protocol.EffectRead}
	return &Entry{Spec: spec, policy: policy.Tool{Name: spec.Name, Title: spec.Title, Effect: spec.Effect}, schema: schema}
}()

// ReadOn is a call of ReadMore in a result that needs a consent, which the account may have revoked since.
type ReadOn struct {
	Consents interface {
		Granted(ctx context.Context, account protocol.AccountID) ([]protocol.MemorySource, error)
	}
	Source protocol.MemorySource
	Output string
}

// Spec implements Tool.
func (ReadOn) Spec() Spec { return readMore.Spec }

// Run implements Tool.
func (r ReadOn) Run(ctx context.Context, call *Call) (Result, error) {
	granted, err := r.Consents.Granted(ctx, call.AccountID)
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("reading the consents: %w", err)
	case !slices.Contains(granted, r.Source):
		return Result{}, &Failure{Code: protocol.ToolCallDenied, Detail: "The user no longer allows this source to be read, so the rest of " +
			"its result was not read. It can be allowed in the settings."}
	}
	return Result{Output: r.Output, Framed: true}, nil
}

// ReadMore returns the tool that reads on in a result that was cut. It is offered once there is such a result.
func ReadMore() llm.Tool {
	return llm.Tool{Name: policy.ReadMore, Description: readMoreDescription, Schema: readMoreInput}
}

// ReadMoreEntry returns the entry of ReadMore, for the decision on its calls.
func ReadMoreEntry() *Entry { return readMore }
