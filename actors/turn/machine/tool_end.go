package machine

import (
	"fmt"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

// ToolResult is what a tool call has returned.
type ToolResult struct {
	Output  string
	Whole   string // the whole output, if Output is only its beginning; empty: Output is whole
	Bytes   int    // of the whole output
	Empty   bool
	Sources []protocol.Source
	Events  []protocol.Payload // that are reported with the result
	// Unstarted means that the tool did not run, because the turn ended first: the call had no effect.
	Unstarted bool
}

// ToolProgressed reports the progress of a running call.
func (m *Batch) ToolProgressed(id protocol.ToolID, label string, progress *protocol.Progress) {
	call := m.tool(id)
	if m.ended || call == nil || call.state != protocol.ToolRunning {
		return
	}
	m.emit(&protocol.ToolProgress{PartID: call.part, ToolID: id, Label: label, Progress: progress})
}

// ToolEnded processes the result of a call.
func (m *Batch) ToolEnded(id protocol.ToolID, result ToolResult, failure *protocol.ToolError, took time.Duration) {
	call := m.tool(id)
	if m.ended || call == nil || call.state != protocol.ToolRunning {
		return
	}
	switch {
	case failure == nil:
		m.succeed(call, result, took)
	case failure.Code == protocol.ToolCallCancelled && (call.readOnly || result.Unstarted):
		m.completeTool(call, protocol.ToolCancel, toolOutput{}, failure, took)
	case failure.Code == protocol.ToolCallCancelled:
		m.completeTool(call, protocol.ToolLost, toolOutput{}, failure, took)
	case !call.readOnly && (failure.Code == protocol.ToolCallTimeout || failure.Code == protocol.ToolCallFailed): // the effect may have happened
		m.completeTool(call, protocol.ToolLost, toolOutput{}, &protocol.ToolError{
			Code: protocol.ToolOutcomeMissing, Detail: "The tool returned no result. It may or may not have taken effect.",
		}, took)
	case failure.Code == protocol.ToolCallDenied:
		m.completeTool(call, protocol.ToolDenied, toolOutput{}, failure, took)
	default:
		m.completeTool(call, protocol.ToolFails, toolOutput{}, failure, took)
	}
	m.advance()
}

// succeed stores the result of a call. The model can read on in one that was cut.
func (m *Batch) succeed(call *toolCall, result ToolResult, took time.Duration) {
	output := toolOutput{text: result.Output, bytes: result.Bytes, empty: result.Empty, sources: result.Sources}
	switch {
	case result.Whole == "":
	case m.stored+len(result.Whole) <= maxStored:
		output.resultID = resultID(call.number)
		output.bytes = len(result.Whole)
	default:
		output.cut = true
		output.text = foreign.Close(output.text) + fmt.Sprintf("\n[This is the beginning of a result of %d bytes. The rest is left out, because this answer keeps no more results.]", len(result.Whole))
	}
	for _, event := range result.Events {
		m.emit(event)
	}
	m.completeTool(call, protocol.ToolSucceeds, output, nil, took)
	if output.resultID != "" {
		m.record(turnlog.RecordResult, output.resultID, turnlog.ResultRecord{Text: result.Whole})
	}
}
