package openai

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"turnstone/actors/llm"
	"turnstone/providers/model"
)

// streamResponses sends one request in the Responses format. A stream ends with one of the events completed, incomplete
// and failed; a stream without one was cut.
func (m *Model) streamResponses(ctx context.Context, request llm.Request, call *model.Call) error {
	if err := call.Send(func() error { return m.sendResponses(ctx, request, call) }); err != nil {
		return err
	}
	return call.Events(func(event model.Event) (bool, error) {
		if event.Done() {
			return true, nil
		}
		return takeResponse(event.Data, call)
	})
}

func (m *Model) sendResponses(ctx context.Context, request llm.Request, call *model.Call) error {
	params, err := responseParams(request)
	if err != nil {
		return err
	}
	return m.responses.NewStreaming(ctx, params, option.WithHTTPClient(call.HTTP())).Err()
}

// takeResponse processes an event, and reports whether it was the last.
func takeResponse(data []byte, call *model.Call) (last bool, err error) {
	if kind, raw, ok := scanResponse(data); ok {
		if taken, err := call.Quoted(kind, raw); taken {
			return false, err
		}
	}
	return decodeResponse(data, call)
}

// decodeResponse processes an event of any shape.
func decodeResponse(data []byte, call *model.Call) (last bool, err error) {
	if err := namedError(data); err != nil {
		return false, err
	}
	var event responses.ResponseStreamEventUnion
	if err := json.Unmarshal(data, &event); err != nil {
		return false, model.Protocol(err)
	}
	switch event.Type {
	case "response.completed", "response.incomplete":
		return true, finishResponse(event.Response, call)
	case "response.failed":
		return false, model.ProviderFailure(0, nil, []byte(event.Response.Error.RawJSON()))
	case "error":
		return false, model.ProviderFailure(0, nil, data)
	}
	return false, takeEvent(event, call)
}

func responseParams(request llm.Request) (responses.ResponseNewParams, error) {
	params := responses.ResponseNewParams{
		Model: request.Model,
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responseItems(request.Messages)},
		Store: param.NewOpt(false),
	}
	if request.System != "" {
		params.Instructions = param.NewOpt(request.System)
	}
	if request.MaxOutputTokens > 0 {
		params.MaxOutputTokens = param.NewOpt(int64(request.MaxOutputTokens))
	}
	if request.ReasoningEffort != "" { // models without reasoning refuse all three fields
		params.Reasoning = shared.ReasoningParam{
			Effort: shared.ReasoningEffort(request.ReasoningEffort), Summary: shared.ReasoningSummaryAuto,
		}
		params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	for _, tool := range request.Tools {
		schema, err := parameters(tool)
		if err != nil {
			return params, err
		}
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: tool.Name, Description: param.NewOpt(tool.Description), Parameters: schema, Strict: param.NewOpt(false),
		}})
	}
	return params, nil
}

func responseItems(messages []llm.Message) responses.ResponseInputParam {
	items := make(responses.ResponseInputParam, 0, len(messages))
	add := func(item responses.ResponseInputItemUnionParam) { items = append(items, item) }
	addText := func(role responses.EasyInputMessageRole) func(string) {
		return func(text string) { add(responses.ResponseInputItemParamOfMessage(text, role)) }
	}
	for _, message := range messages {
		switch message.Role {
		case "assistant":
			model.Replay(message, Family,
				func(raw json.RawMessage) {
					var item responses.ResponseReasoningItemParam
					if json.Unmarshal(raw, &item) == nil {
						add(responses.ResponseInputItemUnionParam{OfReasoning: &item})
					}
				},
				addText(responses.EasyInputMessageRoleAssistant),
				func(call llm.ToolCall) {
					add(responses.ResponseInputItemParamOfFunctionCall(string(call.Input), call.ID, call.Name))
				})
		case "tool":
			add(responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
				CallID: param.NewOpt(message.ToolCallID),
				Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: param.NewOpt(toolResult(message))},
			}})
		default:
			add(userItem(message))
		}
	}
	return items
}

// userItem returns a message of the user: its text, after its pictures if it has any.
func userItem(message llm.Message) responses.ResponseInputItemUnionParam {
	if len(message.Pictures) == 0 {
		return responses.ResponseInputItemParamOfMessage(message.Text, responses.EasyInputMessageRoleUser)
	}
	var content responses.ResponseInputMessageContentListParam
	for _, picture := range message.Pictures {
		content = append(content, responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{
			Detail: responses.ResponseInputImageDetailAuto, ImageURL: param.NewOpt(dataURL(picture)),
		}})
	}
	content = append(content, responses.ResponseInputContentParamOfInputText(message.Text))
	return responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser)
}

func takeEvent(event responses.ResponseStreamEventUnion, call *model.Call) error {
	switch event.Type {
	case "response.output_text.delta":
		return call.Text(event.Delta)
	case "response.refusal.delta":
		call.Refuse()
		return call.Text(event.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return call.Reasoning(event.Delta)
	case "response.reasoning_summary_part.added":
		if event.SummaryIndex > 0 {
			return call.Reasoning("\n\n")
		}
	case "response.output_item.done":
		return takeItem(event.Item, call)
	}
	return nil
}

func takeItem(item responses.ResponseOutputItemUnion, call *model.Call) error {
	switch {
	case item.Type == "function_call" && item.Status != "incomplete":
		return call.ToolCall(item.CallID, item.Name, item.Arguments.OfString)
	case item.Type == "reasoning" && item.EncryptedContent != "": // else the provider cannot use the item again
		reasoning := responses.ResponseReasoningItemParam{ID: item.ID, EncryptedContent: param.NewOpt(item.EncryptedContent)}
		reasoning.Summary = []responses.ResponseReasoningItemSummaryParam{} // required, even if empty
		for _, summary := range item.Summary {
			reasoning.Summary = append(reasoning.Summary, responses.ResponseReasoningItemSummaryParam{Text: summary.Text})
		}
		raw, err := json.Marshal(reasoning)
		if err != nil {
			return model.Protocol(err)
		}
		call.Opaque(raw)
	}
	return nil
}

func finishResponse(response responses.Response, call *model.Call) error {
	if response.JSON.Usage.Valid() {
		call.Usage(llm.Usage{
			InputTokens:       int(response.Usage.InputTokens),
			OutputTokens:      int(response.Usage.OutputTokens),
			ReasoningTokens:   int(response.Usage.OutputTokensDetails.ReasoningTokens),
			CachedInputTokens: int(response.Usage.InputTokensDetails.CachedTokens),
		})
	}
	switch response.IncompleteDetails.Reason {
	case "":
		return call.Stop(llm.StopEndTurn)
	case "content_filter":
		call.Refuse()
	}
	return call.Stop(llm.StopMaxTokens)
}
