package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

const (
	defaultTimeout = time.Minute
	maxOutput      = 64 << 10 // bytes of the output that the model and the reader get
)

// Run executes a call of a tool with its timeout, and limits and cleans the output. A panic of a tool is a failure of the tool.
func Run(ctx context.Context, tool Tool, call *Call) (result Result, failure *protocol.ToolError) {
	timeout := tool.Spec().Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			result, failure = Result{}, &protocol.ToolError{Code: protocol.ToolCallFailed, Detail: "The tool failed."}
		}
	}()
	result, err := execute(bounded, tool, call)
	if err == nil {
		if result.Output = Clean(result.Output); !result.Framed {
			result.Output = foreign.Escape(result.Output)
		}
		result.Sources = result.Sources[:min(len(result.Sources), protocol.MaxToolSources)]
		return result, nil
	}
	var shown *Failure
	switch {
	case errors.As(err, &shown):
		return Result{}, &protocol.ToolError{Code: shown.Code, Detail: shown.Detail}
	case ctx.Err() != nil:
		return Result{}, &protocol.ToolError{Code: protocol.ToolCallCancelled, Detail: "The turn ended first."}
	case bounded.Err() != nil:
		return Result{}, &protocol.ToolError{Code: protocol.ToolCallTimeout, Detail: fmt.Sprintf("The tool took longer than %s.", timeout)}
	}
	return Result{}, &protocol.ToolError{Code: protocol.ToolCallFailed, Detail: "The tool failed."}
}

// execute runs a tool between the failpoints of a tool call.
func execute(ctx context.Context, tool Tool, call *Call) (result Result, err error) {
	if err := failpoint.Before(failpoint.ToolAfterIntent); err != nil {
		return Result{}, err
	}
	if err := checkJSON(call.Input); err != nil {
		return Result{}, err
	}
	result, err = tool.Run(ctx, call)
	if err = failpoint.After(failpoint.ToolAfterIntent, err); err != nil {
		return Result{}, err
	}
	return result, failpoint.Before(failpoint.ToolAfterEffect)
}

// checkJSON returns an error if the arguments of a call are not a JSON object. Its text tells the model what is wrong.
func checkJSON(input json.RawMessage) error {
	var written map[string]json.RawMessage
	var text string
	if json.Unmarshal(input, &written) != nil || len(written) != 1 || json.Unmarshal(written[llm.InvalidArguments], &text) != nil {
		return nil
	}
	reason := "it is not an object"
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		reason = err.Error()
	}
	return &Failure{Code: "invalid_input", Detail: "invalid JSON: " + reason}
}

// Clean limits the length of a text and removes the characters that can hide content from a reader; see
// foreign.Clean.
func Clean(output string) string {
	if len(output) > maxOutput {
		output = output[:maxOutput] + "\n[cut]"
	}
	return foreign.Clean(turnlog.Storable(output))
}
