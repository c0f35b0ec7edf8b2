package source

import (
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"turnstone/protocol"
	"turnstone/protocol/clip"
)

// ownMember reads a member of a protocol.ConversationExport.
func (d *decoder) ownMember(c *Conversation, name string) error {
	switch name {
	case "conversation":
		return d.own(c)
	case "branches":
		return d.ownBranches(c)
	case "follow_ups":
		return d.ownFollowUps(c)
	case "draft":
		var draft struct {
			Content     text   `json:"content"`
			Attachments []text `json:"attachments"`
			Version     int64  `json:"version"`
			UpdatedAt   when   `json:"updated_at"`
		}
		err := d.value(&draft)
		c.Draft, c.DraftVersion, c.DraftUpdatedAt = clip.Bytes(string(draft.Content), maxInput), version(draft.Version), draft.UpdatedAt.Time
		c.DraftAttachments = c.attachments(draft.Attachments)
		return err
	case "artifacts":
		return d.elements(func() error {
			v, valid, err := d.artifact(d.now)
			if err != nil {
				return err
			}
			switch need := messageOverhead + len(v.Content); {
			case !valid:
				c.note(protocol.ImportUnreadable, 1)
			case c.memory+need > maxMemory:
				c.note(protocol.ImportArtifactsLimit, 1)
			default:
				c.Artifacts, c.memory = append(c.Artifacts, v), c.memory+need
			}
			return nil
		})
	case "incomplete":
		var why text
		err := d.value(&why)
		if why != "" {
			c.note(protocol.ImportIncomplete, 1)
		}
		return err
	}
	return d.skip()
}

// maxInput is the size of an input or a draft in bytes; one character too many lets a later step note that it is cut.
const maxInput = utf8.UTFMax * (protocol.MaxInputRunes + 1)

// version returns a version that can be stored and raised.
func version(of int64) int64 {
	const most = 1 << 40
	return min(max(of, 1), most)
}

// absentNotice is the memory counted for each file, in bytes: if the account does not have the file, a notice with its name
// takes its place.
const absentNotice = partOverhead + utf8.UTFMax*maxName

// attachments returns the identifiers of the files of one message, each once. An entry that is no identifier, or that
// exceeds the limit of a message, is noted as absent.
func (c *Conversation) attachments(from []text) []protocol.FileID {
	var files []protocol.FileID
	for _, name := range from {
		var id protocol.FileID
		if id.UnmarshalText([]byte(name)) != nil || len(files) == protocol.MaxAttachments || c.memory+absentNotice > maxMemory {
			c.note(protocol.ImportAttachmentsAbsent, 1)
			continue
		}
		if !slices.Contains(files, id) {
			files, c.memory = append(files, id), c.memory+absentNotice
		}
	}
	return files
}

// maxPosition bounds the position of an imported follow-up, so that others can be queued before and after it.
const maxPosition = 1 << 40

// ownFollowUps reads the queue of follow-ups.
func (d *decoder) ownFollowUps(c *Conversation) error {
	return d.elements(func() error {
		var from struct {
			ID          text           `json:"follow_up_id"`
			State       text           `json:"state"`
			Content     text           `json:"content"`
			Attachments []text         `json:"attachments"`
			Profile     text           `json:"profile"`
			Tools       jsontext.Value `json:"tools"`
			Position    int64          `json:"position"`
			Version     int64          `json:"version"`
			CreatedAt   when           `json:"created_at"`
		}
		if err := d.value(&from); err != nil {
			return err
		}
		f := FollowUp{
			ID: firstBytes(string(from.ID), maxID), State: protocol.FollowUpState(from.State), Content: clip.Bytes(string(from.Content), maxInput),
			Profile: profile(from.Profile), Position: min(max(from.Position, -maxPosition), maxPosition), Version: version(from.Version), CreatedAt: from.CreatedAt.Time,
		}
		need := messageOverhead + len(f.ID) + len(f.Content)
		if !slices.Contains(followUpStates, f.State) || f.Content == "" && len(from.Attachments) == 0 || len(c.FollowUps) >= maxFollowUps || c.memory+need > maxMemory {
			c.note(protocol.ImportFollowUpsSkipped, 1)
			return nil
		}
		if choice, _ := toolChoice(from.Tools); len(choice.Disabled()) > 0 {
			f.Tools = &choice
		}
		f.Attachments = c.attachments(from.Attachments)
		if f.State == protocol.FollowUpQueued { // an import starts no turn
			f.State = protocol.FollowUpHeld
			c.note(protocol.ImportFollowUpsHeld, 1)
		}
		c.FollowUps, c.memory = append(c.FollowUps, f), c.memory+need
		return nil
	})
}

var followUpStates = []protocol.FollowUpState{protocol.FollowUpQueued, protocol.FollowUpHeld, protocol.FollowUpStarted, protocol.FollowUpCancelled}

// own reads the member "conversation" of a protocol.ConversationExport.
func (d *decoder) own(c *Conversation) error {
	var from struct {
		ID          text              `json:"conversation_id"`
		Title       text              `json:"title"`
		TitleSource text              `json:"title_source"`
		Profile     text              `json:"profile"`
		Metadata    map[string]string `json:"metadata"`
		Project     text              `json:"project_id"`
		PinnedAt    when              `json:"pinned_at"`
		ArchivedAt  when              `json:"archived_at"`
		Branch      text              `json:"active_branch_id"`
		Head        text              `json:"head_message_id"`
		Unread      bool              `json:"unread"`
		Version     int64             `json:"version"`
		CreatedAt   when              `json:"created_at"`
		UpdatedAt   when              `json:"updated_at"`
		ActivityAt  when              `json:"last_activity_at"`
	}
	err := d.value(&from)
	const most = 64 << 10 // finish shortens them further
	c.ID, c.Title, c.TitleSource = clip.Bytes(string(from.ID), most), clip.Bytes(string(from.Title), most), clip.Bytes(string(from.TitleSource), most)
	c.Profile = profile(from.Profile)
	c.CreatedAt, c.UpdatedAt, c.ChangedAt = from.CreatedAt.Time, from.ActivityAt.Time, from.UpdatedAt.Time
	c.PinnedAt, c.ArchivedAt, c.Unread, c.Version = from.PinnedAt.Time, from.ArchivedAt.Time, from.Unread, version(from.Version)
	c.ActiveBranch = firstBytes(string(from.Branch), maxID)
	_ = c.ProjectID.UnmarshalText([]byte(from.Project)) // zero: in none
	if c.Active == "" {
		c.Active = firstBytes(string(from.Head), maxID)
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

// ownBranches reads the branches in the order of their creation.
func (d *decoder) ownBranches(c *Conversation) error {
	return d.elements(func() error {
		var from struct {
			ID        text  `json:"branch_id"`
			Name      text  `json:"name"`
			Base      text  `json:"base_message_id"`
			Active    bool  `json:"active"`
			Version   int64 `json:"version"`
			CreatedAt when  `json:"created_at"`
		}
		if err := d.value(&from); err != nil {
			return err
		}
		b := OwnBranch{
			ID: firstBytes(string(from.ID), maxID), Name: c.line(string(from.Name), protocol.MaxTitle), Base: firstBytes(string(from.Base), maxID),
			Version: version(from.Version), CreatedAt: from.CreatedAt.Time,
		}
		need := branchOverhead + len(b.ID) + len(b.Name) + len(b.Base)
		if b.ID == "" || len(c.Branches) >= maxMessages || c.memory+need > maxMemory {
			c.note(protocol.ImportBranchesCut, 1)
			return nil
		}
		if from.Active && c.ActiveBranch == "" {
			c.ActiveBranch = b.ID
		}
		c.Branches, c.memory = append(c.Branches, b), c.memory+need
		return nil
	})
}

// ownMessage is a protocol.Message of which each member may be of another type.
type ownMessage struct {
	ID          text                     `json:"message_id"`
	Branch      text                     `json:"branch_id"`
	Parent      text                     `json:"parent_message_id"`
	Sibling     int                      `json:"sibling_index"`
	Role        text                     `json:"role"`
	Status      text                     `json:"status"`
	Parts       []jsontext.Value         `json:"parts"`
	Attachments []text                   `json:"attachments"`
	Profile     text                     `json:"profile"`
	ModelID     text                     `json:"model_id"`
	CreatedAt   when                     `json:"created_at"`
	Routing     *protocol.MessageRouting `json:"routing"`
	Usage       *protocol.Usage          `json:"usage"`
	Feedback    *protocol.Feedback       `json:"feedback"`
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
		ID: string(from.ID), Parent: string(from.Parent), Branch: firstBytes(string(from.Branch), maxID), Sibling: from.Sibling, Role: string(from.Role), CreatedAt: from.CreatedAt.Time,
		Status: protocol.MessageStatus(from.Status), Profile: profile(from.Profile), Usage: from.Usage, Routing: from.Routing,
	}
	if m.Role != protocol.RoleUser && m.Role != protocol.RoleAssistant {
		m.Hidden = true
		c.note(protocol.ImportRolesUnknown, 1)
		return m
	}
	switch m.Status {
	case protocol.MessageComplete, protocol.MessageCancelled, protocol.MessageFailed, protocol.MessageIncomplete:
	default: // also an answer that was still streaming
		m.Status = protocol.MessageIncomplete
	}
	if m.Routing != nil {
		m.Routing.Reason = clip.Bytes(m.Routing.Reason, maxReason)
	}
	if m.Routing != nil && (profile(text(m.Routing.Requested)) == nil || profile(text(m.Routing.Resolved)) == nil) {
		m.Routing = nil
	}
	if u := m.Usage; u != nil && min(u.InputTokens, u.OutputTokens, u.ReasoningTokens, u.CachedInputTokens) < 0 {
		m.Usage = nil
	}
	if name := firstBytes(string(from.ModelID), maxModelName); name != "" {
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
	m.Attachments = c.attachments(from.Attachments)
	m.Feedback = c.feedback(from.Feedback, &m)
	return m
}

// feedback returns the feedback on a message if it can be stored.
func (c *Conversation) feedback(f *protocol.Feedback, on *Message) *protocol.Feedback {
	if f == nil {
		return nil
	}
	_, unfit := f.Unfit()
	if on.Role != protocol.RoleAssistant || protocol.ReasonsFor[f.Rating] == nil || unfit || len(f.Reasons) > protocol.MaxFeedbackReasons {
		c.note(protocol.ImportUnreadable, 1)
		return nil
	}
	c.cleanText(&f.Comment)
	if comment := clipRunes(f.Comment, protocol.MaxFeedbackComment); comment != f.Comment {
		f.Comment = comment
		c.note(protocol.ImportTextCut, 1)
	}
	if f.Reasons == nil {
		f.Reasons = []protocol.FeedbackReason{}
	}
	c.memory += len(f.Comment)
	return f
}

// ownPart reads a part; false if it is none.
func ownPart(value jsontext.Value) (part protocol.Part, is bool) {
	if json.Unmarshal(value, &part, lenient) != nil {
		return part, false
	}
	part.Open = false
	switch part.Type {
	case protocol.PartText, protocol.PartReasoning, protocol.PartCode, protocol.PartNotice, protocol.PartArtifact:
		return part, true
	case protocol.PartTool:
		if !slices.Contains(protocol.ToolStates, part.State) || !part.State.Terminal() {
			part.State = protocol.ToolOutcomeUnknown
		}
		return part, true
	}
	return part, false
}
