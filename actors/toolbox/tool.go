package toolbox

import (
	"context"
	"encoding/json"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Tool is a function that a model may call.
type Tool interface {
	// Spec describes the tool.
	Spec() Spec
	// Run executes a call. ctx ends with the turn or at the call's deadline. The error is shown to the model and the
	// reader: a *Failure with its code and detail, any other error as "tool_error" without its text.
	Run(ctx context.Context, call *Call) (Result, error)
}

// Spec describes a tool.
type Spec struct {
	Name        string
	Kind        string // a value of protocol.ToolStarted.Kind
	Title       string
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the input
	ReadOnly    bool            // has no effects, so it is run again after a crash; other tools never are
	Timeout     time.Duration
}

// Call is one call.
type Call struct {
	turnlog.Scope
	Input json.RawMessage
	// FirstSource is the number of the first source of the result; the others follow. No other source of the turn has one
	// of these protocol.MaxToolSources numbers.
	FirstSource int
}

// Result is what a call returns.
type Result struct {
	Output  string
	Sources []protocol.Source // that the output shows, at most protocol.MaxToolSources
}

// Failure is an error of a tool that may be shown to the model and the reader.
type Failure struct {
	Code   protocol.ToolErrorCode
	Detail string
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Detail }
