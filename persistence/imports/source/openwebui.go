package source

import (
	"encoding/base64"
	"mime"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/html"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

// openMessage is a message of Open WebUI.
type openMessage struct {
	ID        text           `json:"id"`
	Parent    text           `json:"parentId"`
	Role      text           `json:"role"`
	Content   jsontext.Value `json:"content"`
	Model     text           `json:"model"`
	Timestamp when           `json:"timestamp"`
	Done      jsontext.Value `json:"done"`
	Error     jsontext.Value `json:"error"`
	Files     []openFile     `json:"files"`
	Output    []openOutput   `json:"output"`
	Sources   []openSource   `json:"sources"`
	Citations []openSource   `json:"citations"`
}

type openFile struct {
	Type text `json:"type"`
	Name text `json:"name"`
	URL  text `json:"url"`
	File struct {
		Name text `json:"filename"`
		Data struct {
			Content text `json:"content"`
		} `json:"data"`
	} `json:"file"`
}

type openOutput struct {
	Type    text           `json:"type"`
	Name    text           `json:"name"`
	CallID  text           `json:"call_id"`
	Input   text           `json:"arguments"`
	Content jsontext.Value `json:"content"`
	Output  jsontext.Value `json:"output"`
}

type openSource struct {
	Source struct {
		Name text `json:"name"`
		URL  text `json:"url"`
	} `json:"source"`
}

// openChat reads the member "chat" of Open WebUI. It has a tree of messages, and the messages that were shown once more.
func (d *decoder) openChat(c *Conversation) error {
	return d.members(func(name string) error {
		switch name {
		case "title":
			return d.text(&c.Title)
		case "history":
			return d.openHistory(c)
		case "messages":
			c.Kind = protocol.ImportFromOpenWebUI
			return d.elements(func() error { return d.openMessage(c, "") })
		}
		return d.skip()
	})
}

func (d *decoder) openHistory(c *Conversation) error {
	return d.members(func(name string) error {
		switch name {
		case "currentId":
			return d.text(&c.Active)
		case "messages":
			c.Kind = protocol.ImportFromOpenWebUI
			if d.PeekKind() != '{' {
				d.mismatches++
			}
			return d.members(func(id string) error { return d.openMessage(c, id) })
		}
		return d.skip()
	})
}

func (d *decoder) openMessage(c *Conversation, id string) error {
	var from openMessage
	if err := d.value(&from); err != nil {
		return err
	}
	if from.ID == "" {
		from.ID = text(id)
	}
	if id := firstBytes(string(from.ID), maxID); id != "" {
		if c.read[id] {
			return nil // it was in the other list
		}
		if c.read == nil {
			c.read = map[string]bool{}
		}
		if len(c.read) < maxNodes {
			c.read[id] = true
		}
	}
	c.add(c.openMessage(&from, d.assets))
	return nil
}

func (c *Conversation) openMessage(from *openMessage, files *assets) Message {
	m := Message{ID: string(from.ID), Parent: string(from.Parent), CreatedAt: from.Timestamp.Time, Status: protocol.MessageComplete}
	content := valueOf(from.Content)
	if from.Content.Kind() == '[' {
		content = claudeOutput(from.Content)
	}
	switch from.Role {
	case "user":
		m.Role = protocol.RoleUser
	case "assistant":
		m.Role = protocol.RoleAssistant
	case "system":
		m.Hidden = true
		if content != "" {
			c.note(protocol.ImportHiddenSkipped, 1)
		}
		return m
	default:
		m.Hidden = true
		c.note(protocol.ImportRolesUnknown, 1)
		return m
	}
	switch {
	case from.Error.Kind() == '{', from.Error.Kind() == '"':
		m.Status = protocol.MessageFailed
	case string(from.Done) == "false":
		m.Status = protocol.MessageIncomplete
	}
	if name := firstBytes(string(from.Model), maxModelName); name != "" && m.Role == protocol.RoleAssistant {
		m.ModelID = &name
	}
	m.Parts = joinTexts(c.openOutput(from.Output), openDetails(content))
	c.openSources(&m, append(from.Sources, from.Citations...))
	for i := range from.Files {
		if !c.openFile(&m, &from.Files[i]) {
			c.attachNamed(&receiving{&m, files}, string(from.Files[i].Name))
		}
	}
	return m
}

// openOutput converts the steps of an answer. Older exports do not have them.
func (c *Conversation) openOutput(output []openOutput) (parts []protocol.Part) {
	called := map[text]int{}
	for i := range output {
		switch step := &output[i]; step.Type {
		case "message":
			parts = append(parts, protocol.Part{Type: protocol.PartText, Text: claudeOutput(step.Content)})
		case "reasoning":
			parts = append(parts, protocol.Part{Type: protocol.PartReasoning, Text: claudeOutput(step.Content)})
		case "function_call":
			called[step.CallID] = len(parts)
			parts = append(parts, *toolPart(string(step.Name), string(step.Input)))
		case "function_call_output":
			at, known := called[step.CallID]
			if !known {
				c.note(protocol.ImportPartsSkipped, 1)
				continue
			}
			if len(parts[at].Output) <= maxOutput { // more is cut later
				parts[at].Output += claudeOutput(step.Output)
			}
		default:
			c.note(protocol.ImportPartsSkipped, 1)
		}
	}
	return parts
}

// joinTexts returns the steps of an answer, and its text if the steps do not have it. Without steps, it returns all parts of the text.
func joinTexts(steps, ofText []protocol.Part) []protocol.Part {
	if len(steps) == 0 {
		return ofText
	}
	squeezed := func(text string) string { return strings.Join(strings.Fields(text), "") }
	texts := func(parts []protocol.Part) string {
		var all strings.Builder
		for i := range parts {
			if parts[i].Type == protocol.PartText {
				all.WriteString(squeezed(parts[i].Text))
			}
		}
		return all.String()
	}
	if strings.Contains(texts(steps), texts(ofText)) {
		return steps
	}
	for i := range ofText {
		if ofText[i].Type == protocol.PartText {
			steps = append(steps, ofText[i])
		}
	}
	return steps
}

// openBlock is a block in the text of an answer: reasoning, or the call of a tool.
var openBlock = regexp.MustCompile(`(?s)<details type="(reasoning|tool_calls|code_interpreter)"([^>]*)>\s*(?:<summary>.*?</summary>)?(.*?)</details>\s*`)

var openAttribute = regexp.MustCompile(`(\w+)="([^"]*)"`)

// openDetails converts a text with blocks of details.
func openDetails(content string) (parts []protocol.Part) {
	add := func(text string) {
		if strings.TrimSpace(text) != "" {
			parts = append(parts, protocol.Part{Type: protocol.PartText, Text: text})
		}
	}
	at := 0
	for _, match := range openBlock.FindAllStringSubmatchIndex(content, -1) {
		add(content[at:match[0]])
		at = match[1]
		kind, inside := content[match[2]:match[3]], strings.TrimSpace(html.UnescapeString(content[match[6]:match[7]]))
		if kind == "reasoning" {
			lines := strings.Split(inside, "\n")
			for i := range lines {
				lines[i] = strings.TrimPrefix(strings.TrimPrefix(lines[i], ">"), " ")
			}
			parts = append(parts, protocol.Part{Type: protocol.PartReasoning, Text: strings.Join(lines, "\n")})
			continue
		}
		attributes := map[string]string{}
		for _, attribute := range openAttribute.FindAllStringSubmatch(content[match[4]:match[5]], -1) {
			attributes[attribute[1]] = html.UnescapeString(attribute[2])
		}
		name := attributes["name"]
		if name == "" {
			name = kind
		}
		part := toolPart(name, attributes["arguments"])
		part.Output = strings.TrimSpace(attributes["result"] + attributes["output"] + "\n" + inside)
		parts = append(parts, *part)
	}
	add(content[at:])
	return parts
}

// openSources adds the sources of an answer to its first text, which names them by their numbers in brackets.
func (c *Conversation) openSources(m *Message, sources []openSource) {
	for i := range m.Parts {
		if m.Parts[i].Type != protocol.PartText {
			continue
		}
		for n, from := range sources {
			if title := cmpText(from.Source.Name, from.Source.URL); title != "" && n < maxCitations {
				address := from.Source.URL
				if address == "" {
					address = from.Source.Name
				}
				m.Parts[i].Citations = append(m.Parts[i].Citations, protocol.Citation{Index: n + 1, Title: title, URL: protocol.WebAddress(address), Marker: marker(n + 1)})
				continue
			}
			c.note(protocol.ImportTextChanged, 1)
		}
		return
	}
	c.note(protocol.ImportPartsSkipped, len(sources))
}

// openFile attaches a file whose content the message has: a picture as a data URL, or a document as text.
func (c *Conversation) openFile(m *Message, from *openFile) bool {
	if from.Name == "" {
		from.Name = from.File.Name
	}
	if content := string(from.File.Data.Content); content != "" {
		return c.attachText(m, string(from.Name), content)
	}
	header, data, is := strings.Cut(string(from.URL), ";base64,")
	media, isData := strings.CutPrefix(header, "data:")
	if !is || !isData || len(m.Attachments) == protocol.MaxAttachments {
		return false
	}
	content, err := base64.StdEncoding.DecodeString(data)
	media, _, badType := mime.ParseMediaType(media)
	if err != nil || badType != nil || len(content) == 0 {
		return false
	}
	name := string(from.Name)
	if name == "" {
		name = "Picture"
	}
	f := newFile(c.Kind, clipRunes(name, maxName), filetype.Canonical(media), string(content))
	if !c.addFile(f, len(content)) {
		return false
	}
	if !slices.Contains(m.Attachments, f.ID) {
		m.Attachments, c.memory = append(m.Attachments, f.ID), c.memory+absentNotice
	}
	return true
}
