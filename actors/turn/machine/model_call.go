package machine

import (
	"fmt"
	"slices"
	"strings"

	"turnstone/actors/llm"
	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// The triggers of a model call. Each carries the number of the call it belongs to.

// ignored reports whether a trigger must be ignored: it belongs to another call, or the call is over, or the turn is
// cancelled.
func (m *Machine) ignored(call int) bool {
	return m.ended || call != m.call || !m.calling || m.state == protocol.TurnCancelling
}

// RequestBuilt notes the estimated input tokens of the current call, and the files in its request.
func (m *Batch) RequestBuilt(tokens int, sources []protocol.Source, reading *policy.Reading) {
	m.usage.RequestBuilt(tokens)
	m.sources, m.reading = sources, reading
}

// GrantsRead notes the calls that the user has approved for the conversation before this turn.
func (m *Batch) GrantsRead(grants []turnlog.Grant) { m.grants = grants }

// RouteChanged reports that another route of the profile makes the call. Nothing of its output was processed yet.
func (m *Batch) RouteChanged(call int, routing protocol.TurnRouting) {
	if !m.ignored(call) {
		m.emit(&routing)
	}
}

// ModelText processes more text of the answer.
func (m *Batch) ModelText(call int, delta string) {
	if m.ignored(call) || m.enforceLimits(len(delta)) {
		return
	}
	m.usage.AddOutput(len(delta))
	m.untilSentence(delta, func(text string) {
		m.text = append(m.text, text...)
		m.splitter.feed(text, m)
	})
}

// ModelReasoning processes more text of a reasoning summary.
func (m *Batch) ModelReasoning(call int, delta string) {
	if m.ignored(call) || delta == "" || m.enforceLimits(len(delta)) {
		return
	}
	m.usage.AddOutput(len(delta))
	if m.open.IsZero() || m.openType != protocol.PartReasoning {
		m.closePart(false)
		m.applyInputs()
		m.emit(&protocol.ReasoningStarted{PartID: m.newPart(), Index: m.index(), Supersedes: m.supersede()})
	}
	m.untilSentence(delta, func(text string) {
		if text != "" {
			m.emit(&protocol.ReasoningDelta{PartID: m.open, Offset: m.fold.Len(m.open), Delta: text})
		}
	})
}

// enforceLimits ends the turn if its output or its log exceeds the limit, and reports whether it did.
func (m *Batch) enforceLimits(more int) bool {
	if m.output+more <= maxTurnOutput && m.logged <= maxTurnLog {
		return false
	}
	m.effect(StopModel{})
	err := &protocol.TurnError{Code: protocol.ModelProtocol, Detail: "The answer exceeds the size limit of a turn."}
	if m.hasAnswer() {
		m.finish(protocol.TurnStopsShort, protocol.StopError, err)
	} else {
		m.finish(protocol.TurnFails, protocol.StopError, err)
	}
	return true
}

// ModelChunk processes the chunks without text: tool calls, usage, opaque state.
func (m *Batch) ModelChunk(call int, chunk *llm.Chunk) {
	if m.ignored(call) {
		return
	}
	m.usage.Add(chunk)
	switch chunk.Kind {
	case llm.ChunkToolCall:
		size := len(chunk.ToolCall.Input)
		for _, pending := range m.pending {
			size += len(pending.Input)
		}
		if !m.enforceLimits(size) {
			asked := chunk.ToolCall
			asked.Name = toolName(asked.Name)
			m.pending = append(m.pending, asked)
		}
	case llm.ChunkOpaque:
		m.opaque, m.owner = chunk.Opaque, chunk.Owner
	case llm.ChunkCitation:
		if len(m.web) < maxCitations {
			m.web = append(m.web, protocol.Citation{Title: chunk.Text, URL: protocol.WebAddress(chunk.Address)})
		}
	case llm.ChunkThought:
		m.textWasReasoning()
	case llm.ChunkWaiting:
		m.waitingForModel(chunk.Wait.Seconds())
	}
}

// textWasReasoning replaces the text of the step by a reasoning part with the same text, which the model marked as reasoning
// only at its end.
func (m *Batch) textWasReasoning() {
	m.splitter.end(m)
	text := m.prefix()
	m.closePart(false)
	for _, part := range m.fold.Parts() {
		written := part.Type == protocol.PartText || part.Type == protocol.PartCode
		if written && slices.Contains(m.stepParts, part.PartID) && !slices.Contains(m.cut, part.PartID) {
			m.cut = append(m.cut, part.PartID)
		}
	}
	m.text, m.splitter = nil, newFenceSplitter()
	if len(text) == 0 {
		return
	}
	m.emit(&protocol.ReasoningStarted{PartID: m.newPart(), Index: m.index(), Supersedes: m.supersede()})
	m.emit(&protocol.ReasoningDelta{PartID: m.open, Offset: m.fold.Len(m.open), Delta: string(text)})
	m.closePart(false)
}

// waitingForModel notifies readers that the provider is busy, and when the call is repeated.
func (m *Batch) waitingForModel(wait float64) {
	part := m.activity
	if part.IsZero() {
		part = m.newPart()
	}
	seconds := int(wait + 0.999)
	m.emit(&protocol.ActivityProgress{
		PartID: part, Activity: "waiting_for_model", Label: fmt.Sprintf("The model is busy. Trying again in %d seconds", seconds),
	})
}

// ContextTrimmed reports, once per turn, that older messages were not sent to the model. It precedes the first output
// in the same append, so that the first output does not wait for an append of its own.
func (m *Batch) ContextTrimmed(call int) {
	if m.ignored(call) || m.step() > 1 || len(m.stepParts) > 0 || m.noticed(noticeTrimmed) {
		return
	}
	m.emit(&protocol.Notice{
		PartID: m.newPart(), Index: m.index(), Kind: noticeTrimmed,
		Text: "This conversation is longer than the model can read at once. Its oldest messages were left out of this answer.",
	})
}

const noticeTrimmed = "context_trimmed"

func (m *Machine) noticed(kind string) bool {
	return slices.ContainsFunc(m.fold.Parts(), func(part protocol.Part) bool { return part.Type == protocol.PartNotice && part.Kind == kind })
}

// StillWaiting notifies readers that the model has not answered yet. again reports whether to check again later.
func (m *Batch) StillWaiting(call int) (again bool) {
	if m.ignored(call) || len(m.stepParts) > len(m.cut) {
		return false
	}
	part := m.activity
	if part.IsZero() {
		part = m.newPart()
	}
	m.emit(&protocol.ActivityProgress{PartID: part, Activity: "waiting_for_model", Label: "Waiting for the model"})
	return true
}

// ModelStopped processes the end of the model's answer, which ends the step.
func (m *Batch) ModelStopped(call int, stop llm.Stop) {
	if !m.endCall(call) {
		return
	}
	m.usage.CallEnded()
	m.splitter.end(m)
	if m.over != "" {
		m.pending = nil // the model was not offered any tool
	}
	if m.endEmpty(stop) {
		return
	}
	m.applyInputs() // the model has answered, even if without text
	m.closePart(stop == llm.StopMaxTokens || stop == llm.StopBudget)
	m.closeCutParts()
	if stop == llm.StopRefusal && !answered(m.fold.Parts()) {
		m.notice("refused", "The model's provider declined to answer this because of its content policy. Rephrase your message, or ask something else.")
	}
	switch {
	case stop == llm.StopBudget, m.callsModelAgain(stop) && m.overBudget():
		m.pending = nil
		m.finish(protocol.TurnStopsShort, protocol.StopBudgetReached, nil)
	case len(m.pending) > 0 && stop != llm.StopRefusal && stop != llm.StopMaxTokens:
		m.callTools()
	case stop == llm.StopMaxTokens:
		m.finish(protocol.TurnStopsShort, protocol.StopMaxTokens, nil)
	case stop == llm.StopRefusal:
		m.finish(protocol.TurnCompletes, protocol.StopRefusal, nil)
	case m.hasPendingInput() && m.step() < maxModelSteps:
		m.endStep(false)
	case m.over == protocol.StopToolLimit:
		m.finish(protocol.TurnStopsShort, protocol.StopToolLimit, nil)
	default:
		m.finish(protocol.TurnCompletes, protocol.StopEndTurn, nil)
	}
	m.advance()
}

// endEmpty handles an answer without text and tool calls, if the message has none from earlier steps either: the step is
// repeated once, then the turn ends incomplete. It reports whether the answer was one.
func (m *Batch) endEmpty(stop llm.Stop) bool {
	if stop != llm.StopEndTurn && stop != llm.StopToolCalls || len(m.pending) > 0 || strings.TrimSpace(string(m.text)) != "" || answered(m.fold.Parts()) {
		return false
	}
	if !m.retried {
		m.cutStep()
		m.retried = true
		m.advance()
		return true
	}
	m.notice("empty_answer", "The model gave no answer, twice. Send your message again, or choose another profile.")
	m.finish(protocol.TurnStopsShort, protocol.StopError, &protocol.TurnError{Code: protocol.ModelProtocol, Detail: "The model gave no answer.", Retryable: true})
	return true
}

func (m *Batch) notice(kind, text string) {
	m.emit(&protocol.Notice{PartID: m.newPart(), Index: m.index(), Kind: kind, Text: text})
}

// answered reports whether a message contains text or code of an answer other than white space.
func answered(parts []protocol.Part) bool {
	return slices.ContainsFunc(parts, func(part protocol.Part) bool {
		return (part.Type == protocol.PartText || part.Type == protocol.PartCode) && strings.TrimSpace(part.Text+part.Code) != ""
	})
}

// callsModelAgain reports whether the turn would call the model again.
func (m *Machine) callsModelAgain(stop llm.Stop) bool {
	return stop != llm.StopRefusal && stop != llm.StopMaxTokens && (len(m.pending) > 0 || m.hasPendingInput())
}

// ModelFailed processes a call that ended without llm.ChunkStop. An answer that was cut off is continued or repeated
// once.
func (m *Batch) ModelFailed(call int, failure *llm.Error) {
	if !m.endCall(call) {
		return
	}
	if !failure.Cut && !failure.Pending {
		m.usage.CallRefused()
	}
	if failure.Code == llm.CodeBudgetReached {
		m.finish(protocol.TurnStopsShort, protocol.StopBudgetReached, nil)
		return
	}
	if failure.Cut && !m.retried && failure.Code != protocol.ModelProtocol {
		m.cutStep()
		m.retried = true
		m.advance()
		return
	}
	err := &protocol.TurnError{Code: failure.Code, Detail: modelFailureDetail(failure.Code), Retryable: failure.Retryable}
	if m.hasAnswer() {
		m.finish(protocol.TurnStopsShort, protocol.StopError, err)
		return
	}
	m.finish(protocol.TurnFails, protocol.StopError, err)
}

func modelFailureDetail(code protocol.TurnErrorCode) string {
	switch code {
	case protocol.ModelRateLimited:
		return "The model is overloaded. Try again in a moment."
	case protocol.ModelUnauthorized:
		return "The service's access to the model was refused. Your message is saved; tell the administrator."
	case protocol.ModelCreditUsedUp:
		return "The service has used up its credit with the model's provider. Your message is saved; tell the administrator."
	case protocol.ModelRejected:
		return "The model refused the request. Try again without files, choose another profile, or start a new conversation."
	case protocol.ModelContextExceeded:
		return "This conversation is too long for the model. Start a new conversation, or edit an earlier message."
	case protocol.ModelProtocol:
		return "The model's answer could not be understood."
	}
	return "The model could not be reached, or stopped answering."
}

// endCall notes that a model call is over, and reports whether its result counts. The result does not count if it belongs
// to another call or if the turn is being cancelled; a cancelled turn ends when nothing is running any more.
func (m *Batch) endCall(call int) bool {
	if m.ended || call != m.call || !m.calling {
		return false
	}
	m.calling = false
	if m.state == protocol.TurnCancelling {
		m.advance()
		return false
	}
	return true
}

// hasAnswer reports whether the message contains any text or code of the answer.
func (m *Machine) hasAnswer() bool {
	for _, part := range m.fold.Parts() {
		if part.Type == protocol.PartText || part.Type == protocol.PartCode {
			return true
		}
	}
	return false
}
