package main

import (
	"bytes"
	"os"
	"testing"
)

func TestTheCommittedLimitsMatchTheProtocol(t *testing.T) {
	const file = "../../web/src/generated/limits.ts"
	openapi, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := limitConstants(openapi)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s does not match package protocol (%v): run make generate", file, err)
	}
}

func TestALimitThatTheDocumentDoesNotHaveIsAnError(t *testing.T) {
	if text, err := limitConstants([]byte(`{"components": {"schemas": {"PutDraftInputBody": {"properties": {"attachments": {"maxItems": "many"}}}}}}`)); err == nil {
		t.Errorf("generated %q", text)
	}
}
