package main

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"turnstone/protocol"
)

func TestTheCommittedTypesMatchTheRegistry(t *testing.T) {
	const file = "../../web/src/generated/events.ts"
	want, err := eventTypes()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s does not match the registry (%v): run make generate", file, err)
	}
}

func TestAFieldWithoutATypeScriptTypeIsAnError(t *testing.T) {
	for name, value := range map[string]any{
		"a map": struct {
			M map[string]int `json:"m"`
		}{},
		"no name": struct{ A int }{},
		"not sent": struct {
			A int `json:"-"`
		}{},
		"a foreign kind": struct {
			A protocol.AccountID `json:"a"`
		}{},
	} {
		g := &generator{declared: map[string]string{}}
		if text, err := g.fields(reflect.TypeOf(value), nil); err == nil {
			t.Errorf("%s was generated as %q, want an error", name, text)
		}
	}
}

func TestNullableAndOptionalFieldsDiffer(t *testing.T) {
	g := &generator{declared: map[string]string{}}
	text, err := g.fields(reflect.TypeFor[struct {
		Null   *protocol.Progress `json:"null"`
		Absent *int               `json:"absent,omitempty" doc:"Not */ always."`
		One    int                `json:"one" enum:"1"`
		State  protocol.TurnState `json:"state" enum:"failed,completed"`
	}](), nil)
	want := []string{"null: Progress | null;", "/** Not * / always. */\n  absent?: number;", "one: 1;", `state: "failed" | "completed";`}
	for _, part := range want {
		if err != nil || !strings.Contains(text, part) {
			t.Errorf("%q is missing in %s, %v", part, text, err)
		}
	}
}
