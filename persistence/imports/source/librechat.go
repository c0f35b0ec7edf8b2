package source

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"turnstone/protocol"
)

// anyMessage is a message of this service or of LibreChat, whose conversations have both a member "messages".
type anyMessage struct {
	ownMessage
	libreMessage
}

// libreMessage is a message of LibreChat. A tree has the later messages in "children".
type libreMessage struct {
	LibreID     text           `json:"messageId"`
	LibreParent text           `json:"parentMessageId"`
	ByUser      jsontext.Value `json:"isCreatedByUser"`
	Sender      text           `json:"sender"`
	Model       text           `json:"model"`
	Text        text           `json:"text"`
	Content     []libreContent `json:"content"`
	SentAt      when           `json:"createdAt"`
	Unfinished  jsontext.Value `json:"unfinished"`
	Failed      jsontext.Value `json:"error"`
	Files       []libreFile    `json:"files"`
}

// libreFile is a file, which a server stores in a folder of the user, below its identifier and its name.
type libreFile struct {
	ID   text `json:"file_id"`
	Name text `json:"filename"`
	Path text `json:"filepath"`
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. A value that is no file has no name.
func (f *libreFile) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	type members libreFile
	value, err := from.ReadValue()
	*f = libreFile{}
	if err == nil {
		_ = json.Unmarshal(value, (*members)(f), lenient) // no name if it fails
	}
	return err
}

// names are those that the file can have in an archive.
func (f *libreFile) names() []string {
	of := []string{string(f.Name), string(f.Path)}
	if f.ID != "" {
		of = append(of, string(f.ID)+"__"+string(f.Name))
	}
	return of
}

type libreContent struct {
	Type  text           `json:"type"`
	Text  jsontext.Value `json:"text"`
	Think jsontext.Value `json:"think"`
	Error jsontext.Value `json:"error"`
	Call  struct {
		Name   text           `json:"name"`
		Input  jsontext.Value `json:"args"`
		Output text           `json:"output"`
	} `json:"tool_call"`
	Picture libreFile `json:"image_file"`
}

// anyMessages reads messages whose format is known only from their members. Those of a tree are in the ones before them; the depth is
// that of JSON, which is limited.
func (d *decoder) anyMessages(c *Conversation) error {
	if d.PeekKind() != '[' {
		d.mismatches++
	}
	return d.elements(func() error {
		if d.PeekKind() != '{' {
			d.mismatches++
			return d.skip()
		}
		object := []byte("{")
		held := 0
		err := d.members(func(name string) error {
			if name == "children" {
				return d.anyMessages(c)
			}
			var value jsontext.Value
			if err := d.value(&value); err != nil {
				return err
			}
			need := len(name) + len(value)
			if c.memory+need > maxMemory || held+need > maxValue {
				c.note(protocol.ImportTextCut, 1)
				return nil
			}
			held, c.memory = held+need, c.memory+need
			if len(object) > 1 {
				object = append(object, ',')
			}
			object, _ = jsontext.AppendQuote(object, name) // a name that was decoded has no error
			object = append(append(object, ':'), value...)
			return nil
		})
		c.memory -= held
		var from anyMessage
		if len(object) > 1 && json.Unmarshal(append(object, '}'), &from, d.options) != nil {
			d.mismatches++
		}
		if len(object) > 1 {
			c.add(c.anyMessage(&from, d.assets))
		}
		return err
	})
}

func (c *Conversation) anyMessage(from *anyMessage, files *assets) Message {
	if c.Kind == protocol.ImportFromLibreChat || from.LibreID != "" || from.ByUser != nil || from.Sender != "" {
		if c.Kind == "" {
			c.Kind = protocol.ImportFromLibreChat
		}
		return c.libreMessage(&from.libreMessage, files)
	}
	return c.ownMessage(&from.ownMessage)
}

func (c *Conversation) libreMessage(from *libreMessage, files *assets) Message {
	m := Message{ID: string(from.LibreID), Parent: string(from.LibreParent), CreatedAt: from.SentAt.Time, Status: protocol.MessageComplete, Role: protocol.RoleAssistant}
	switch byUser := string(from.ByUser); {
	case byUser == "true", byUser != "false" && strings.EqualFold(string(from.Sender), "user"):
		m.Role = protocol.RoleUser
	case byUser != "false" && from.Sender == "":
		m.Hidden = true
		c.note(protocol.ImportRolesUnknown, 1)
		return m
	}
	if string(from.Unfinished) == "true" {
		m.Status = protocol.MessageIncomplete
	}
	if string(from.Failed) == "true" {
		m.Status = protocol.MessageFailed
	}
	if name := firstBytes(string(from.Model), maxModelName); name != "" && m.Role == protocol.RoleAssistant {
		m.ModelID = &name
	}
	for i := range from.Content {
		c.libreContent(&receiving{&m, files}, &from.Content[i])
	}
	if text := string(from.Text); len(m.Parts) == 0 && text != "" {
		m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartText, Text: text})
	}
	for i := range from.Files {
		c.attachNamed(&receiving{&m, files}, from.Files[i].names()...)
	}
	return m
}

func (c *Conversation) libreContent(m *receiving, from *libreContent) {
	switch from.Type {
	case "text":
		m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartText, Text: valueOf(from.Text)})
	case "error":
		m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartText, Text: valueOf(from.Error) + valueOf(from.Text)})
	case "think":
		m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartReasoning, Text: valueOf(from.Think)})
	case "tool_call":
		input := valueOf(from.Call.Input)
		if from.Call.Input.Kind() == '{' {
			input = string(from.Call.Input)
		}
		part := toolPart(string(from.Call.Name), input)
		part.Output = string(from.Call.Output)
		m.Parts = append(m.Parts, *part)
	case "image_file":
		c.attachNamed(m, from.Picture.names()...)
	default:
		c.note(protocol.ImportPartsSkipped, 1)
	}
}

// valueOf returns a text, or the text in the member "value" of an object.
func valueOf(from jsontext.Value) string {
	var words text
	if from.Kind() == '"' {
		_ = json.Unmarshal(from, &words, lenient) // an empty text if it fails
		return string(words)
	}
	var object struct {
		Value text `json:"value"`
	}
	_ = json.Unmarshal(from, &object, lenient) // an empty text if it fails
	return string(object.Value)
}
