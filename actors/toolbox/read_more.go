package toolbox

import (
	_ "embed" // the description
	"encoding/json"

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

// ReadMore returns the tool that reads on in a result that was cut. It is offered once there is such a result.
func ReadMore() llm.Tool {
	return llm.Tool{Name: policy.ReadMore, Description: readMoreDescription, Schema: readMoreInput}
}

// ReadMoreEntry returns the entry of ReadMore, for the decision on its calls.
func ReadMoreEntry() *Entry { return readMore }
