package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"turnstone/actors/policy"
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

// Spec describes a tool. A tool that changes nothing has EffectRead.
type Spec struct {
	Name          string
	Kind          string // a value of protocol.ToolStarted.Kind
	Title         string
	Description   string          // for the model
	Schema        json.RawMessage // JSON Schema of the input: an object
	Effect        protocol.ToolEffect
	Risk          protocol.Risk
	Reversibility protocol.Reversibility
	// Repeatable means that two calls with the same Call.ToolID have one effect, and send nothing out of the service. Such a
	// call is run again after a crash, and also one of a tool that only reads, unless the user has approved that call: the
	// approval is for sending something once. Any other call never is.
	Repeatable bool
	// Private results contain data of the account other than the conversation itself: files, other conversations, the
	// location.
	Private bool
	// PrivateFailures means that a failure of a private tool may contain such data, too. Failures of other tools have no text
	// but that of the service.
	PrivateFailures bool
	// Untrusted results contain text of strangers, as web pages do.
	Untrusted bool
	// Own means that the tool writes only to artifacts of the account and to proposals for it: such a write needs no
	// approval.
	Own        bool
	AlwaysAsks bool // every call needs an approval, whatever its effect
	// Describe returns what a call with a valid input would do, for the user who approves it, and what it sends out of the
	// service. nil: the title says all, and nothing is sent out.
	Describe func(input json.RawMessage) policy.Description
	// Check returns a *Failure if a call with a valid input cannot succeed now, so that the user is not asked about it. It has no
	// effect, and runs before each request for an approval; Run checks the call again. nil: nothing is known before a call runs.
	Check func(ctx context.Context, call *Call) error
	// Unavailable is why the tool cannot be used, a sentence; empty: it can.
	Unavailable string
	// Consent is the source to which the account has to consent before the tool is offered; empty: none. A temporary
	// conversation reads no such source. The tool itself checks the consent again in each call.
	Consent protocol.MemorySource
	// Explains means that the tool is offered without the consent too, also in a temporary conversation, because its result says
	// what is missing.
	Explains bool
	// InProject means that the tool is only for conversations in a project.
	InProject bool
	Timeout   time.Duration // of a call; 0: a minute
}

// Access is what a conversation can reach in addition to itself.
type Access struct {
	Project   bool // it is in a project
	Temporary bool
	Granted   []protocol.MemorySource // to which the account consents
}

// Withheld returns why a conversation is not offered the tool, a sentence; empty: it is.
func (s *Spec) Withheld(access *Access) string {
	switch {
	case s.Unavailable != "":
		return s.Unavailable
	case s.InProject && !access.Project:
		return "Only conversations in a project can use this tool."
	case s.Explains:
		return ""
	case s.Consent != "" && access.Temporary:
		return "Temporary conversations cannot use this tool."
	}
	return s.unconsented(access)
}

// Missing returns why a conversation cannot use the tool, a sentence; empty: it can. A tool that is offered without the consent
// cannot be used without it.
func (s *Spec) Missing(access *Access) string {
	return cmp.Or(s.Withheld(access), s.unconsented(access))
}

func (s *Spec) unconsented(access *Access) string {
	switch {
	case s.Consent == "" || slices.Contains(access.Granted, s.Consent):
		return ""
	case s.Consent == protocol.SourceLocation:
		return "You have not allowed the use of your location in the settings."
	}
	return "You have not allowed this in the settings."
}

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
