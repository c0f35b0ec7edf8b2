package modeltest

import (
	"strings"

	"turnstone/actors/llm"
)

type object = map[string]any

func (o *writer) writeChat(step Step, request Request) {
	choice := func(delta object, finish any) {
		o.frame("", encode(object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": request.Model,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		}))
	}
	choice(object{"role": "assistant", "content": ""}, nil)
	for _, text := range step.Reasoning {
		o.piece()
		choice(object{"reasoning_content": text}, nil)
	}
	for _, text := range step.Text {
		o.piece()
		choice(object{"content": text}, nil)
	}
	for i, call := range step.ToolCalls {
		o.piece()
		tool := func(id any, function object) {
			piece := object{"index": i, "type": "function", "function": function}
			if id != "" && id != nil {
				piece["id"] = id
			}
			choice(object{"tool_calls": []object{piece}}, nil)
		}
		first, second := halves(call)
		tool(call.ID, object{"name": call.Name, "arguments": ""})
		tool(nil, object{"arguments": first})
		tool(nil, object{"arguments": second})
	}
	o.end()
	choice(object{}, map[llm.Stop]string{
		llm.StopEndTurn: "stop", llm.StopToolCalls: "tool_calls", llm.StopMaxTokens: "length",
		llm.StopRefusal: "content_filter",
	}[step.Stop])
	if usage := step.Usage; usage != nil {
		o.frame("", encode(object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": []object{}, "usage": object{
			"prompt_tokens": usage.InputTokens, "completion_tokens": usage.OutputTokens,
			"total_tokens":              usage.InputTokens + usage.OutputTokens,
			"prompt_tokens_details":     object{"cached_tokens": usage.CachedInputTokens},
			"completion_tokens_details": object{"reasoning_tokens": usage.ReasoningTokens},
		}}))
	}
	o.frame("", []byte("[DONE]"))
}

func halves(call llm.ToolCall) (string, string) {
	input := string(call.Input)
	return input[:len(input)/2], input[len(input)/2:]
}

// Sealed is the signed or encrypted reasoning that the servers send with a summary, and that must be sent back.
const Sealed = "c2VhbGVkLXJlYXNvbmluZw=="

func (o *writer) writeResponses(step Step, request Request) {
	event := func(kind string, fields object) {
		fields["type"] = kind
		o.frame(kind, encode(fields))
	}
	response := func(status string, fields object) object {
		all := object{"id": "resp_1", "object": "response", "status": status, "model": request.Model, "error": nil}
		for name, value := range fields {
			all[name] = value
		}
		return object{"response": all}
	}
	event("response.created", response("in_progress", nil))
	index := 0
	item := func(done bool, fields object) {
		kind := "response.output_item.added"
		if done {
			kind = "response.output_item.done"
		}
		event(kind, object{"output_index": index, "item": fields})
		if done {
			index++
		}
	}
	if len(step.Reasoning) > 0 {
		item(false, object{"type": "reasoning", "id": "rs_1", "summary": []object{}})
		event("response.reasoning_summary_part.added", object{"item_id": "rs_1", "summary_index": 0})
		for _, text := range step.Reasoning {
			o.piece()
			event("response.reasoning_summary_text.delta", object{"item_id": "rs_1", "summary_index": 0, "delta": text})
		}
		item(true, object{
			"type": "reasoning", "id": "rs_1", "encrypted_content": Sealed,
			"summary": []object{{"type": "summary_text", "text": strings.Join(step.Reasoning, "")}},
		})
	}
	if len(step.Text) > 0 {
		item(false, object{"type": "message", "id": "msg_1", "role": "assistant", "content": []object{}})
		for _, text := range step.Text {
			o.piece()
			event("response.output_text.delta", object{"item_id": "msg_1", "content_index": 0, "delta": text})
		}
		item(true, object{"type": "message", "id": "msg_1", "role": "assistant", "content": []object{
			{"type": "output_text", "text": strings.Join(step.Text, "")},
		}})
	}
	for _, call := range step.ToolCalls {
		o.piece()
		function := object{"type": "function_call", "id": "fc_1", "call_id": call.ID, "name": call.Name, "arguments": ""}
		item(false, function)
		first, second := halves(call)
		event("response.function_call_arguments.delta", object{"item_id": "fc_1", "delta": first})
		event("response.function_call_arguments.delta", object{"item_id": "fc_1", "delta": second})
		function["arguments"], function["status"] = string(call.Input), "completed"
		item(true, function)
	}
	o.end()
	end, fields := "response.completed", object{}
	if usage := step.Usage; usage != nil {
		fields["usage"] = object{
			"input_tokens": usage.InputTokens, "output_tokens": usage.OutputTokens,
			"total_tokens":          usage.InputTokens + usage.OutputTokens,
			"input_tokens_details":  object{"cached_tokens": usage.CachedInputTokens},
			"output_tokens_details": object{"reasoning_tokens": usage.ReasoningTokens},
		}
	}
	switch step.Stop {
	case llm.StopMaxTokens:
		end, fields["incomplete_details"] = "response.incomplete", object{"reason": "max_output_tokens"}
	case llm.StopRefusal:
		end, fields["incomplete_details"] = "response.incomplete", object{"reason": "content_filter"}
	}
	event(end, response(strings.TrimPrefix(end, "response."), fields))
}

func (o *writer) writeAnthropic(step Step, request Request) {
	event := func(kind string, fields object) {
		fields["type"] = kind
		o.frame(kind, encode(fields))
	}
	message := object{"id": "msg_1", "type": "message", "role": "assistant", "model": request.Model, "content": []object{}}
	if usage := step.Usage; usage != nil {
		message["usage"] = object{
			"input_tokens": usage.InputTokens - usage.CachedInputTokens, "cache_read_input_tokens": usage.CachedInputTokens,
			"cache_creation_input_tokens": 0, "output_tokens": 1,
		}
	}
	event("message_start", object{"message": message})
	event("ping", object{})
	index := 0
	block := func(start object, deltas func(delta func(object))) {
		event("content_block_start", object{"index": index, "content_block": start})
		deltas(func(fields object) { event("content_block_delta", object{"index": index, "delta": fields}) })
		event("content_block_stop", object{"index": index})
		index++
	}
	if len(step.Reasoning) > 0 {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, func(delta func(object)) {
			for _, text := range step.Reasoning {
				o.piece()
				delta(object{"type": "thinking_delta", "thinking": text})
			}
			delta(object{"type": "signature_delta", "signature": Sealed})
		})
	}
	if len(step.Text) > 0 {
		block(object{"type": "text", "text": ""}, func(delta func(object)) {
			for _, text := range step.Text {
				o.piece()
				delta(object{"type": "text_delta", "text": text})
			}
		})
	}
	for _, call := range step.ToolCalls {
		o.piece()
		block(object{"type": "tool_use", "id": call.ID, "name": call.Name, "input": object{}}, func(delta func(object)) {
			first, second := halves(call)
			delta(object{"type": "input_json_delta", "partial_json": ""})
			delta(object{"type": "input_json_delta", "partial_json": first})
			delta(object{"type": "input_json_delta", "partial_json": second})
		})
	}
	o.end()
	last := object{"delta": object{"stop_reason": map[llm.Stop]string{
		llm.StopEndTurn: "end_turn", llm.StopToolCalls: "tool_use", llm.StopMaxTokens: "max_tokens",
		llm.StopRefusal: "refusal",
	}[step.Stop], "stop_sequence": nil}}
	if usage := step.Usage; usage != nil {
		last["usage"] = object{
			"output_tokens": usage.OutputTokens, "output_tokens_details": object{"thinking_tokens": usage.ReasoningTokens},
		}
	}
	event("message_delta", last)
	event("message_stop", object{})
}
