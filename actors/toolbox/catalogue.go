package toolbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"turnstone/actors/llm"
	"turnstone/actors/policy"
	"turnstone/protocol"
)

// Catalogue is the tools of a node, in their order. It never changes.
type Catalogue struct {
	entries []*Entry
	byName  map[string]*Entry
}

// Entry is a tool of a catalogue.
type Entry struct {
	Tool
	Spec
	policy policy.Tool
	schema *schema
}

// NewCatalogue returns a catalogue of tools. It fails if two have the same name, if one names no effect, or if a schema is invalid.
func NewCatalogue(tools []Tool) (*Catalogue, error) {
	c := &Catalogue{byName: map[string]*Entry{}}
	for _, tool := range tools {
		spec := tool.Spec()
		if spec.Schema == nil {
			spec.Schema = json.RawMessage(`{"type":"object"}`)
		}
		schema, err := newSchema(spec.Schema)
		if err != nil {
			return nil, fmt.Errorf("the tool %s: %w", spec.Name, err)
		}
		if spec.Effect == "" {
			return nil, fmt.Errorf("the tool %s names no effect", spec.Name)
		}
		if c.byName[spec.Name] != nil {
			return nil, fmt.Errorf("two tools have the name %s", spec.Name)
		}
		entry := &Entry{tool, spec, policy.Tool{
			Name: spec.Name, Title: spec.Title, Definition: definition(&spec), Effect: spec.Effect, Risk: spec.Risk,
			Reversibility: spec.Reversibility, Own: spec.Own, AlwaysAsks: spec.AlwaysAsks,
		}, schema}
		c.entries, c.byName[spec.Name] = append(c.entries, entry), entry
	}
	return c, nil
}

// definition returns the digest of what the user relies on when a tool is approved in advance.
func definition(s *Spec) string {
	text, err := json.Marshal([]any{s.Name, s.Description, s.Schema, s.Effect, s.Risk, s.Reversibility})
	if err != nil {
		panic("toolbox: the definition of " + s.Name + " cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// All returns every tool, also those that cannot be used.
func (c *Catalogue) All() []*Entry {
	if c == nil {
		return nil
	}
	return c.entries
}

// Find returns the tool with a name; nil if there is none.
func (c *Catalogue) Find(name string) *Entry {
	if c == nil {
		return nil
	}
	return c.byName[name]
}

// Offered returns the tools that a model is offered in a conversation, without those that are off.
func (c *Catalogue) Offered(off []string, access *Access) (offered []llm.Tool) {
	if c == nil {
		return nil
	}
	for _, e := range c.entries {
		if e.Withheld(access) == "" && !slices.Contains(off, e.Name) {
			offered = append(offered, llm.Tool{Name: e.Name, Description: e.Description, Schema: e.Schema})
		}
	}
	return offered
}

// Plan decides on a call of the tool; see policy.Planner.
func (e *Entry) Plan(call *policy.Call) policy.Plan {
	if e.Unavailable != "" {
		return policy.Plan{Input: call.Input, Failure: &protocol.ToolError{Code: protocol.ToolCallOff, Detail: e.Unavailable}}
	}
	input, err := e.schema.canonical(call.Input)
	if err != nil {
		return policy.Plan{Input: call.Input, Failure: failed(protocol.ToolCallInvalid, "The input does not conform to the schema of the tool: "+err.Error()+".")}
	}
	var about policy.Description
	if e.Describe != nil {
		about = e.Describe(input)
	}
	return e.policy.Decide(call, input, about)
}
