package source

import (
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"turnstone/protocol"
)

// ownMember reads a member of a protocol.ConversationExport.
func (d *decoder) ownMember(c *Conversation, name string) error {
	switch name {
	case "conversation":
		return d.own(c)
	case "branches":
		return d.ownBranches(c)
	case "messages":
		return d.ownMessages(c)
	case "follow_ups":
		n := 0
		err := d.elements(func() error { n++; return d.skip() })
		c.note(protocol.ImportFollowUpsSkipped, n)
		return err
	case "draft":
		var draft struct {
			Content text `json:"content"`
		}
		err := d.value(&draft)
		const most = utf8.UTFMax * (protocol.MaxInputRunes + 1) // bytes; one character too many lets finish note the cut
		c.Draft = prefix(string(draft.Content), most)
		return err
	}
	return d.skip()
}

// own reads the member "conversation" of a protocol.ConversationExport.
func (d *decoder) own(c *Conversation) error {
	var from struct {
		ID          text              `json:"conversation_id"`
		Title       text              `json:"title"`
		TitleSource text              `json:"title_source"`
		Profile     text              `json:"profile"`
		Metadata    map[string]string `json:"metadata"`
		Head        text              `json:"head_message_id"`
		CreatedAt   when              `json:"created_at"`
		ActivityAt  when              `json:"last_activity_at"`
	}
	err := d.value(&from)
	const most = 64 << 10 // finish shortens them further
	c.ID, c.Title, c.TitleSource = prefix(string(from.ID), most), prefix(string(from.Title), most), prefix(string(from.TitleSource), most)
	c.Profile = profile(from.Profile)
	c.CreatedAt, c.UpdatedAt = from.CreatedAt.Time, from.ActivityAt.Time
	if c.Active == "" {
		c.Active = clip(string(from.Head), maxID)
	}
	const maxKeys, maxLength = 16, 512
	for key, value := range from.Metadata {
		c.cleanText(&value)
		if len(c.Metadata) == maxKeys || key == "" || len(key) > 64 || len(value) > maxLength || c.line(key, maxLength) != key {
			c.note(protocol.ImportTextCut, 1)
			continue
		}
		if c.Metadata == nil {
			c.Metadata = map[string]string{}
		}
		c.Metadata[key] = value
	}
	return err
}

// profile returns a profile that exists, or nil.
func profile(name text) *protocol.Profile {
	switch p := protocol.Profile(name); p {
	case protocol.ProfileAuto, protocol.ProfileBalanced, protocol.ProfileDeepReasoning, protocol.ProfileCoding:
		return &p
	}
	return nil
}

func (d *decoder) ownBranches(c *Conversation) error {
	return d.elements(func() error {
		var from struct {
			Name   text `json:"name"`
			Head   text `json:"head_message_id"`
			Active bool `json:"active"`
		}
		err := d.value(&from)
		if from.Active && from.Head != "" {
			c.Active = clip(string(from.Head), maxID)
		}
		if from.Name != "" && from.Head != "" {
			c.nameBranch(clip(string(from.Head), maxID), c.line(string(from.Name), protocol.MaxTitle))
		}
		return err
	})
}

// nameBranch keeps the name of the branch that ends with a message.
func (c *Conversation) nameBranch(head, name string) {
	need := branchOverhead + len(head) + len(name)
	if len(c.BranchNames) >= maxMessages || c.memory+need > maxMemory {
		c.note(protocol.ImportBranchesCut, 1)
		return
	}
	if c.BranchNames == nil {
		c.BranchNames = map[string]string{}
	}
	c.BranchNames[head], c.memory = name, c.memory+need
}

// ownMessage is a protocol.Message of which each member may be of another type.
type ownMessage struct {
	ID          text                     `json:"message_id"`
	Parent      text                     `json:"parent_message_id"`
	Role        text                     `json:"role"`
	Status      text                     `json:"status"`
	Parts       []jsontext.Value         `json:"parts"`
	Attachments []text                   `json:"attachments"`
	Profile     text                     `json:"profile"`
	ModelID     text                     `json:"model_id"`
	CreatedAt   when                     `json:"created_at"`
	Routing     *protocol.MessageRouting `json:"routing"`
	Usage       *protocol.Usage          `json:"usage"`
}

func (d *decoder) ownMessages(c *Conversation) error {
	return d.elements(func() error {
		var from ownMessage
		if err := d.value(&from); err != nil {
			return err
		}
		c.add(c.ownMessage(&from))
		return nil
	})
}

func (c *Conversation) ownMessage(from *ownMessage) Message {
	m := Message{
		ID: string(from.ID), Parent: string(from.Parent), Role: string(from.Role), CreatedAt: from.CreatedAt.Time,
		Status: protocol.MessageStatus(from.Status), Profile: profile(from.Profile), Usage: from.Usage, Routing: from.Routing,
	}
	if m.Role != protocol.RoleUser && m.Role != protocol.RoleAssistant {
		m.Hidden = true
		return m
	}
	switch m.Status {
	case protocol.MessageComplete, protocol.MessageCancelled, protocol.MessageFailed, protocol.MessageIncomplete:
	default: // also an answer that was still streaming
		m.Status = protocol.MessageIncomplete
	}
	if m.Routing != nil {
		m.Routing.Reason = prefix(m.Routing.Reason, maxReason)
	}
	if m.Routing != nil && (profile(text(m.Routing.Requested)) == nil || profile(text(m.Routing.Resolved)) == nil) {
		m.Routing = nil
	}
	if u := m.Usage; u != nil && min(u.InputTokens, u.OutputTokens, u.ReasoningTokens, u.CachedInputTokens) < 0 {
		m.Usage = nil
	}
	if name := clip(string(from.ModelID), maxModelName); name != "" {
		m.ModelID = &name
	}
	for _, value := range from.Parts {
		part, is := ownPart(value)
		if !is {
			c.note(protocol.ImportUnreadable, 1)
			continue
		}
		m.Parts = append(m.Parts, part)
	}
	for range from.Attachments {
		m.Parts = append(m.Parts, c.absent(""))
	}
	return m
}

// ownPart reads a part; false if it is none.
func ownPart(value jsontext.Value) (part protocol.Part, is bool) {
	if json.Unmarshal(value, &part, lenient) != nil {
		return part, false
	}
	part.Open = false
	switch part.Type {
	case protocol.PartText, protocol.PartReasoning, protocol.PartCode, protocol.PartNotice:
		return part, true
	case protocol.PartTool:
		if !slices.Contains(protocol.ToolStates, part.State) || !part.State.Terminal() {
			part.State = protocol.ToolOutcomeUnknown
		}
		return part, true
	}
	return part, false
}
