package sitetest

import (
	"encoding/json"
	"testing"
)

// Value returns the value at a path of the JSON body. It fails the test unless the response has the status.
func (a *Response) Value(t *testing.T, status int, path ...any) any {
	t.Helper()
	var value any
	a.Want(t, status, &value)
	return At(t, value, path...)
}

// Text is Value for a string. It fails the test if the value is not a string.
func (a *Response) Text(t *testing.T, status int, path ...any) string {
	t.Helper()
	text, ok := a.Value(t, status, path...).(string)
	if !ok {
		t.Fatalf("%v is not a string: %s", path, a.Body)
	}
	return text
}

// Value returns the value at a path of the event's data.
func (e Event) Value(t *testing.T, path ...any) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(e.Data), &value); err != nil {
		t.Fatal(err)
	}
	return At(t, value, path...)
}

// At returns the value at a path of member names and indices; a negative index counts from the end. It fails the test
// if the path does not exist.
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
			t.Fatalf("the value has no %v", path[:i+1])
		}
	}
	return value
}
