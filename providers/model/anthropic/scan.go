package anthropic

import (
	"turnstone/actors/llm"
	"turnstone/providers/model/lenient"
)

// scanDelta parses the most frequent event of an answer: the delta of a block, with text or thinking. For any other
// event, ok is false.
func scanDelta(data []byte) (kind llm.ChunkKind, raw []byte, ok bool) {
	c := lenient.NewCursor(data)
	typed, found := false, false
	c.Open('{')
	for key := c.Key(); key != nil; key = c.Key() {
		switch string(key) {
		case "type":
			if typed || string(c.String()) != "content_block_delta" {
				c.Fail()
			}
			typed = true
		case "index":
			c.Integer()
		case "delta":
			if found {
				c.Fail() // the decoder decides which one counts
			}
			found = true
			kind, raw = scanText(&c)
		default:
			c.Fail()
		}
	}
	return kind, raw, c.End() && typed && kind != 0 && raw != nil
}

func scanText(c *lenient.Cursor) (kind llm.ChunkKind, raw []byte) {
	var field llm.ChunkKind // the field that contains raw
	c.Open('{')
	for key := c.Key(); key != nil; key = c.Key() {
		if string(key) == "type" {
			if kind != 0 {
				c.Fail()
			}
			kind = kinds[string(c.String())]
			continue
		}
		if field != 0 {
			c.Fail()
		}
		field = fields[string(key)]
		raw = c.String()
	}
	if field != kind {
		c.Fail()
	}
	return kind, raw
}

// The types of deltas that carry text, and the names of the fields that contain it.
var (
	kinds  = map[string]llm.ChunkKind{"text_delta": llm.ChunkText, "thinking_delta": llm.ChunkReasoning}
	fields = map[string]llm.ChunkKind{"text": llm.ChunkText, "thinking": llm.ChunkReasoning}
)
