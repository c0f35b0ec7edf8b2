package model

import (
	"encoding/json"

	"turnstone/actors/llm"
)

// layout records the order of a step's parts, including the provider's own parts (signed or encrypted reasoning).
// Vendors require that a step is sent back in its original order. The caller stores text and tool calls anyway, so
// layout records only their positions.
type layout struct {
	blocks []block
	opaque bool
}

type block struct {
	Text int             `json:"text,omitempty"` // this many bytes of the text
	Call bool            `json:"call,omitempty"` // the next tool call
	Raw  json.RawMessage `json:"raw,omitempty"`  // a part of the provider's own
}

func (l *layout) addText(bytes int) {
	if last := len(l.blocks) - 1; last >= 0 && l.blocks[last].Text > 0 {
		l.blocks[last].Text += bytes
		return
	}
	l.blocks = append(l.blocks, block{Text: bytes})
}

func (l *layout) addCall() { l.blocks = append(l.blocks, block{Call: true}) }

func (l *layout) addRaw(raw json.RawMessage) {
	l.blocks = append(l.blocks, block{Raw: raw})
	l.opaque = true
}

// encode returns the layout as JSON, or nil if the provider sent no part of its own.
func (l *layout) encode() json.RawMessage {
	if !l.opaque {
		return nil
	}
	raw, err := json.Marshal(l.blocks)
	if err != nil {
		return nil
	}
	return raw
}

// Replay calls raw, text and call for the parts of an assistant message, in the order in which the model created them.
// It passes the provider's own parts only if they belong to family. If the message was changed since (a truncated text,
// a missing call), Replay follows the layout as far as possible. Parts that the layout does not contain follow at the
// end.
func Replay(
	message llm.Message, family string,
	raw func(json.RawMessage), text func(string), call func(llm.ToolCall),
) {
	var blocks []block
	if message.OpaqueOwner == family && len(message.Opaque) > 0 {
		if json.Unmarshal(message.Opaque, &blocks) != nil {
			blocks = nil
		}
	}
	left, calls := message.Text, message.ToolCalls
	for _, block := range blocks {
		switch {
		case block.Raw != nil:
			raw(block.Raw)
		case block.Call && len(calls) > 0:
			call(calls[0])
			calls = calls[1:]
		case block.Text > 0 && left != "":
			end := min(block.Text, len(left))
			text(left[:end])
			left = left[end:]
		}
	}
	if left != "" {
		text(left)
	}
	for _, each := range calls {
		call(each)
	}
}
