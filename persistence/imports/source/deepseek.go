package source

import (
	"strconv"
	"strings"

	"turnstone/protocol"
)

// fragment is a part of a message of DeepSeek.
type fragment struct {
	Type    text `json:"type"`
	Content text `json:"content"`
	Results []struct {
		URL   text `json:"url"`
		Title text `json:"title"`
	} `json:"results"`
}

// deepSeekMessage is what a message of DeepSeek has besides the members of ChatGPT. Older exports have a text and its
// reasoning in place of fragments.
type deepSeekMessage struct {
	Fragments  []fragment `json:"fragments"`
	Reasoning  text       `json:"reasoning_content"`
	Role       text       `json:"role"`
	Model      text       `json:"model"`
	InsertedAt when       `json:"inserted_at"`
	Files      []struct {
		Name    text `json:"file_name"`
		Content text `json:"content"`
	} `json:"files"`
}

// deepSeekMessage converts a message. content is the text of an older export.
func (c *Conversation) deepSeekMessage(m *receiving, from *deepSeekMessage, content string) {
	m.Hidden, m.CreatedAt, m.Status, m.Role = false, from.InsertedAt.Time, protocol.MessageComplete, protocol.RoleAssistant
	for i := range from.Fragments {
		f := &from.Fragments[i]
		switch f.Type {
		case "REQUEST":
			m.Role = protocol.RoleUser
			m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartText, Text: string(f.Content)})
		case "RESPONSE":
			m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartText, Text: string(f.Content)})
		case "THINK":
			m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartReasoning, Text: string(f.Content)})
		case "SEARCH":
			m.Parts = append(m.Parts, searchPart(f))
		default:
			c.note(protocol.ImportPartsSkipped, 1)
		}
	}
	if number, err := strconv.Atoi(m.ID); from.Fragments == nil && (strings.EqualFold(string(from.Role), protocol.RoleUser) || from.Role == "" && err == nil && number%2 == 1) {
		m.Role = protocol.RoleUser // the messages of a path have numbers in turns
	}
	if from.Reasoning != "" {
		m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartReasoning, Text: string(from.Reasoning)})
	}
	if content != "" {
		m.Parts = append(m.Parts, protocol.Part{Type: protocol.PartText, Text: content})
	}
	if name := firstBytes(string(from.Model), maxModelName); name != "" && m.Role == protocol.RoleAssistant {
		m.ModelID = &name
	}
	for _, file := range from.Files {
		if !c.attachText(m.Message, string(file.Name), string(file.Content)) {
			c.attachNamed(m, string(file.Name))
		}
	}
}

// searchPart is a search of the web with what it found.
func searchPart(f *fragment) protocol.Part {
	part := toolPart("web_search", "{}")
	part.Kind = "web_search"
	var out strings.Builder
	out.WriteString(string(f.Content))
	for _, result := range f.Results {
		out.WriteString(string(result.Title + "\n" + result.URL + "\n\n"))
	}
	part.Output = strings.TrimSpace(out.String())
	return *part
}
