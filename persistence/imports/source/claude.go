package source

import "turnstone/protocol"

// claudeMessage is an element of "chat_messages". Older exports have only a text and no parents: their messages form a
// chain.
type claudeMessage struct {
	ID        text  `json:"uuid"`
	Parent    *text `json:"parent_message_uuid"`
	Sender    text  `json:"sender"`
	Text      text  `json:"text"`
	CreatedAt when  `json:"created_at"`
	Content   []struct {
		Type     text `json:"type"`
		Text     text `json:"text"`
		Thinking text `json:"thinking"`
		Name     text `json:"name"`
	} `json:"content"`
	Attachments []struct {
		Name    text `json:"file_name"`
		Content text `json:"extracted_content"`
	} `json:"attachments"`
	Files []struct {
		Name text `json:"file_name"`
	} `json:"files"`
}

func (d *decoder) claudeMessages(c *Conversation) error {
	previous := ""
	err := d.elements(func() error {
		var from claudeMessage
		if err := d.value(&from); err != nil {
			return err
		}
		m := c.claudeMessage(&from)
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

func (c *Conversation) claudeMessage(from *claudeMessage) Message {
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
		default:
			c.note(protocol.ImportPartsSkipped, 1)
		}
	}
	if len(m.Parts) == 0 && from.Text != "" {
		m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartText, Text: string(from.Text)})
	}
	for _, file := range from.Attachments {
		if file.Content != "" { // the text of the attachment is in the export
			m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartCode, Filename: clipRunes(string(file.Name), maxName), Code: string(file.Content)})
			continue
		}
		m.Parts = append(m.Parts, c.absent(string(file.Name)))
	}
	for _, file := range from.Files {
		m.Parts = append(m.Parts, c.absent(string(file.Name)))
	}
	return m
}
