package protocol

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestAWrappedErrorKeepsItsCodeAndCause(t *testing.T) {
	err := fmt.Errorf("starting a turn: %w", Errorf(CodeUnavailable, "the store did not respond: %w", io.ErrUnexpectedEOF))
	if CodeOf(err) != CodeUnavailable || !errors.Is(err, &Error{Code: CodeUnavailable}) || errors.Is(err, &Error{Code: CodeConflict}) {
		t.Errorf("the code of %v is %s, want %s", err, CodeOf(err), CodeUnavailable)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v has lost its cause", err)
	}
	if CodeOf(io.EOF) != CodeInternal || CodeOf(nil) != CodeInternal {
		t.Error("the code of an error without a code is not CodeInternal")
	}
}

func TestTheTextOfAnErrorHasNoEmptyParts(t *testing.T) {
	for want, err := range map[string]error{
		"unavailable":                         &Error{Code: CodeUnavailable},
		"unavailable: EOF":                    &Error{Code: CodeUnavailable, Err: io.EOF},
		"unavailable: the store is away":      &Error{Code: CodeUnavailable, Detail: "the store is away"},
		"unavailable: the store is away: EOF": &Error{Code: CodeUnavailable, Detail: "the store is away", Err: io.EOF},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAConflictCarriesTheCurrentState(t *testing.T) {
	var e *Error
	if err := Conflict(CodeStaleVersion, 7, "it has changed"); !errors.As(err, &e) || e.Current != 7 {
		t.Errorf("the conflict is %+v", e)
	}
	invalid := Invalid("body.title", "is too long")
	if invalid.Code != CodeInvalid || len(invalid.Fields) != 1 || invalid.Fields[0].Field != "body.title" {
		t.Errorf("the invalid field is %+v", invalid)
	}
}
