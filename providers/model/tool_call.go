package model

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"turnstone/actors/llm"
)

// maxCallID limits the identifiers of tool calls. OpenAI refuses longer ones when they are sent back.
const maxCallID = 40

// maxCalls limits the tool calls of an answer; further ones are left out. It is far above the calls that a turn runs: those
// between the two are failed calls, so that the model sees why they did not run.
const maxCalls = 512

// toolPiece is a tool call that arrives in pieces.
type toolPiece struct {
	index     int
	id, name  string
	arguments toolArguments
}

// toolArguments is a JSON text that arrives in pieces. Its end is noticed without reading the beginning again.
type toolArguments struct {
	text     []byte
	depth    int  // of brackets
	inString bool // the next character belongs to a string
	escaped  bool // and follows a backslash
	ended    bool // the outermost bracket is closed
	object   bool // the text is a valid object
}

// add appends text, up to another object behind a complete one: the rest, which it returns, belongs to another call.
func (p *toolArguments) add(text string) (rest string) {
	for at := range len(text) {
		char := text[at]
		switch {
		case p.escaped:
			p.escaped = false
		case p.inString:
			p.escaped, p.inString = char == '\\', char != '"'
		case char == ' ' || char == '\t' || char == '\r' || char == '\n':
		case p.ended && p.object && char == '{':
			p.text = append(p.text, text[:at]...)
			return text[at:]
		case p.ended:
			p.object = false // something follows the object
		case char == '"':
			p.inString = true
		case char == '{' || char == '[':
			p.depth++
		case char == '}' || char == ']':
			if p.depth--; p.depth <= 0 {
				p.ended = true
				p.object = isObject(string(p.text) + text[:at+1])
			}
		}
	}
	p.text = append(p.text, text...)
	return ""
}

// trimmed returns the text without the white space around it.
func (p *toolArguments) trimmed() string { return string(bytes.TrimSpace(p.text)) }

// toolCalls are the tool calls of an answer.
type toolCalls struct {
	request *llm.Request
	pieces  []toolPiece
	calls   []llm.ToolCall
}

// ToolPiece adds a piece of a tool call. Pieces are joined by their index or, if that is unknown (-1), by their identifier.
// Some servers send every call with the same index, and with the same or no identifier: after arguments that are a complete
// object, a name or another object starts another call. It returns the number of the call, from 0.
func (c *Call) ToolPiece(index int, id, name, arguments string) int {
	return c.tools.piece(index, id, name, arguments)
}

// piece adds a piece, which may have the arguments of several calls, and returns the number of the first.
func (c *toolCalls) piece(index int, id, name, arguments string) int {
	first, rest := c.join(index, id, name, arguments)
	for last := first; rest != "" && len(c.pieces) <= maxCalls; {
		// Without the white space at its end, which each call would otherwise look at again.
		last, rest = c.join(index, c.pieces[last].id, "", strings.TrimSpace(rest))
	}
	return first
}

// join adds a piece to its call, or starts another one. It returns the number of the call, and the arguments that belong to
// the next.
func (c *toolCalls) join(index int, id, name, arguments string) (number int, rest string) {
	byID := index < 0 && id != "" && slices.ContainsFunc(c.pieces, func(piece toolPiece) bool { return piece.id == id })
	for i := len(c.pieces) - 1; i >= 0; i-- {
		piece := &c.pieces[i]
		if index >= 0 && piece.index >= 0 && piece.index != index || byID && piece.id != id {
			continue
		}
		if !c.joins(piece, id, name, arguments) {
			break
		}
		if piece.id == "" {
			piece.id = id
		}
		if name != piece.name {
			piece.name += name
		}
		return i, piece.arguments.add(arguments)
	}
	if last := len(c.pieces) - 1; name == "" && arguments != "" && last >= 0 && (id == "" || id == c.pieces[last].id) {
		name = c.pieces[last].name
	}
	if len(c.pieces) > maxCalls { // of the calls that are left out, only the last is kept, for its further pieces
		c.pieces = c.pieces[:maxCalls]
	}
	c.pieces = append(c.pieces, toolPiece{index: index, id: id, name: name})
	number = len(c.pieces) - 1
	return number, c.pieces[number].arguments.add(arguments)
}

// joins reports whether a piece continues a call. A repetition of the arguments is removed from the call.
func (c *toolCalls) joins(piece *toolPiece, id, name, arguments string) bool {
	if id != "" && piece.id != "" && id != piece.id && (name != "" || piece.index < 0) {
		return false
	}
	starts := strings.HasPrefix(strings.TrimSpace(arguments), "{")
	switch complete := piece.arguments.object; {
	case complete && starts && id == piece.id && (name == "" || name == piece.name && id != "") && strings.TrimSpace(arguments) == piece.arguments.trimmed():
		piece.arguments = toolArguments{}
		return true
	case complete && starts && name == "" && piece.arguments.trimmed() == "{}":
		piece.arguments = toolArguments{} // a placeholder
		return true
	case complete && (name != "" || starts):
		return false
	case name == "" || name == piece.name || piece.name == "":
		return true
	}
	return len(piece.arguments.text) == 0 && !(c.hasTool(piece.name) && c.hasTool(name)) // a name in pieces
}

func isObject(text string) bool {
	trimmed := strings.TrimSpace(text)
	return strings.HasPrefix(trimmed, "{") && json.Valid([]byte(trimmed))
}

// ToolPieces adds the calls whose pieces were collected.
func (c *Call) ToolPieces() error {
	pieces := c.tools.pieces
	c.tools.pieces = nil
	for _, piece := range pieces {
		if piece.name == "" && piece.arguments.trimmed() == "" {
			continue
		}
		if err := c.ToolCall(piece.id, piece.name, string(piece.arguments.text)); err != nil {
			return err
		}
	}
	return nil
}

// HasToolPieces reports whether pieces of tool calls were collected.
func (c *Call) HasToolPieces() bool { return len(c.tools.pieces) > 0 }

// unnamed is the name of a call without one. No tool has it, so the call fails, and the model gets that error.
const unnamed = "unnamed"

// ToolCall adds one complete tool call. Stop emits it, because only the end of the answer shows whether a limit has cut
// the call. An identifier that is missing, too long or used before is replaced. Arguments that are not a JSON object are
// wrapped in one as text, so that the tool refuses them and the model gets the reason. Calls beyond maxCalls are left out.
func (c *Call) ToolCall(id, name, arguments string) error {
	if len(c.tools.calls) >= maxCalls {
		return nil
	}
	name = cmp.Or(c.tools.toolName(name), unnamed)
	if err := c.flush(); err != nil {
		return err
	}
	if id == "" || len(id) > maxCallID || c.tools.usedID(id) {
		id = "call_" + rand.Text()
	}
	c.output.add(name)
	c.output.add(arguments)
	c.layout.addCall()
	c.tools.calls = append(c.tools.calls, llm.ToolCall{ID: id, Name: name, Input: inputObject(arguments)})
	return nil
}

func (c *toolCalls) usedID(id string) bool {
	for _, call := range c.calls {
		if call.ID == id {
			return true
		}
	}
	for _, message := range c.request.Messages {
		for _, call := range message.ToolCalls {
			if call.ID == id {
				return true
			}
		}
	}
	return false
}

func (c *toolCalls) hasTool(name string) bool {
	for _, tool := range c.request.Tools {
		if tool.Name == name {
			return true
		}
	}
	return false
}

// toolName returns the name of the offered tool that name means: without the namespace, the special tokens and the case
// in which some models write it. A name of no offered tool is returned without special tokens.
func (c *toolCalls) toolName(name string) string {
	if c.hasTool(name) {
		return name
	}
	name, _, _ = strings.Cut(name, "<|")
	name = strings.TrimSpace(name)
	last := name[strings.LastIndexAny(name, ".:/")+1:]
	for _, wanted := range []string{name, last} {
		for _, tool := range c.request.Tools {
			if strings.EqualFold(tool.Name, wanted) {
				return tool.Name
			}
		}
	}
	return name
}

// InvalidArguments is the member of a tool's input that contains arguments that are not a JSON object.
const InvalidArguments = llm.InvalidArguments

// inputObject returns the object in arguments. Some models encode it twice, put it into a block of code or write it
// twice.
func inputObject(arguments string) json.RawMessage {
	trimmed := strings.TrimSpace(arguments)
	if strings.HasPrefix(trimmed, fence) {
		_, trimmed, _ = strings.Cut(strings.TrimSpace(strings.TrimSuffix(trimmed, fence)), "\n")
		trimmed = strings.TrimSpace(trimmed)
	}
	for range 2 { // encoded once or twice too often
		var inner string
		if !strings.HasPrefix(trimmed, `"`) || json.Unmarshal([]byte(trimmed), &inner) != nil {
			break
		}
		trimmed = strings.TrimSpace(inner)
	}
	switch trimmed {
	case "", "null":
		return json.RawMessage("{}")
	}
	if isObject(trimmed) {
		return json.RawMessage(trimmed)
	}
	if half := trimmed[:len(trimmed)/2]; half+half == trimmed && isObject(half) {
		return json.RawMessage(half)
	}
	wrapped, err := json.Marshal(map[string]string{InvalidArguments: arguments})
	if err != nil {
		return json.RawMessage("{}")
	}
	return wrapped
}
