package protocol

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestEveryReasonOfAnImportIsPublished(t *testing.T) {
	field, _ := reflect.TypeFor[ImportEntry]().FieldByName("Reason")
	published := strings.Split(field.Tag.Get("enum"), ",")
	if len(published) != len(ImportReasons) {
		t.Errorf("%d reasons are published, %d exist", len(published), len(ImportReasons))
	}
	for _, reason := range ImportReasons {
		if !slices.Contains(published, string(reason)) {
			t.Errorf("%s is not published", reason)
		}
	}
}
