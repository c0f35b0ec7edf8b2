package anthropic

import (
	"turnstone/actors"
	"turnstone/providers/model"
)

// scanDelta reads the event that most of an answer is made of: a block's delta that brings text or thinking. It refuses
// (ok is false) whatever else an event may say.
func scanDelta(data []byte) (kind actors.ChunkKind, raw []byte, ok bool) {
	c := model.NewCursor(data)
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
				c.Fail() // which of them counts is for the decoder to say
			}
			found = true
			kind, raw = scanText(&c)
		default:
			c.Fail()
		}
	}
	return kind, raw, c.End() && typed && kind != 0 && raw != nil
}

func scanText(c *model.Cursor) (kind actors.ChunkKind, raw []byte) {
	var field actors.ChunkKind // that raw stood in
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

// The deltas that bring text, and the field in which each has it.
var (
	kinds  = map[string]actors.ChunkKind{"text_delta": actors.ChunkText, "thinking_delta": actors.ChunkReasoning}
	fields = map[string]actors.ChunkKind{"text": actors.ChunkText, "thinking": actors.ChunkReasoning}
)
