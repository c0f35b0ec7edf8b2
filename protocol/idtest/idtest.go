// Package idtest parses identifiers. Only tests import it.
package idtest

import (
	"encoding"
	"testing"
)

// Parse returns the identifier of a text, and fails the test if there is none.
func Parse[ID any, Pointer interface {
	*ID
	encoding.TextUnmarshaler
}](t testing.TB, text string) (id ID) {
	t.Helper()
	if err := Pointer(&id).UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return id
}
