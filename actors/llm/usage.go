package llm

// bytesPerToken converts bytes to an estimated number of tokens: English has four bytes per token, other text fewer.
const bytesPerToken = 4

// UsageCounter counts the tokens of a model step: of the current call and of earlier calls that were cut off. The usage
// that a provider reports is final only once the answer has ended: before that, Anthropic reports about one output
// token, and OpenAI nothing. The usage of a call that was stopped, cut off, or failed is therefore estimated.
type UsageCounter struct {
	spent       Usage // of earlier calls of the step
	lost        int   // number of earlier calls by a process that is gone, whose input tokens are not known
	reported    Usage // by the provider, for the current call
	final       bool  // the current call ended by itself
	input       int   // estimated input tokens of the current call; 0: the request was not built yet
	outputBytes int   // bytes of output of the current call
	free        bool  // the current call was refused or not made: it costs nothing unless it has output
}

// Add counts a chunk of the current call.
func (u *UsageCounter) Add(chunk *Chunk) {
	switch chunk.Kind {
	case ChunkText, ChunkReasoning:
		u.AddOutput(len(chunk.Text))
	case ChunkToolCall:
		u.AddOutput(len(chunk.ToolCall.Name) + len(chunk.ToolCall.Input))
	case ChunkUsage:
		u.reported = chunk.Usage
		u.free = chunk.Usage == Usage{}
	case ChunkStop:
		u.CallEnded()
	case ChunkOpaque, ChunkThought, ChunkCitation, ChunkWaiting:
	}
}

// AddOutput counts bytes of output of the current call.
func (u *UsageCounter) AddOutput(bytes int) { u.outputBytes += bytes }

// CallEnded notes that the current call ended by itself, so that the reported usage is final.
func (u *UsageCounter) CallEnded() { u.final = true }

// RequestBuilt notes the estimated input tokens of the current call. The lost calls get the same estimate.
func (u *UsageCounter) RequestBuilt(tokens int) {
	u.input = tokens
	u.spent.InputTokens += u.lost * tokens
	u.lost = 0
}

// CallRefused notes that the current call was refused, or was not made.
func (u *UsageCounter) CallRefused() { u.free = true }

// NextCall starts to count another call of the step.
func (u *UsageCounter) NextCall() { *u = UsageCounter{spent: u.Total(), lost: u.lost} }

// AddLostCall counts a call by a process that is gone, from the bytes of its output in the log. A call without output
// left no trace and is not counted.
func (u *UsageCounter) AddLostCall(bytes int) {
	if bytes == 0 {
		return
	}
	u.spent = u.spent.Plus(Usage{OutputTokens: estimateTokens(bytes), Estimated: true})
	u.lost++
}

// Total returns the usage of the step so far.
func (u *UsageCounter) Total() Usage { return u.spent.Plus(u.call()) }

// call returns the usage of the current call so far. What a provider reported for a call that did not end by itself is
// completed with estimates.
func (u *UsageCounter) call() Usage {
	if u.free && u.outputBytes == 0 {
		return u.reported
	}
	if u.final && u.reported != (Usage{}) || u.input == 0 && u.outputBytes == 0 {
		return u.reported
	}
	call := u.reported
	if call.InputTokens == 0 {
		call.InputTokens = u.input
	}
	call.OutputTokens = max(call.OutputTokens, estimateTokens(u.outputBytes))
	call.Estimated = true
	return call
}

func estimateTokens(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

// PictureTokens is what vendors count, at most, for a picture of the size that the service sends.
const PictureTokens = 1600

// EstimateInput estimates the number of input tokens of a request.
func EstimateInput(request *Request) int {
	bytes, pictures := len(request.System), 0
	for i := range request.Messages {
		bytes += len(request.Messages[i].Text)
		pictures += len(request.Messages[i].Pictures)
	}
	return max(1, bytes/bytesPerToken+pictures*PictureTokens)
}

// Plus returns the sum of two usages.
func (u Usage) Plus(other Usage) Usage {
	return Usage{
		InputTokens: u.InputTokens + other.InputTokens, OutputTokens: u.OutputTokens + other.OutputTokens,
		ReasoningTokens: u.ReasoningTokens + other.ReasoningTokens, CachedInputTokens: u.CachedInputTokens + other.CachedInputTokens,
		Estimated: u.Estimated || other.Estimated,
	}
}
