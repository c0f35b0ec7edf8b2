package openai

import (
	"turnstone/actors"
	"turnstone/providers/model"
)

// scanChat reads the chunk that most of an answer is made of: one choice, the first, whose delta brings text or
// reasoning and nothing else. It refuses (ok is false) whatever else a chunk may say; what it passes over, by name and
// type, says nothing to us.
func scanChat(data []byte) (kind actors.ChunkKind, raw []byte, ok bool) {
	c := model.NewCursor(data)
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
				c.Fail() // which of them counts is for the decoder to say
			}
			found = true
			kind, raw = scanChoices(&c)
		default:
			c.Fail()
		}
	}
	return kind, raw, c.End() && raw != nil
}

func scanChoices(c *model.Cursor) (kind actors.ChunkKind, raw []byte) {
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
			kind, raw = scanDelta(c)
		default:
			c.Fail()
		}
	}
	if c.Element() {
		c.Fail()
	}
	return kind, raw
}

// scanDelta finds the one string of a delta that is not empty. An empty one counts when there is no other.
func scanDelta(c *model.Cursor) (kind actors.ChunkKind, raw []byte) {
	var content, summary, thought bool // seen; two of a name are for the decoder
	take := func(of actors.ChunkKind, seen *bool) {
		text := c.OptionalString()
		if *seen || len(raw) > 0 && len(text) > 0 {
			c.Fail()
		}
		*seen = true
		if text != nil && (raw == nil || len(text) > 0) {
			kind, raw = of, text
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
			take(actors.ChunkText, &content)
		case "reasoning_content":
			take(actors.ChunkReasoning, &summary)
		case "reasoning":
			take(actors.ChunkReasoning, &thought)
		default:
			c.Fail()
		}
	}
	return kind, raw
}

// scanResponse reads the events of the Responses format that bring text or reasoning.
func scanResponse(data []byte) (kind actors.ChunkKind, raw []byte, ok bool) {
	c := model.NewCursor(data)
	c.Open('{')
	for key := c.Key(); key != nil; key = c.Key() {
		switch string(key) {
		case "type":
			if kind != 0 {
				c.Fail()
			}
			switch string(c.String()) {
			case "response.output_text.delta":
				kind = actors.ChunkText
			case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
				kind = actors.ChunkReasoning
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
