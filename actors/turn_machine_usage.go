package actors

import "turnstone/protocol"

// bytesPerEstimatedToken turns bytes into an estimate of tokens: English has four to a token, other text fewer.
const bytesPerEstimatedToken = 4

// stepUsage counts the tokens of a model step: of the call under way and of those before it that were cut. What a provider
// reports is final only once the answer has ended: until then Anthropic reports about one token of output, and OpenAI
// nothing. The usage of a call that was stopped, cut, or failed is therefore estimated.
type stepUsage struct {
	spent    ModelUsage // of earlier calls of the step
	lost     int        // earlier calls whose input is not known: they were asked by a process that is gone
	reported ModelUsage // by the provider, of this call
	final    bool       // the call ended by itself
	hint     int        // estimated input tokens of this call; 0: it was not asked yet
	answered int        // bytes that this call has answered
}

// add counts a chunk.
func (u *stepUsage) add(chunk *ModelChunk) {
	switch chunk.Kind {
	case ChunkText, ChunkReasoning:
		u.answered += len(chunk.Text)
	case ChunkToolCall:
		u.answered += len(chunk.ToolCall.Name) + len(chunk.ToolCall.Input)
	case ChunkUsage:
		u.reported = chunk.Usage
	case ChunkStop:
		u.final = true
	case ChunkOpaque:
	}
}

// asked notes the estimated input of the call.
func (u *stepUsage) asked(hint int) {
	u.hint = hint
	u.spent.InputTokens += u.lost * hint
	u.lost = 0
}

// nextCall begins to count another call of the step.
func (u *stepUsage) nextCall() { *u = stepUsage{spent: u.total(), lost: u.lost} }

// lose counts a call of a process that is gone, by what it had answered. Nobody knows of one that had not answered.
func (u *stepUsage) lose(said int) {
	if said == 0 {
		return
	}
	u.spent = addUsage(u.spent, ModelUsage{OutputTokens: estimateTokens(said), Estimated: true})
	u.lost++
}

// total is what the step has used so far.
func (u *stepUsage) total() ModelUsage { return addUsage(u.spent, u.call()) }

// call is what the call under way has used.
func (u *stepUsage) call() ModelUsage {
	if u.final && u.reported != (ModelUsage{}) || u.hint == 0 && u.answered == 0 {
		return u.reported
	}
	return estimatedUsage(u.reported, u.hint, u.answered)
}

// estimatedUsage completes what a provider reported of a call that it did not end.
func estimatedUsage(reported ModelUsage, hint, said int) ModelUsage {
	if reported.InputTokens == 0 {
		reported.InputTokens = hint
	}
	reported.OutputTokens = max(reported.OutputTokens, estimateTokens(said))
	reported.Estimated = true
	return reported
}

func estimateTokens(bytes int) int {
	return (bytes + bytesPerEstimatedToken - 1) / bytesPerEstimatedToken
}

func addUsage(a, b ModelUsage) ModelUsage {
	return ModelUsage{
		InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens,
		ReasoningTokens: a.ReasoningTokens + b.ReasoningTokens, CachedInputTokens: a.CachedInputTokens + b.CachedInputTokens,
		Estimated: a.Estimated || b.Estimated,
	}
}

func (m *turnMachine) totalUsage() protocol.Usage {
	total := m.stepUsage.total() // of the step under way; nothing right after endStep
	for _, step := range m.steps {
		total = addUsage(step.Usage, total)
	}
	return protocol.Usage(total)
}
