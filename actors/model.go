package actors

import (
	"context"
	"encoding/json"
	"time"
)

// Model is one way to ask a language model, behind one wire format.
//
// Contract: Stream asks once and calls emit for every chunk, in order, from the calling goroutine, until the answer
// ends; it returns nil after it has emitted exactly one ChunkStop, and an error otherwise. Nothing is emitted after
// ctx is done. Retries happen inside Stream and only before the first emitted chunk; afterwards a cut answer is
// reported as a *ModelError with Cut set and the caller decides. Safe for concurrent use. A failing emit (the turn is
// gone) ends Stream with that error. Implementations own their timeouts: connecting, first byte, idle between chunks.
type Model interface {
	Stream(ctx context.Context, request ModelRequest, emit func(ModelChunk) error) error
	// Continues says whether the provider goes on from a trailing assistant message (prefill), so that a cut answer
	// need not start again.
	Continues() bool
	// Ready asks the provider cheaply whether it can be reached with these credentials.
	Ready(ctx context.Context) error
	// Family names the provider for operators: "scripted", "openai" or "anthropic".
	Family() string
}

// ModelRequest is everything one model step sees. It holds no account identifier.
type ModelRequest struct {
	Model           string         // the provider's name of the model
	System          string         // instructions; empty for none
	Messages        []ModelMessage // oldest first; the last is what is to be answered, or an assistant prefix to continue
	Tools           []ModelTool
	ReasoningEffort string // "low", "medium", "high"; empty for the provider's default
	MaxOutputTokens int    // > 0
	FirstByte       time.Duration
	Step            int // 1 for the turn's first model call; the scripted model needs it
	TurnInput       int // 1 + the index in Messages of the user message that began the turn; 0: not told. For the scripted model
}

// ModelMessage is one entry of the conversation as a model sees it.
type ModelMessage struct {
	Role        string          // "user", "assistant" or "tool"
	Text        string          // for "tool": the result
	ToolCalls   []ModelToolCall // only of "assistant"
	ToolCallID  string          // only of "tool": which call this answers, the provider's identifier
	ToolFailed  bool            // only of "tool"
	Opaque      json.RawMessage // only of "assistant": what the same provider wants back unread (signed reasoning)
	OpaqueOwner string          // the Family that made Opaque; others ignore it
}

// ModelTool describes a tool to the model.
type ModelTool struct {
	Name, Description string
	Schema            json.RawMessage // JSON Schema of the input object
}

// ModelToolCall is one call that the model asked for.
type ModelToolCall struct {
	ID    string          `json:"id"` // the provider's identifier, echoed with the result
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // always a JSON object; {} where the model sent nothing
}

// ChunkKind says which fields of a ModelChunk count.
type ChunkKind uint8

// The chunks that a model yields.
const (
	ChunkText      ChunkKind = iota + 1 // Text: more of the answer
	ChunkReasoning                      // Text: more of a summary of the reasoning
	ChunkToolCall                       // ToolCall: one whole call
	ChunkUsage                          // Usage: totals of this step so far; the last one counts
	ChunkOpaque                         // Opaque: to be sent back with this step's message
	ChunkStop                           // Stop: why the answer ended; always last
)

// ModelChunk is one piece of an answer, as it arrives.
type ModelChunk struct {
	Kind     ChunkKind
	Text     string
	ToolCall ModelToolCall
	Usage    ModelUsage
	Opaque   json.RawMessage
	Owner    string // of Opaque: the provider's Family; the caller of Stream fills it in
	Stop     ModelStop
}

// ModelUsage counts tokens of one step.
type ModelUsage struct {
	InputTokens, OutputTokens, ReasoningTokens, CachedInputTokens int
	Estimated                                                     bool // the provider gave none; counted by us
}

// ModelStop is why an answer ended.
type ModelStop string

// The reasons that the turn distinguishes.
const (
	StopEndTurn   ModelStop = "end_turn"
	StopToolCalls ModelStop = "tool_calls"
	StopMaxTokens ModelStop = "max_tokens"
	StopRefusal   ModelStop = "refusal"

	stopBudget ModelStop = "budget" // not of a model: the account's budget cut the answer short
)

// ModelError is a failed or cut model call. Code is one of "model_unavailable" (refused, 5xx, timed out),
// "model_rate_limited", "model_rejected" (the provider says the request is wrong: 4xx), "model_unauthorized",
// "model_protocol" (what came is not the wire format) and "model_context_exceeded".
type ModelError struct {
	Code       string
	Retryable  bool          // asking again later may work
	RetryAfter time.Duration // what the provider asked for; 0 when it did not say
	Cut        bool          // chunks had been emitted before it broke
	Err        error         // for the log; never shown to a user
}

func (e *ModelError) Error() string {
	if e.Err == nil {
		return e.Code
	}
	return e.Code + ": " + e.Err.Error()
}

func (e *ModelError) Unwrap() error { return e.Err }
