package openai

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"turnstone/actors/llm"
	"turnstone/providers/model"
)

// streamChat sends one request in the Chat Completions format. Compatible servers omit different parts (usage, tool
// identifiers, choices, the stop reason), so only two things are required: the stream ends with [DONE], and it has
// content.
func (m *Model) streamChat(ctx context.Context, request llm.Request, call *model.Call) error {
	if err := call.Send(func() error { return m.sendChat(ctx, request, call) }); err != nil {
		return err
	}
	answer := chatAnswer{call: call}
	err := call.Events(func(event model.Event) (bool, error) {
		if event.Done() {
			return true, nil
		}
		return false, answer.take(event.Data)
	})
	if err != nil || !call.Terminated() {
		return err
	}
	return answer.finish()
}

func (m *Model) sendChat(ctx context.Context, request llm.Request, call *model.Call) error {
	body, err := m.encodeChat(request)
	if err != nil {
		return err
	}
	// The body is passed as a whole. The SDK would decode and encode parameters two more times.
	whole := option.WithRequestBody("application/json", body)
	return m.chat.NewStreaming(ctx, sdk.ChatCompletionNewParams{}, whole, option.WithHTTPClient(call.HTTP())).Err()
}

// chatAnswer collects the data that arrive in pieces: the tool calls and the stop reason.
type chatAnswer struct {
	call   *model.Call
	pieces []toolPiece
	reason string
}

type toolPiece struct {
	index               int64
	id, name, arguments string
}

func (a *chatAnswer) take(data []byte) error {
	if kind, raw, ok := scanChat(data); ok {
		if taken, err := a.call.Quoted(kind, raw); taken {
			return err
		}
	}
	return a.decode(data)
}

// decode processes a chunk of any shape.
func (a *chatAnswer) decode(data []byte) error {
	if err := namedError(data); err != nil {
		return err
	}
	var chunk sdk.ChatCompletionChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return model.Protocol(err)
	}
	if chunk.JSON.Usage.Valid() {
		a.call.Usage(llm.Usage{
			InputTokens:       int(chunk.Usage.PromptTokens),
			OutputTokens:      int(chunk.Usage.CompletionTokens),
			ReasoningTokens:   int(chunk.Usage.CompletionTokensDetails.ReasoningTokens),
			CachedInputTokens: int(chunk.Usage.PromptTokensDetails.CachedTokens),
		})
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue // only one choice was requested
		}
		if choice.FinishReason != "" {
			a.reason = choice.FinishReason
		}
		if err := a.takeDelta(choice.Delta); err != nil {
			return err
		}
	}
	return nil
}

func (a *chatAnswer) takeDelta(delta sdk.ChatCompletionChunkChoiceDelta) error {
	if err := a.call.Reasoning(reasoningOf(delta)); err != nil {
		return err
	}
	if delta.Refusal != "" {
		a.call.Refuse()
	}
	if err := a.call.Text(delta.Content + delta.Refusal); err != nil {
		return err
	}
	for _, tool := range delta.ToolCalls {
		a.takeTool(tool.Index, tool.ID, tool.Function.Name, tool.Function.Arguments)
	}
	//nolint:staticcheck // deprecated in the SDK, still sent by older gateways
	if function := delta.FunctionCall; function.Name != "" || function.Arguments != "" {
		a.takeTool(0, "", function.Name, function.Arguments)
	}
	return nil
}

// takeTool joins the pieces of a call by their index. Some servers send every call complete and with index 0, so a name
// with another identifier starts another call.
func (a *chatAnswer) takeTool(index int64, id, name, arguments string) {
	for i := len(a.pieces) - 1; i >= 0; i-- {
		piece := &a.pieces[i]
		if piece.index != index {
			continue
		}
		if name != "" && id != "" && piece.id != "" && id != piece.id {
			break
		}
		if piece.id == "" {
			piece.id = id
		}
		if piece.name == "" {
			piece.name = name
		}
		piece.arguments += arguments
		return
	}
	a.pieces = append(a.pieces, toolPiece{index: index, id: id, name: name, arguments: arguments})
}

// reasoningOf returns the reasoning of a delta, from the fields in which compatible servers send it. OpenAI sends none
// in this format.
func reasoningOf(delta sdk.ChatCompletionChunkChoiceDelta) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var text string
		if field, found := delta.JSON.ExtraFields[name]; found && json.Unmarshal([]byte(field.Raw()), &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// finish runs after [DONE].
func (a *chatAnswer) finish() error {
	switch a.reason {
	case "length":
		return a.call.Stop(llm.StopMaxTokens)
	case "content_filter":
		a.call.Refuse()
	case "error", "abort":
		return model.Unavailable(errors.New("the provider ended the answer with finish_reason=" + a.reason))
	case "":
		if a.call.Empty() && len(a.pieces) == 0 {
			return model.Protocol(errors.New("the stream contains no answer"))
		}
	}
	for _, piece := range a.pieces {
		if err := a.call.ToolCall(piece.id, piece.name, piece.arguments); err != nil {
			return err
		}
	}
	return a.call.Stop(llm.StopEndTurn)
}
