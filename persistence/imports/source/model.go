package source

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"turnstone/protocol"
)

// Conversation is one conversation of an export.
type Conversation struct {
	Kind        protocol.ImportSource
	ID          string // within the source
	Title       string
	TitleSource string // user or auto
	Profile     *protocol.Profile
	Metadata    map[string]string
	Draft       string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Messages    []Message
	Active      string            // the last message of the path that was shown
	BranchNames map[string]string // by last message

	// Notes count what was left out or changed.
	Notes map[protocol.ImportReason]int

	nodes int // of the source
	text  int // bytes of texts
}

// Message is one message of a conversation, or a node without one.
type Message struct {
	ID, Parent string // empty: none
	Role       string
	Status     protocol.MessageStatus
	Parts      []protocol.Part
	Profile    *protocol.Profile
	ModelID    *string
	Routing    *protocol.MessageRouting
	Usage      *protocol.Usage
	CreatedAt  time.Time
	Hidden     bool // its children belong to its parent
}

// note counts a reason.
func (c *Conversation) note(reason protocol.ImportReason, n int) {
	if n == 0 {
		return
	}
	if c.Notes == nil {
		c.Notes = map[protocol.ImportReason]int{}
	}
	c.Notes[reason] += n
}

// add adds a message unless the conversation is full.
func (c *Conversation) add(m Message) {
	if c.nodes++; c.nodes > maxNodes {
		c.note(protocol.ImportMessagesCut, 1)
		return
	}
	m.ID, m.Parent = clip(m.ID, maxID), clip(m.Parent, maxID)
	m.Parts = c.clean(m.Parts)
	if len(m.Parts) == 0 && c.Kind != protocol.ImportFromTurnstone {
		m.Hidden = true
	}
	if !m.Hidden {
		size := 0
		for i := range m.Parts {
			size += len(m.Parts[i].Text) + len(m.Parts[i].Code) + len(m.Parts[i].Output) + len(m.Parts[i].Input)
		}
		if c.text += size; c.text > maxText || len(c.Messages) >= maxMessages {
			c.text -= size
			c.note(protocol.ImportMessagesCut, 1)
			m.Hidden, m.Parts = true, nil // messages after it belong to the one before it
		}
	}
	c.Messages = append(c.Messages, m)
}

// clean removes what cannot be stored from the parts of a message.
func (c *Conversation) clean(parts []protocol.Part) []protocol.Part {
	kept := parts[:0]
	for _, p := range parts {
		for _, text := range []*string{&p.Text, &p.Code, &p.Output, &p.Language, &p.Filename, &p.Title, &p.ToolName, &p.Kind} {
			c.cleanText(text)
		}
		if text, err := json.Marshal(p); err != nil || bytes.Contains(text, []byte(`\u0000`)) { // in the input, the error or a citation
			p.Input, p.Error, p.Citations = nil, nil, nil
			c.note(protocol.ImportTextChanged, 1)
		}
		if p.PartID.IsZero() {
			p.PartID = protocol.NewPartID()
		}
		if p.Type == protocol.PartTool || p.Text != "" || p.Code != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

func (c *Conversation) cleanText(text *string) {
	if strings.Contains(*text, "\x00") {
		*text = strings.ReplaceAll(*text, "\x00", "\uFFFD")
		c.note(protocol.ImportTextChanged, 1)
	}
}

// finish cleans the fields of a conversation when all of it was read.
func (c *Conversation) finish(now time.Time) {
	c.Title = c.line(c.Title, protocol.MaxTitle)
	if c.TitleSource != "auto" || c.Title == "" {
		c.TitleSource = "user"
	}
	if c.Title == "" {
		c.TitleSource = "auto"
	}
	c.cleanText(&c.Draft)
	if runes := []rune(c.Draft); len(runes) > protocol.MaxInputRunes {
		c.Draft = string(runes[:protocol.MaxInputRunes])
		c.note(protocol.ImportTextChanged, 1)
	}
	c.ID = clip(c.ID, maxID)
	c.CreatedAt = bounded(c.CreatedAt, now, now)
	c.UpdatedAt = bounded(c.UpdatedAt, c.CreatedAt, now)
	for i := range c.Messages {
		c.Messages[i].CreatedAt = bounded(c.Messages[i].CreatedAt, c.CreatedAt, now)
	}
	for message, name := range c.BranchNames {
		c.BranchNames[message] = c.line(name, protocol.MaxTitle)
	}
}

// line returns a text as one line of at most limit characters.
func (c *Conversation) line(text string, limit int) string {
	clean := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)), " ")
	if utf8.RuneCountInString(clean) > limit {
		clean = strings.TrimSpace(string([]rune(clean)[:limit]))
		c.note(protocol.ImportTitleCut, 1)
	}
	return clean
}

// bounded returns a time, or otherwise if it is missing or cannot be right.
func bounded(at, otherwise, now time.Time) time.Time {
	const firstYear = 1970
	if at.IsZero() || at.Year() <= firstYear || at.After(now) {
		return otherwise
	}
	return at
}

// clip shortens an identifier. Identifiers are compared, never shown.
func clip(text string, limit int) string {
	if len(text) > limit {
		return text[:limit]
	}
	return text
}
