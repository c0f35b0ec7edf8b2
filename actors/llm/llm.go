// Package llm defines what a turn needs of a language model: one streaming call, with its request, its chunks and its
// errors. The packages below providers/model implement Model; the packages of turns,
// of research and of token budgets call it.
//
// It knows no provider, no account and no store.
package llm

import (
	"context"
	"encoding/json"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Model is a client of a language model with one wire format.
//
// Contract: Stream makes one call and calls emit for every chunk, in order, from the calling goroutine, until the
// answer ends. It returns nil after it has emitted exactly one ChunkStop, and an error otherwise. Nothing is emitted
// after ctx is done. Retries happen inside Stream and only before the first emitted chunk. An answer that is cut off
// later is reported as a *Error with Cut set, and the caller decides what to do. Safe for concurrent use. When
// emit fails (the turn is gone), Stream returns that error. Implementations apply their own timeouts: connecting, first
// byte, idle between chunks.
type Model interface {
	Stream(ctx context.Context, request Request, emit func(Chunk) error) error
	// Continues reports whether the provider continues from a trailing assistant message (prefill). If it does, an
	// answer that was cut off need not start again.
	Continues() bool
	// Ready checks with a cheap request whether the provider can be reached with these credentials.
	Ready(ctx context.Context) error
	// Family names the provider for operators: "scripted", "openai" or "anthropic".
	Family() string
}

// Request is the input of one model call. It contains no account identifier.
type Request struct {
	Route           string    // names the client that makes the call; empty if there is only one
	Model           string    // the provider's name of the model
	System          string    // instructions; empty for none
	Messages        []Message // oldest first; the last is the message to answer, or an assistant prefix to continue
	Tools           []Tool
	WithoutCalls    bool   // the model must answer without calling any of Tools
	HideTools       bool   // the model has ignored WithoutCalls; a format that allows it leaves Tools out
	ReasoningEffort string // "low", "medium", "high"; empty for the provider's default
	PictureDetail   string // "low", "high", "auto": how much of a picture the model looks at; empty for the provider's default
	MaxOutputTokens int    // > 0
	FirstByte       time.Duration
	Deadline        time.Time // until which a busy provider may be waited for; zero: a short time
	Step            int       // 1 for the first step of the turn; used by the scripted model
	TurnInput       int       // 1 + the index in Messages of the user message that started the turn; 0: unknown. Used by the scripted model
}

// Message is one entry of the conversation as a model sees it.
type Message struct {
	Role        string            // "user", "assistant" or "tool"
	Text        string            // for "tool": the result
	Pictures    []turnlog.Picture // only of "user"; they precede the text
	ToolCalls   []ToolCall        // only of "assistant"
	ToolCallID  string            // only of "tool": the provider's identifier of the call that this is the result of
	ToolFailed  bool              // only of "tool"
	Opaque      json.RawMessage   // only of "assistant": state to return to the same provider unchanged (signed reasoning)
	OpaqueOwner string            // the Family that created Opaque; other providers ignore it
}

// Tool describes a tool to the model.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage // JSON Schema of the input object
}

// ToolCall is one tool call that the model requests.
type ToolCall struct {
	ID    string          `json:"id"` // the provider's identifier, returned with the result
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // always a JSON object; {} when the model sent nothing
}

// InvalidArguments is the only member of a ToolCall's input if the model's arguments were not a JSON object. It contains
// them as text.
const InvalidArguments = "invalid_arguments"

// ChunkKind determines which fields of a Chunk are used.
type ChunkKind uint8

// The chunks that a model yields.
const (
	ChunkText      ChunkKind = iota + 1 // Text: more of the answer
	ChunkReasoning                      // Text: more of a summary of the reasoning
	ChunkToolCall                       // ToolCall: one complete call
	ChunkUsage                          // Usage: totals of this call so far; the last one counts
	ChunkOpaque                         // Opaque: to be returned to the provider with this step's message
	ChunkStop                           // Stop: why the answer ended; always last
	ChunkThought                        // the text so far was not the answer but reasoning
	ChunkCitation                       // Address, Text: a source on the web of the text so far, and its title
	ChunkWaiting                        // Wait: the call is repeated after this time. Nothing else precedes it
)

// Chunk is one piece of an answer, as it arrives.
type Chunk struct {
	Kind     ChunkKind
	Text     string
	Address  string
	ToolCall ToolCall
	Usage    Usage
	Opaque   json.RawMessage
	Owner    string // of Opaque: the provider's Family; set by the caller of Stream if it is empty
	Stop     Stop
	Wait     time.Duration
}

// Usage counts tokens of a model call or a step.
type Usage struct {
	InputTokens, OutputTokens, ReasoningTokens, CachedInputTokens int
	Estimated                                                     bool // the provider gave no count; estimated by the service
}

// Stop is the reason why an answer ended.
type Stop string

// The reasons that the turn distinguishes.
const (
	StopEndTurn   Stop = "end_turn"
	StopToolCalls Stop = "tool_calls"
	StopMaxTokens Stop = "max_tokens"
	StopRefusal   Stop = "refusal"

	StopBudget Stop = "budget" // not from a model: the account's budget cut the answer short
)

// CodeBudgetReached is the code of an Error that reports that no call was made, because the account's budget of tokens
// is used up. It does not come from a model.
const CodeBudgetReached protocol.TurnErrorCode = "budget_reached"

// Error is a failed or cut model call. Code is one of "model_unavailable" (refused, 5xx, timed out),
// "model_rate_limited", "model_rejected" (the provider reports an invalid request: 4xx), "model_unauthorized",
// "model_protocol" (the response does not follow the wire format), "model_context_exceeded" and "model_credit_used_up".
type Error struct {
	Code       protocol.TurnErrorCode
	Retryable  bool          // a later call may succeed
	RetryAfter time.Duration // requested by the provider; 0 when it did not request any
	Cut        bool          // chunks had been emitted before the failure
	Pending    bool          // the provider may still be working on the request, which must not be repeated now
	Unusable   bool          // the provider works, but what it answered to this request cannot be used
	Lasting    bool          // every call of this client fails, whoever asks, until an operator does something
	Limit      int           // of the context, in tokens, as the provider reports it with "model_context_exceeded"; 0: unknown
	Err        error         // for the log; never shown to a user
}

func (e *Error) Error() string {
	if e.Err == nil {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }
