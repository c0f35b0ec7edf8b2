package verify

import (
	"errors"
	"fmt"
)

// Kind is the kind of a violation.
type Kind string

// The kinds of violations.
const (
	Lost          Kind = "lost"              // something that was acknowledged is not stored
	Gaps          Kind = "gaps"              // an event does not follow the one before it
	Repeated      Kind = "repeated events"   // a reader got an event again
	Changed       Kind = "changed bytes"     // two readers, or a reader and the store, have different bytes
	Ends          Kind = "double terminals"  // a log that has several ends, or events after its end
	NotDurable    Kind = "seen, not durable" // a reader got something that is not stored
	Doubled       Kind = "doubled effects"   // something happened twice
	Order         Kind = "broken order"      // events that contradict the ones before them
	NotWhole      Kind = "not whole"         // an effect that is stored partially
	NotAtRest     Kind = "not at rest"       // work that has not ended
	NotIdempotent Kind = "not idempotent"    // one key with several responses
	WrongMessage  Kind = "wrong page"        // a message that is not what its events produce
	Untruthful    Kind = "untruthful 503"    // a refused request that had an effect
	Malformed     Kind = "bad response"      // something that no contract allows
)

// Finding is one violation.
type Finding struct {
	Kind Kind
	Text string
}

// Error implements error.
func (f Finding) Error() string { return string(f.Kind) + ": " + f.Text }

func found(kind Kind, format string, args ...any) Finding {
	return Finding{kind, fmt.Sprintf(format, args...)}
}

// Findings is a list of violations.
type Findings []Finding

func (f *Findings) add(kind Kind, format string, args ...any) {
	*f = append(*f, found(kind, format, args...))
}

// Err returns the findings as one error, or nil if there is none.
func (f Findings) Err() error {
	all := make([]error, len(f))
	for i, one := range f {
		all[i] = one
	}
	return errors.Join(all...)
}
