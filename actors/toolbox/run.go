package toolbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/foreign"
)

const (
	defaultTimeout = time.Minute
	// abandonAfter is how long a tool may take to return after its context has ended. Then the call ends without it.
	abandonAfter = time.Second
	maxShown     = 64 << 10  // bytes of the output that the model and the reader get; the model can read on in the rest
	maxOutput    = 512 << 10 // bytes of an output
)

// Ran is the result of a call, in the form that the model and the reader get.
type Ran struct {
	Result
	Whole string // the whole output, if Output is only its beginning; empty: Output is whole
	Bytes int    // of the output that the tool has returned
}

// Run executes a call of a tool with its timeout, and limits and cleans the output. A panic of a tool, and a tool that never
// returns, is a failure of the tool.
func Run(ctx context.Context, tool Tool, call *Call) (Ran, *protocol.ToolError) {
	timeout := tool.Spec().Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := await(bounded, tool, call)
	if err == nil {
		return shown(result), nil
	}
	var failure *Failure
	switch {
	case errors.As(err, &failure):
		return Ran{}, failed(failure.Code, failure.Detail)
	case ctx.Err() != nil:
		return Ran{}, &protocol.ToolError{Code: protocol.ToolCallCancelled, Detail: "The answer ended first."}
	case bounded.Err() != nil:
		return Ran{}, &protocol.ToolError{Code: protocol.ToolCallTimeout, Detail: fmt.Sprintf("The tool took longer than %s.", timeout)}
	}
	return Ran{}, &protocol.ToolError{Code: protocol.ToolCallFailed, Detail: "The tool failed."}
}

// checkTimeout limits Spec.Check. The user is asked about a call that could not be checked in time.
const checkTimeout = 5 * time.Second

// Check returns why a call cannot succeed; nil: it may.
func Check(ctx context.Context, spec *Spec, call *Call) *protocol.ToolError {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var failure *Failure
	if errors.As(spec.Check(ctx, call), &failure) {
		return failed(failure.Code, failure.Detail)
	}
	return nil
}

// maxDetail limits the text of a failure, in bytes.
const maxDetail = 2000

// failed returns a failure. Its text is cleaned and escaped, because it may quote the input or what a tool has read.
func failed(code protocol.ToolErrorCode, detail string) *protocol.ToolError {
	return &protocol.ToolError{Code: code, Detail: foreign.Escape(clean(detail, maxDetail))}
}

// errPanicked is the error of a tool that panicked.
var errPanicked = errors.New("the tool panicked")

// await runs a tool in a goroutine of its own. A tool that does not return in time is abandoned: its goroutine ends when it
// does.
func await(ctx context.Context, tool Tool, call *Call) (Result, error) {
	type returned struct {
		result Result
		err    error
	}
	done := make(chan returned, 1)
	go func() {
		r := returned{err: errPanicked}
		defer func() {
			_ = recover()
			done <- r
		}()
		r.result, r.err = execute(ctx, tool, call)
	}()
	select {
	case r := <-done:
		return r.result, r.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(abandonAfter)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.result, r.err
	case <-timer.C:
		return Result{}, ctx.Err()
	}
}

// execute runs a tool between the failpoints of a tool call.
func execute(ctx context.Context, tool Tool, call *Call) (result Result, err error) {
	if err := failpoint.Before(failpoint.ToolAfterIntent); err != nil {
		return Result{}, err
	}
	result, err = tool.Run(ctx, call)
	if err = failpoint.After(failpoint.ToolAfterIntent, err); err != nil {
		return Result{}, err
	}
	return result, failpoint.Before(failpoint.ToolAfterEffect)
}

// shown returns a result with a clean output that is cut at a border of its structure.
func shown(result Result) Ran {
	r := Ran{Result: result, Bytes: len(result.Output)}
	output := clean(result.Output, maxOutput)
	if !result.Framed {
		output = foreign.Escape(output)
	}
	r.Output = foreign.Cut(output, maxShown)
	if len(r.Output) < len(output) {
		r.Whole = output
	}
	r.Sources = r.Sources[:min(len(r.Sources), protocol.MaxToolSources)]
	return r
}

// clean limits the length of a text and removes the characters that can hide content from a reader; see foreign.Clean.
func clean(text string, limit int) string {
	if len(text) > limit {
		text = foreign.Cut(text, limit) + fmt.Sprintf("\n[The rest of %d bytes is left out.]", len(text))
	}
	return foreign.Clean(foreign.Storable(text))
}
