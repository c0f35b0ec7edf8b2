package toolboxtest

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"turnstone/actors/policy"
	"turnstone/actors/toolbox"
	"turnstone/protocol"
)

// Case is a tool for the suite.
type Case struct {
	Tool    toolbox.Tool
	Waits   string // an input for which the tool waits until its call ends; empty: there is none
	Instant bool   // the tool may succeed in a call that was cancelled, because it waits for nothing
}

var isName = regexp.MustCompile(`^[a-z][a-z_]{2,40}$`)

// Suite checks that a tool meets the contract of toolbox.Tool.
func Suite(t *testing.T, c Case) {
	t.Helper()
	catalogue, err := toolbox.NewCatalogue([]toolbox.Tool{c.Tool})
	if err != nil {
		t.Fatal(err)
	}
	spec := c.Tool.Spec()
	entry := catalogue.Find(spec.Name)
	checkSpec(t, &spec)
	checkSchema(t, &c, entry)
	checkGarbage(t, &c, entry)
	if c.Waits != "" {
		checkCancel(t, &c)
	}
}

// checkSpec checks that a tool is described completely.
func checkSpec(t *testing.T, spec *toolbox.Spec) {
	t.Helper()
	if !isName.MatchString(spec.Name) {
		t.Errorf("%q is not a name", spec.Name)
	}
	if spec.Kind == "" || spec.Title == "" || len(spec.Description) < 50 || spec.Effect == "" || spec.Risk == "" || spec.Reversibility == "" || spec.Timeout <= 0 || spec.Unavailable != "" {
		t.Errorf("%s: %+v", spec.Name, spec)
	}
}

// checkSchema checks that the schema of a tool allows only the properties that it describes.
func checkSchema(t *testing.T, c *Case, entry *toolbox.Entry) {
	t.Helper()
	for _, input := range []string{`{"another":1}`, `[]`} {
		if entry.Plan(&policy.Call{Input: json.RawMessage(input)}).Failure == nil {
			t.Errorf("%s: the schema accepts %s", entry.Name, input)
		}
	}
	if c.Waits != "" {
		if plan := entry.Plan(&policy.Call{Input: json.RawMessage(c.Waits)}); plan.Failure != nil {
			t.Errorf("%s: the schema refuses %s: %v", entry.Name, c.Waits, plan.Failure)
		}
	}
	var schema struct {
		Type       string
		Properties map[string]struct{ Type, Description string }
	}
	if err := json.Unmarshal(entry.Schema, &schema); err != nil || schema.Type != "object" {
		t.Errorf("%s: the input is not an object: %v", entry.Name, err)
	}
	for name, property := range schema.Properties {
		if property.Type == "" || property.Description == "" {
			t.Errorf("%s: %s has no type or no description", entry.Name, name)
		}
	}
}

var garbage = []string{
	"", "null", "[]", `""`, "1", "{", "\xff", `{"query":7}`, `{"query":""}`, `{"query":" "}`, `{"url":["x"]}`, `{"url":""}`, `{"expression":{}}`,
	`{"file_id":"../x"}`, `{"time_zone":7}`, `{"time_zone":"../../etc/passwd"}`, `{"query":"a","from":"yesterday"}`, `{"query":"a","to":"2026-02-30"}`, strings.Repeat("[", 10_000),
}

// checkGarbage checks that strange inputs are refused with a sentence, or end with their call.
func checkGarbage(t *testing.T, c *Case, entry *toolbox.Entry) {
	t.Helper()
	for _, input := range garbage {
		if plan := entry.Plan(&policy.Call{Input: json.RawMessage(input)}); plan.Failure != nil {
			if !strings.HasSuffix(plan.Failure.Detail, ".") || plan.Failure.Code != protocol.ToolCallInvalid {
				t.Errorf("%s(%.40s): %+v is not a sentence", entry.Name, input, plan.Failure)
			}
			continue // such a call never reaches the tool
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a call with an accepted input must end at once
		_, err := c.Tool.Run(ctx, &toolbox.Call{Input: json.RawMessage(input), FirstSource: 1})
		var failure *toolbox.Failure
		switch {
		case errors.As(err, &failure):
			if !strings.HasSuffix(failure.Detail, ".") || failure.Code == "" {
				t.Errorf("%s(%.40s): %+v is not a sentence", entry.Name, input, failure)
			}
		case errors.Is(err, context.Canceled):
		case err != nil:
			t.Errorf("%s(%.40s): %v", entry.Name, input, err)
		case !c.Instant:
			t.Errorf("%s(%.40s) succeeds", entry.Name, input)
		}
		if describe := c.Tool.Spec().Describe; describe != nil {
			describe(json.RawMessage(input)) // must not panic
		}
	}
}

// checkCancel checks that a tool that waits ends with its call.
func checkCancel(t *testing.T, c *Case) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := c.Tool.Run(ctx, &toolbox.Call{Input: json.RawMessage(c.Waits), FirstSource: 1})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%s: %v", c.Tool.Spec().Name, err)
	}
}
