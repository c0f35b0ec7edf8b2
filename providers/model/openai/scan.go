package openai

import (
	"turnstone/actors/llm"
	"turnstone/providers/model/lenient"
)

// reasoningContent is the member with the reasoning of most servers; some call it "reasoning".
const reasoningContent = "reasoning_content"

// scanChat parses the most frequent chunk of an answer: one choice, with index 0, whose delta has text or reasoning and
// nothing else. field is the name of the member with the reasoning. For any other chunk, ok is false. It skips fields that the service does not use, if they have the
// expected name and type.
func scanChat(data []byte) (kind llm.ChunkKind, raw []byte, field string, ok bool) {
	c := lenient.NewCursor(data)
	found := false
	c.Open('{')
	for key := c.Key(); key != nil; key = c.Key() {
		switch string(key) {
		case "id", "object", "model", "obfuscation", "provider":
			c.String()
		case "system_fingerprint", "service_tier":
			c.OptionalString()
		case "created":
			c.Integer()
		case "usage", "error":
			c.Null()
		case "choices":
			if found {
				c.Fail() // the decoder decides which one counts
			}
			found = true
			kind, raw, field = scanChoices(&c)
		default:
			c.Fail()
		}
	}
	return kind, raw, field, c.End() && raw != nil
}

func scanChoices(c *lenient.Cursor) (kind llm.ChunkKind, raw []byte, field string) {
	c.Open('[')
	if !c.Element() {
		c.Fail()
	}
	found := false
	c.Open('{')
	for key := c.Key(); key != nil; key = c.Key() {
		switch string(key) {
		case "index":
			c.Zero()
		case "finish_reason", "logprobs", "native_finish_reason", "stop_reason", "token_ids":
			c.Null()
		case "delta":
			if found {
				c.Fail()
			}
			found = true
			kind, raw, field = scanDelta(c)
		default:
			c.Fail()
		}
	}
	if c.Element() {
		c.Fail()
	}
	return kind, raw, field
}

// scanDelta returns the only non-empty string of a delta, or an empty string if there is none.
func scanDelta(c *lenient.Cursor) (kind llm.ChunkKind, raw []byte, field string) {
	var content, summary, thought bool // the fields seen so far; the decoder handles a repeated field
	take := func(of llm.ChunkKind, name string, seen *bool) {
		text := c.OptionalString()
		if *seen || len(raw) > 0 && len(text) > 0 {
			c.Fail()
		}
		*seen = true
		if text != nil && (raw == nil || len(text) > 0) {
			kind, raw, field = of, text, name
		}
	}
	c.Open('{')
	for key := c.Key(); key != nil; key = c.Key() {
		switch string(key) {
		case "role":
			c.OptionalString()
		case "refusal", "function_call", "tool_calls", "audio":
			c.Null()
		case "content":
			take(llm.ChunkText, "", &content)
		case "reasoning_content":
			take(llm.ChunkReasoning, reasoningContent, &summary)
		case "reasoning":
			take(llm.ChunkReasoning, "reasoning", &thought)
		default:
			c.Fail()
		}
	}
	return kind, raw, field
}

// scanResponse parses the events of the Responses format that carry text or reasoning. For any other event, ok is
// false.
func scanResponse(data []byte) (kind llm.ChunkKind, raw []byte, ok bool) {
	c := lenient.NewCursor(data)
	c.Open('{')
	for key := c.Key(); key != nil; key = c.Key() {
		switch string(key) {
		case "type":
			if kind != 0 {
				c.Fail()
			}
			switch string(c.String()) {
			case "response.output_text.delta":
				kind = llm.ChunkText
			case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
				kind = llm.ChunkReasoning
			default:
				c.Fail()
			}
		case "delta":
			if raw != nil {
				c.Fail()
			}
			raw = c.String()
		case "item_id", "obfuscation":
			c.String()
		case "output_index", "content_index", "summary_index", "sequence_number":
			c.Integer()
		case "logprobs":
			c.EmptyArray()
		case "error":
			c.Null()
		default:
			c.Fail()
		}
	}
	return kind, raw, c.End() && kind != 0 && raw != nil
}
