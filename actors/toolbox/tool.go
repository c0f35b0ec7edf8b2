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

// Spec describes a tool. A tool without an effect is EffectRead.
type Spec struct {
	Name          string
	Kind          string // a value of protocol.ToolStarted.Kind
	Title         string
	Description   string          // for the model
	Schema        json.RawMessage // JSON Schema of the input: an object
	Effect        protocol.ToolEffect
	Risk          protocol.Risk
	Reversibility protocol.Reversibility
	// Repeatable means that two calls with the same Call.ToolID have one effect. Such a call, and one of a tool that only
	// reads, is run again after a crash; any other never is.
	Repeatable bool
	// Private results contain data of the account other than the conversation itself: files, other conversations, the
	// location.
	Private bool
	// Untrusted results contain text of strangers, as web pages do.
	Untrusted bool
	// Outward returns what a call sends out of the service: a search query, a web address. nil: nothing.
	Outward func(input json.RawMessage) string
	// Unavailable is why the tool cannot be used, a sentence; empty: it can.
	Unavailable string
	Timeout     time.Duration // of a call; 0: a minute
}

// RunsAgain reports whether a call whose result was lost is run again.
func (s *Spec) RunsAgain() bool { return s.Effect == protocol.EffectRead || s.Repeatable }

// Call is one call.
type Call struct {
	turnlog.Scope
	TurnID protocol.TurnID
	// ToolID identifies the call. It is the same when the call is run again after a crash.
	ToolID protocol.ToolID
	// Input is valid: it conforms to the schema of the tool.
	Input json.RawMessage
	// FirstSource is the number of the first source of the result; the others follow. No other source of the turn has one
	// of these protocol.MaxToolSources numbers.
	FirstSource int
	// Progress reports the progress of the call to the reader. It never blocks, and may be called as often as the tool
	// likes: a reader gets at most four reports a second, and always the newest. nil: no reader waits.
	Progress func(label string, progress *protocol.Progress)
}

// Report reports progress; done of total, if total is not 0.
func (c *Call) Report(label string, done, total int) {
	if c.Progress == nil {
		return
	}
	var progress *protocol.Progress
	if total > 0 {
		progress = &protocol.Progress{Done: done, Total: total}
	}
	c.Progress(label, progress)
}

// Result is what a call returns.
type Result struct {
	Output string
	// Framed means that the tool has framed every foreign text in the output with package foreign; otherwise Run escapes
	// the whole output.
	Framed  bool
	Empty   bool              // nothing was found; Output says so
	Sources []protocol.Source // that the output shows, at most protocol.MaxToolSources
	// Events are reported to readers with the result, for example that an artifact has a new version.
	Events []protocol.Payload
}

// Failure is an error of a tool that may be shown to the model and the reader.
type Failure struct {
	Code   protocol.ToolErrorCode
	Detail string
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Detail }
