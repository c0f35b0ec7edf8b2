package protocol

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestAnErrorKeepsItsMeaningOnItsWay(t *testing.T) {
	err := fmt.Errorf("starting a turn: %w", Errorf(CodeUnavailable, "the store did not answer: %w", io.ErrUnexpectedEOF))
	if CodeOf(err) != CodeUnavailable || !errors.Is(err, &Error{Code: CodeUnavailable}) || errors.Is(err, &Error{Code: CodeConflict}) {
		t.Errorf("the meaning of %v is %s", err, CodeOf(err))
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the cause of %v is gone", err)
	}
	if CodeOf(io.EOF) != CodeInternal || CodeOf(nil) != CodeInternal {
		t.Error("an error without a meaning is a defect of ours")
	}
	if CodeOf(ErrFenced) == CodeUnavailable {
		t.Error("being fenced is an answer, not an outage")
	}
}

func TestAConflictCarriesWhatStands(t *testing.T) {
	var e *Error
	if err := Conflict(CodeStaleVersion, 7, "it has changed"); !errors.As(err, &e) || e.Current != 7 {
		t.Errorf("%+v", e)
	}
	invalid := Invalid("body.title", "is too long")
	if invalid.Code != CodeInvalid || len(invalid.Fields) != 1 || invalid.Fields[0].Field != "body.title" {
		t.Errorf("%+v", invalid)
	}
}
