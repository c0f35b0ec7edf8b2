package sitetest

import (
	"encoding/json"
	"testing"
)

// Value reads the answer, which has to have a status, and walks into it.
func (a *Answer) Value(t *testing.T, status int, path ...any) any {
	t.Helper()
	var value any
	a.Want(t, status, &value)
	return At(t, value, path...)
}

// Text is a Value that has to be one.
func (a *Answer) Text(t *testing.T, status int, path ...any) string {
	t.Helper()
	text, ok := a.Value(t, status, path...).(string)
	if !ok {
		t.Fatalf("%v is no text: %s", path, a.Body)
	}
	return text
}

// Value walks into the data of an event.
func (e Event) Value(t *testing.T, path ...any) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(e.Data), &value); err != nil {
		t.Fatal(err)
	}
	return At(t, value, path...)
}

// At walks into a JSON value by names and indices; the test fails where it does not lead on.
func At(t *testing.T, value any, path ...any) any {
	t.Helper()
	for i, step := range path {
		var found bool
		switch step := step.(type) {
		case string:
			members, _ := value.(map[string]any) // anything else has no members
			value, found = members[step]
		case int:
			list, _ := value.([]any)
			if step < 0 {
				step += len(list)
			}
			if found = step >= 0 && step < len(list); found {
				value = list[step]
			}
		}
		if !found {
			t.Fatalf("there is no %v", path[:i+1])
		}
	}
	return value
}
