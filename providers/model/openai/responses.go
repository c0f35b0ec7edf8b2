package openai

import (
	"cmp"
	"context"
	"encoding/json"

	"turnstone/actors/llm"
	"turnstone/providers/model"
	"turnstone/providers/model/lenient"
)

// streamResponses sends one request in the Responses format. A stream ends with one of the events completed, incomplete
// and failed; a stream without one was cut.
func (m *Model) streamResponses(_ context.Context, request llm.Request, call *model.Call) error {
	body, err := m.responsesBody(request)
	if err != nil {
		return err
	}
	if err := call.Post("responses", m.header(), body); err != nil {
		return err
	}
	answer := responseAnswer{call: call, items: map[string]bool{}}
	return call.Events(func(event model.Event) (bool, error) {
		if event.Done() {
			return true, nil
		}
		return answer.take(event)
	})
}

// responseEvent is an event of an answer.
type responseEvent struct {
	Type         lenient.Text  `json:"type"`
	Delta        lenient.Text  `json:"delta"`
	Text         lenient.Text  `json:"text"`
	Refusal      lenient.Text  `json:"refusal"`
	Arguments    arguments     `json:"arguments"`
	Name         lenient.Text  `json:"name"`
	ItemID       lenient.Text  `json:"item_id"`
	SummaryIndex lenient.Count `json:"summary_index"`
	Item         outputItem    `json:"item"`
	Part         outputPart    `json:"part"`
	Response     response      `json:"response"`
	Annotation   annotation    `json:"annotation"`
}

type response struct {
	Object     lenient.Text `json:"object"`
	Status     lenient.Text `json:"status"`
	Error      lenient.Raw  `json:"error"`
	Output     []outputItem `json:"output"`
	OutputText lenient.Text `json:"output_text"`
	Incomplete struct {
		Reason lenient.Text `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		Input     lenient.Count `json:"input_tokens"`
		Output    lenient.Count `json:"output_tokens"`
		InDetails struct {
			Cached lenient.Count `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutDetails struct {
			Reasoning lenient.Count `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

type outputItem struct {
	Type             lenient.Text       `json:"type"`
	ID               lenient.Text       `json:"id"`
	Status           lenient.Text       `json:"status"`
	CallID           lenient.Text       `json:"call_id"`
	Name             lenient.Text       `json:"name"`
	Arguments        arguments          `json:"arguments"`
	Content          []outputPart       `json:"content"`
	Summary          []responsesSummary `json:"summary"`
	EncryptedContent string             `json:"encrypted_content"`
}

type outputPart struct {
	Type    lenient.Text `json:"type"`
	Text    lenient.Text `json:"text"`
	Refusal lenient.Text `json:"refusal"`

	Annotations []annotation `json:"annotations"`
}

// source is the kind of event that contains text: the same text comes in deltas, in whole parts and in whole items.
// Servers omit some of them. The first source is used: of a message's text, and of all reasoning.
type source int

const (
	unknownSource source = iota
	deltas
	wholeTexts
	wholeParts
	wholeItems
	wholeAnswer
)

// is reports whether text of an event is used.
func (s *source) is(other source) bool {
	if *s == unknownSource {
		*s = other
	}
	return *s == other
}

// responseAnswer collects what arrives in pieces.
type responseAnswer struct {
	call            *model.Call
	text, reasoning source            // text: of the current message
	said            bool              // an earlier message had a text
	items           map[string]bool   // the complete items so far
	arguments       map[string]string // of calls, by item
	thoughts        int               // complete items of reasoning so far
}

// take processes an event, and reports whether it was the last.
func (a *responseAnswer) take(event model.Event) (last bool, err error) {
	if kind, raw, ok := scanResponse(event.Data); ok && !event.Failed {
		if taken, err := a.call.Quoted(kind, raw); taken {
			_ = kind == llm.ChunkText && a.text.is(deltas) || kind == llm.ChunkReasoning && a.reasoning.is(deltas)
			return false, err
		}
	}
	if err := a.call.EventError(event); err != nil {
		return false, err
	}
	if event.Whole {
		var whole response
		if err := lenient.Decode(event.Data, &whole); err != nil {
			return false, model.Protocol(err)
		}
		if whole.Object == "response" || whole.Output != nil {
			return true, a.finish(&whole, "")
		}
	}
	var decoded responseEvent
	if err := lenient.Decode(event.Data, &decoded); err != nil {
		return false, model.Protocol(err)
	}
	switch decoded.Type {
	case "response.completed", "response.done", "response.incomplete", "response.failed", "response.cancelled":
		return true, a.finish(&decoded.Response, string(decoded.Type))
	}
	return false, a.event(&decoded)
}

func (a *responseAnswer) event(event *responseEvent) error {
	switch event.Type {
	case "response.output_text.delta":
		return a.addText(deltas, event.Delta)
	case "response.output_text.annotation.added":
		return cite(a.call, event.Annotation)
	case "response.refusal.delta":
		a.call.Refuse()
		return a.addText(deltas, event.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return a.addReasoning(deltas, event.Delta)
	case "response.reasoning_summary_part.added":
		if event.SummaryIndex > 0 {
			return a.call.Reasoning("\n\n")
		}
	case "response.output_text.done":
		return a.addText(wholeTexts, event.Text)
	case "response.refusal.done":
		a.call.Refuse()
		return a.addText(wholeTexts, event.Refusal)
	case "response.reasoning_summary_text.done", "response.reasoning_text.done":
		return a.addReasoning(wholeTexts, event.Text)
	case "response.content_part.done":
		return a.part(&event.Part)
	case "response.function_call_arguments.done":
		if a.arguments == nil {
			a.arguments = map[string]string{}
		}
		a.arguments[string(event.ItemID)] = string(event.Arguments)
	case "response.output_item.done":
		if err := a.item(&event.Item); err != nil || event.Item.Type != "message" {
			return err
		}
		a.said = a.said || a.text != unknownSource
		a.text = unknownSource // the next message may come in another way
	}
	return nil
}

func (a *responseAnswer) addText(from source, text lenient.Text) error {
	if text == "" || !a.text.is(from) {
		return nil
	}
	return a.call.Text(string(text))
}

func (a *responseAnswer) addReasoning(from source, text lenient.Text) error {
	if text == "" || !a.reasoning.is(from) {
		return nil
	}
	return a.call.Reasoning(string(text))
}

func (a *responseAnswer) part(part *outputPart) error {
	switch part.Type {
	case "refusal":
		a.call.Refuse()
		return a.addText(wholeParts, part.Refusal)
	case "reasoning_text", "summary_text":
		return a.addReasoning(wholeParts, part.Text)
	}
	if err := a.addText(wholeParts, part.Text); err != nil {
		return err
	}
	return cite(a.call, part.Annotations...)
}

// item takes what a complete item contains and no earlier event did.
func (a *responseAnswer) item(item *outputItem) error {
	key := string(item.Type) + " " + cmp.Or(string(item.CallID), string(item.ID)) // gateways give an item several IDs
	if (item.ID != "" || item.CallID != "") && a.items[key] {
		return nil
	}
	a.items[key] = true
	switch item.Type {
	case "message":
		var text, refused lenient.Text
		for i := range item.Content {
			text += item.Content[i].Text
			refused += item.Content[i].Refusal
		}
		if refused != "" {
			a.call.Refuse()
		}
		if err := a.addText(wholeItems, text+refused); err != nil {
			return err
		}
		for i := range item.Content {
			if err := cite(a.call, item.Content[i].Annotations...); err != nil {
				return err
			}
		}
		return nil
	case "function_call":
		if item.Status == "incomplete" {
			return nil
		}
		arguments := string(item.Arguments)
		if arguments == "" || arguments == "{}" {
			if whole := a.arguments[string(item.ID)]; whole != "" {
				arguments = whole
			}
		}
		id := item.CallID
		if id == "" {
			id = item.ID
		}
		return a.call.ToolCall(string(id), string(item.Name), arguments)
	case "reasoning":
		a.thoughts++
		return a.reasoningItem(item)
	}
	return nil
}

func (a *responseAnswer) reasoningItem(item *outputItem) error {
	var all lenient.Text
	for i, summary := range item.Summary {
		if i > 0 {
			all += "\n\n"
		}
		all += summary.Text
	}
	for i := range item.Content {
		all += item.Content[i].Text
	}
	if err := a.addReasoning(wholeItems, all); err != nil {
		return err
	}
	if item.EncryptedContent == "" {
		return nil // the provider could not use the item again
	}
	sent := reasoningItem{Type: "reasoning", ID: string(item.ID), Summary: []responsesSummary{}, EncryptedContent: item.EncryptedContent}
	for _, summary := range item.Summary {
		sent.Summary = append(sent.Summary, responsesSummary{"summary_text", summary.Text})
	}
	raw, err := json.Marshal(sent)
	if err != nil {
		return model.Protocol(err)
	}
	return a.call.Opaque(raw)
}

// finish ends the answer with the response that the last event contains.
func (a *responseAnswer) finish(response *response, event string) error {
	usage := response.Usage
	a.call.Usage(llm.Usage{
		InputTokens: int(usage.Input), OutputTokens: int(usage.Output), ReasoningTokens: int(usage.OutDetails.Reasoning),
		CachedInputTokens: int(usage.InDetails.Cached),
	})
	if response.Error != nil || response.Status == "failed" || event == "response.failed" {
		failed := response.Error
		if failed == nil {
			failed = lenient.Raw(`{"code":"server_error"}`)
		}
		return a.call.EventError(model.Event{Data: failed, Failed: true})
	}
	if a.said {
		a.text = deltas // not in the response
	}
	known := a.thoughts // their identifiers, and even their encrypted content, may be others in the response
	for i := range response.Output {
		if known > 0 && response.Output[i].Type == "reasoning" {
			known--
			continue
		}
		if err := a.item(&response.Output[i]); err != nil {
			return err
		}
	}
	if err := a.addText(wholeAnswer, response.OutputText); err != nil {
		return err
	}
	reason := string(response.Incomplete.Reason)
	switch {
	case reason != "":
	case response.Status == "incomplete" || event == "response.incomplete":
		reason = "incomplete"
	case response.Status == "cancelled" || event == "response.cancelled":
		reason = "cancelled"
	}
	return a.call.Finish(reason)
}
