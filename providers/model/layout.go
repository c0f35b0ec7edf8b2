package model

import (
	"encoding/json"

	"turnstone/actors"
)

// layout remembers the order in which a step's parts came, with the provider's own parts (signed or sealed reasoning)
// among them. Vendors want a step back in the order in which they made it; text and tool calls are kept by the caller
// anyway, so only their places are noted here.
type layout struct {
	blocks []block
	opaque bool
}

type block struct {
	Text int             `json:"text,omitempty"` // this many bytes of the text
	Call bool            `json:"call,omitempty"` // the next tool call
	Raw  json.RawMessage `json:"raw,omitempty"`  // the provider's own
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

// encode returns nil where the provider gave nothing to send back.
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

// Replay walks an assistant message in the order in which its step was made: family's own parts, which other families
// do not get, the text in pieces, the tool calls. A message that was changed since (a cut text, a call fewer) is
// walked as far as it goes; what the layout does not mention follows at the end.
func Replay(
	message actors.ModelMessage, family string,
	raw func(json.RawMessage), text func(string), call func(actors.ModelToolCall),
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
