package source

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"turnstone/protocol"
)

// chatGPTNode is an entry of "mapping". Nodes without a message, and hidden ones, link the others.
type chatGPTNode struct {
	ID      text `json:"id"`
	Parent  text `json:"parent"`
	Message *struct {
		ID     text `json:"id"`
		Author struct {
			Role text `json:"role"`
			Name text `json:"name"`
		} `json:"author"`
		Recipient  text           `json:"recipient"`
		CreateTime when           `json:"create_time"`
		Status     text           `json:"status"`
		Value      jsontext.Value `json:"content"`
		Metadata   struct {
			Hidden      jsontext.Value `json:"is_visually_hidden_from_conversation"`
			Model       text           `json:"model_slug"`
			Attachments []struct {
				Name text `json:"name"`
				ID   text `json:"id"`
			} `json:"attachments"`
			References []reference    `json:"content_references"`
			Citations  []oldReference `json:"citations"`
		} `json:"metadata"`
		deepSeekMessage
		Content chatGPTContent `json:"-"`
	} `json:"message"`
}

// chatGPTContent is the content of a message. Its type determines the members.
type chatGPTContent struct {
	Type         text             `json:"content_type"`
	Parts        []jsontext.Value `json:"parts"`
	Text         text             `json:"text"`
	Language     text             `json:"language"`
	Result       text             `json:"result"`
	Content      text             `json:"content"`
	Profile      text             `json:"user_profile"`
	Instructions text             `json:"user_instructions"`
	Thoughts     []struct {
		Summary text `json:"summary"`
		Content text `json:"content"`
	} `json:"thoughts"`
}

func (d *decoder) chatGPTNodes(c *Conversation) error {
	return d.members(func(name string) error {
		var node chatGPTNode
		if err := d.value(&node); err != nil {
			return err
		}
		if node.ID == "" {
			node.ID = text(name)
		}
		if m := node.Message; m != nil && m.Value.Kind() == '{' && json.Unmarshal(m.Value, &m.Content, d.options) != nil {
			d.mismatches++
		}
		c.add(c.chatGPTMessage(&node, d.assets))
		return nil
	})
}

func (c *Conversation) chatGPTMessage(node *chatGPTNode, files *assets) Message {
	m := Message{ID: string(node.ID), Parent: string(node.Parent), Hidden: true}
	from := node.Message
	if from == nil {
		return m
	}
	if from.Fragments != nil || c.Kind == protocol.ImportFromDeepSeek {
		c.Kind = protocol.ImportFromDeepSeek
		c.deepSeekMessage(&receiving{&m, files}, &from.deepSeekMessage, valueOf(from.Value))
		return m
	}
	if string(from.Metadata.Hidden) == "true" {
		c.noteHidden(&from.Content)
		return m
	}
	switch from.Author.Role {
	case "user":
		m.Role = protocol.RoleUser
	case "assistant", "tool":
		m.Role = protocol.RoleAssistant
	case "system": // instructions, which the source does not show
		c.noteHidden(&from.Content)
		return m
	default:
		c.note(protocol.ImportRolesUnknown, 1)
		return m
	}
	m.Hidden, m.CreatedAt, m.Status = false, from.CreateTime.Time, protocol.MessageComplete
	if from.Status == "in_progress" {
		m.Status = protocol.MessageIncomplete
	}
	if name := firstBytes(string(from.Metadata.Model), maxModelName); name != "" && m.Role == protocol.RoleAssistant {
		m.ModelID = &name
	}
	if call := c.chatGPTCall(&from.Content, string(from.Recipient)); call != nil {
		m.Parts = []protocol.Part{*call}
	} else {
		m.Parts = c.chatGPTParts(&from.Content, from.Author.Role == "tool", &receiving{&m, files})
	}
	if from.Author.Role == "tool" && isPictureTool(string(from.Author.Name)) {
		m.Parts = pictures(string(from.Author.Name), &m)
	}
	c.resolve(m.Parts, from.Metadata.References, from.Metadata.Citations)
	for _, file := range from.Metadata.Attachments {
		if !c.attach(&receiving{&m, files}, string(file.ID)) {
			m.Parts = append(m.Parts, c.absent(string(file.Name)))
		}
	}
	return m
}

// receiving is a message that is read, with the files of its archive.
type receiving struct {
	*Message
	files *assets
}

// attach attaches a file of the archive to a message, and reports whether that is possible. A file is attached once.
func (c *Conversation) attach(m *receiving, pointer string) bool {
	id, has := m.files.find(pointer)
	switch {
	case !has:
		return false
	case slices.Contains(m.Attachments, id):
		return true
	case len(m.Attachments) == protocol.MaxAttachments || c.memory+absentNotice > maxMemory:
		return false
	}
	m.Attachments, c.memory = append(m.Attachments, id), c.memory+absentNotice
	return true
}

// chatGPTCall returns the part for a call of a tool that has a counterpart here; nil: it is another message.
func (c *Conversation) chatGPTCall(content *chatGPTContent, recipient string) *protocol.Part {
	input := string(content.Text)
	if len(content.Parts) > 0 {
		var words text
		_ = json.Unmarshal(content.Parts[0], &words, lenient) // an empty text if it fails
		input += string(words)
	}
	switch {
	case isPictureTool(recipient):
		return toolPart(recipient, input)
	case recipient == createTextdoc || recipient == updateTextdoc:
		return &protocol.Part{Type: protocol.PartArtifact, ToolName: recipient, Code: input} // see textdocs
	}
	return nil
}

// toolPart is the part for a call of a tool of another service.
func toolPart(name, input string) *protocol.Part {
	id := protocol.ToolID(protocol.NewPartID())
	value := jsontext.Value(input)
	if !value.IsValid(lenient) || value.Kind() != '{' {
		value, _ = json.Marshal(map[string]string{"prompt": input}, lenient)
	}
	return &protocol.Part{Type: protocol.PartTool, ToolID: &id, ToolName: name, Title: name, Input: []byte(value), State: protocol.ToolSucceeded, Outcome: protocol.ResultOK}
}

// isPictureTool reports whether a tool of ChatGPT makes pictures.
func isPictureTool(name string) bool {
	return name == "dalle.text2im" || strings.HasPrefix(name, "t2uay3k.") || strings.HasPrefix(name, "image_gen.")
}

// pictures is the result of a tool that makes pictures: they are the files of the message. Its part is joined with that of the call.
func pictures(name string, m *Message) []protocol.Part {
	made := toolPart(name, "{}")
	var rest []protocol.Part
	var output []string
	for _, part := range m.Parts {
		if part.Type == protocol.PartCode {
			output = append(output, part.Code)
			continue
		}
		rest = append(rest, part)
	}
	made.Output = strings.Join(output, "\n")
	for i, id := range m.Attachments {
		made.Sources = append(made.Sources, protocol.Source{Number: i + 1, FileID: id, Title: "Picture"})
	}
	return append([]protocol.Part{*made}, rest...)
}

// noteHidden notes a message that the source does not show, if it has a content.
func (c *Conversation) noteHidden(content *chatGPTContent) {
	empty := content.Text == "" && content.Content == "" && content.Result == "" && content.Profile == "" && content.Instructions == ""
	for _, part := range content.Parts {
		empty = empty && string(part) == `""`
	}
	if !empty {
		c.note(protocol.ImportHiddenSkipped, 1)
	}
}

// absent is the part in place of an attachment that the export names but does not have.
func (c *Conversation) absent(name string) protocol.Part {
	c.note(protocol.ImportAttachmentsAbsent, 1)
	if name == "" {
		name = "a file"
	}
	return protocol.Part{Type: protocol.PartNotice, Kind: protocol.NoticeAttachmentAbsent, Text: clipRunes(name, maxName)}
}

// chatGPTParts converts the content of a message. Unknown types have texts in the same members, or nothing to show.
func (c *Conversation) chatGPTParts(content *chatGPTContent, ofTool bool, m *receiving) []protocol.Part {
	switch content.Type {
	case "code":
		language := string(content.Language)
		if language == "unknown" {
			language = ""
		}
		return []protocol.Part{{Type: protocol.PartCode, Language: language, Code: string(content.Text)}}
	case "execution_output":
		return []protocol.Part{{Type: protocol.PartCode, Code: string(content.Text)}}
	case "thoughts":
		var parts []protocol.Part
		for _, thought := range content.Thoughts {
			text := strings.TrimSpace(string(thought.Summary) + "\n\n" + string(thought.Content))
			parts = append(parts, protocol.Part{Type: protocol.PartReasoning, Text: text})
		}
		return parts
	case "user_editable_context", "model_editable_context", "reasoning_recap",
		"tether_browsing_display", "tether_quote", "sonic_webpage": // settings, and pages that a tool has read
		c.note(protocol.ImportPartsSkipped, 1)
		return nil
	}
	var parts []protocol.Part
	for _, value := range content.Parts {
		parts = append(parts, c.chatGPTPart(value, m)...)
	}
	if text := string(content.Text); len(parts) == 0 && text != "" {
		parts = append(parts, protocol.Part{Type: protocol.PartText, Text: text})
	}
	if ofTool { // what a tool returned is not a text for people
		for i := range parts {
			if parts[i].Type == protocol.PartText {
				parts[i] = protocol.Part{Type: protocol.PartCode, Code: parts[i].Text}
			}
		}
	}
	return parts
}

// chatGPTPart converts an element of "parts": a text, or an object that names a file.
func (c *Conversation) chatGPTPart(value jsontext.Value, m *receiving) []protocol.Part {
	if value.Kind() == '"' {
		var words text
		_ = json.Unmarshal(value, &words, lenient) // an empty text if it fails
		if strings.TrimSpace(string(words)) == "" {
			return nil
		}
		return []protocol.Part{{Type: protocol.PartText, Text: string(words)}}
	}
	var object struct {
		Type text `json:"content_type"`
		Text text `json:"text"`

		Asset  text      `json:"asset_pointer"`
		Audio  pointer   `json:"audio_asset_pointer"`
		Frames []pointer `json:"frames_asset_pointers"`
	}
	_ = json.Unmarshal(value, &object, lenient) // a value that is not an object has no type
	found := false
	for _, asset := range append([]pointer{{object.Asset}, object.Audio}, object.Frames...) {
		found = asset.Asset != "" && c.attach(m, string(asset.Asset)) || found
	}
	switch {
	case found:
		return nil
	case object.Type == "audio_transcription" || object.Type == "" && object.Text != "":
		return []protocol.Part{{Type: protocol.PartText, Text: string(object.Text)}}
	case object.Type != "":
		return []protocol.Part{c.absent(strings.TrimSuffix(string(object.Type), "_asset_pointer"))}
	}
	c.note(protocol.ImportPartsSkipped, 1)
	return nil
}

// pointer names a file of the archive.
type pointer struct {
	Asset text `json:"asset_pointer"`
}
