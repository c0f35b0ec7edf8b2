package source

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"turnstone/protocol"
)

// claudeMessage is an element of "chat_messages". Older exports have only a text and no parents: their messages form a
// chain.
type claudeMessage struct {
	ID          text         `json:"uuid"`
	Parent      *text        `json:"parent_message_uuid"`
	Sender      text         `json:"sender"`
	Text        text         `json:"text"`
	CreatedAt   when         `json:"created_at"`
	Content     []claudePart `json:"content"`
	Attachments []struct {
		Name    text `json:"file_name"`
		Content text `json:"extracted_content"`
	} `json:"attachments"`
	Files []struct {
		Name text `json:"file_name"`
	} `json:"files"`
}

type claudePart struct {
	Type     text           `json:"type"`
	Text     text           `json:"text"`
	Thinking text           `json:"thinking"`
	Name     text           `json:"name"`
	Input    jsontext.Value `json:"input"`
	Content  jsontext.Value `json:"content"`
	Failed   jsontext.Value `json:"is_error"`
}

func (d *decoder) claudeMessages(c *Conversation) error {
	previous := ""
	err := d.elements(func() error {
		var from claudeMessage
		if err := d.value(&from); err != nil {
			return err
		}
		m := c.claudeMessage(&from, d.assets)
		if from.Parent == nil {
			m.Parent = previous
		}
		previous = m.ID
		c.add(m)
		return nil
	})
	if c.Active == "" {
		c.Active = previous
	}
	return err
}

func (c *Conversation) claudeMessage(from *claudeMessage, files *assets) Message {
	m := Message{ID: string(from.ID), CreatedAt: from.CreatedAt.Time, Status: protocol.MessageComplete}
	if from.Parent != nil {
		m.Parent = string(*from.Parent)
	}
	switch from.Sender {
	case "human":
		m.Role = protocol.RoleUser
	case "assistant":
		m.Role = protocol.RoleAssistant
	default:
		m.Hidden = true
		c.note(protocol.ImportRolesUnknown, 1)
		return m
	}
	for i := range from.Content {
		switch part := &from.Content[i]; part.Type {
		case "text":
			m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartText, Text: string(part.Text)})
		case "thinking":
			m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartReasoning, Text: string(part.Thinking)})
		case "tool_use":
			c.claudeCall(&m, part)
		case "tool_result":
			c.claudeResult(&m, part)
		default:
			c.note(protocol.ImportPartsSkipped, 1)
		}
	}
	if len(m.Parts) == 0 && from.Text != "" {
		m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartText, Text: string(from.Text)})
	}
	for _, file := range from.Attachments {
		if !c.attachText(&m, string(file.Name), string(file.Content)) {
			c.attachNamed(&receiving{&m, files}, string(file.Name))
		}
	}
	for _, file := range from.Files {
		c.attachNamed(&receiving{&m, files}, string(file.Name))
	}
	return m
}

// attachText attaches a file with a text to a message; false: the export has no text, or there is no space for it.
func (c *Conversation) attachText(m *Message, name, content string) bool {
	if content == "" || len(m.Attachments) == protocol.MaxAttachments {
		return false
	}
	id, added := c.textFile(name, content)
	if added && !slices.Contains(m.Attachments, id) {
		m.Attachments, c.memory = append(m.Attachments, id), c.memory+absentNotice
	}
	return added
}

const artifactsTool = "artifacts"

// claudeCall adds a call of a tool. Calls that write an artifact become versions of it.
func (c *Conversation) claudeCall(m *Message, call *claudePart) {
	switch {
	case call.Name == "":
		c.note(protocol.ImportPartsSkipped, 1)
	case call.Name != artifactsTool:
		m.Parts = append(m.Parts, *toolPart(string(call.Name), string(call.Input)))
	default:
		part := c.claudeArtifact(m, call.Input)
		if part == nil {
			part = &protocol.Part{Type: protocol.PartCode, Language: "json", Code: string(call.Input)}
		}
		m.Parts = append(m.Parts, *part)
	}
}

// claudeArtifact returns the part for a version of an artifact; nil: the call cannot be applied.
func (c *Conversation) claudeArtifact(m *Message, input jsontext.Value) *protocol.Part {
	var call struct {
		ID       text `json:"id"`
		Command  text `json:"command"`
		Type     text `json:"type"`
		Title    text `json:"title"`
		Language text `json:"language"`
		Content  text `json:"content"`
		Old      text `json:"old_str"`
		New      text `json:"new_str"`
	}
	if json.Unmarshal(input, &call, lenient) != nil || call.ID == "" {
		c.note(protocol.ImportUnreadable, 1)
		return nil
	}
	id := firstBytes(string(call.ID), maxID)
	v := &Artifact{CreatedAt: m.CreatedAt, Title: string(call.Title), Content: string(call.Content), source: id}
	v.Kind, v.Language = kindOf(string(call.Type), string(call.Language))
	before := c.version(id, string(call.Old))
	if before != nil {
		if v.Title == "" {
			v.Title = before.Title
		}
		v.Kind, v.Language = before.Kind, before.Language
	}
	if call.Command == "update" {
		if before == nil {
			c.note(protocol.ImportUnreadable, 1)
			return nil
		}
		v.Content = strings.Replace(before.Content, string(call.Old), string(call.New), 1)
	}
	return c.write(id, v)
}

// version returns the newest version of an artifact that has a text. Another branch may have written newer ones.
func (c *Conversation) version(id, has string) *Artifact {
	versions := c.written.bySource[id]
	for i := len(versions) - 1; i >= 0; i-- {
		if c.written.work += len(versions[i].Content); c.written.work > maxPatternWork {
			return nil
		}
		if strings.Contains(versions[i].Content, has) {
			return versions[i]
		}
	}
	return nil
}

// claudeResult adds the result of a tool to the last call of it.
func (c *Conversation) claudeResult(m *Message, result *claudePart) {
	if result.Name == artifactsTool {
		return // it says that the version was written
	}
	output := claudeOutput(result.Content)
	for i := len(m.Parts) - 1; i >= 0; i-- {
		p := &m.Parts[i]
		if p.Type != protocol.PartTool || p.ToolName != string(result.Name) || p.Output != "" {
			continue
		}
		p.Output = output
		if string(result.Failed) == "true" {
			p.State, p.Outcome = protocol.ToolFailed, protocol.ResultFailed
		}
		return
	}
	c.note(protocol.ImportPartsSkipped, 1)
}

// claudeOutput returns the text of a result: a text, or a list of objects, which are shown as they are if they have no text.
func claudeOutput(content jsontext.Value) string {
	var words text
	var list []jsontext.Value
	if content.Kind() == '"' {
		_ = json.Unmarshal(content, &words, lenient) // an empty text if it fails
		return string(words)
	}
	_ = json.Unmarshal(content, &list, lenient) // an empty list if it fails
	var out []string
	for _, element := range list {
		var object struct {
			Text text `json:"text"`
		}
		_ = json.Unmarshal(element, &object, lenient) // an empty text if it fails
		if object.Text == "" {
			object.Text = text(element)
		}
		out = append(out, string(object.Text))
	}
	return strings.Join(out, "\n")
}
