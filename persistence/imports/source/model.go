package source

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"turnstone/protocol"
	"turnstone/protocol/clip"
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
	Active      string // the last message of the path that was shown

	// Only in exports of this service.
	ProjectID        protocol.ProjectID // in the export; zero: none
	PinnedAt         time.Time          // zero: never
	ArchivedAt       time.Time
	ChangedAt        time.Time // updated_at; UpdatedAt is the last activity
	Unread           bool
	Version          int64
	DraftAttachments []protocol.FileID // in the export
	DraftVersion     int64
	DraftUpdatedAt   time.Time
	FollowUps        []FollowUp
	Branches         []OwnBranch // in the order of their creation
	ActiveBranch     string

	Artifacts []*Artifact // of a file that has nothing but this conversation, or of another service
	Files     []*File     // of another service, with contents that the conversation has

	// Notes count what was left out or changed.
	Notes map[protocol.ImportReason]int

	archived, pinned bool            // at times that the export does not have
	read             map[string]bool // the identifiers of messages of a format that has some of them twice

	nodes   int // of the source
	visible int // messages that are not hidden
	text    int // bytes of their parts, as JSON
	memory  int // bytes of everything
	written writings
	hasFile map[protocol.FileID]bool
	extras  extras

	activity activity // in place of a conversation
}

// Key identifies the conversation in its source. Without an identifier, the same title and time are taken for the same conversation.
func (c *Conversation) Key() []byte {
	id := c.ID
	if id == "" {
		id = c.Title + "\x00" + c.CreatedAt.Format(time.RFC3339Nano)
	}
	return key(c.Kind, id)
}

func key(of protocol.ImportSource, id string) []byte {
	sum := sha256.Sum256([]byte(string(of) + "\x00" + id))
	return sum[:]
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

	// Only in exports of this service.
	Branch      string
	Sibling     int
	Attachments []protocol.FileID // in the export
	Feedback    *protocol.Feedback

	size int // bytes of the parts, as JSON
}

// OwnBranch is a branch of an export of this service.
type OwnBranch struct {
	ID, Name, Base string
	Version        int64
	CreatedAt      time.Time
}

// FollowUp is a follow-up of an export of this service.
type FollowUp struct {
	ID          string
	State       protocol.FollowUpState
	Content     string
	Attachments []protocol.FileID // in the export
	Profile     *protocol.Profile
	Tools       *protocol.ToolChoice
	Position    int64
	Version     int64
	CreatedAt   time.Time
}

// own reports whether the conversation is from an export of this service.
func (c *Conversation) own() bool { return c.Kind == protocol.ImportFromTurnstone }

// most is the size of a message above which it becomes several. What this service has exported is as it was stored.
func (c *Conversation) most() int {
	if c.own() {
		return maxValue
	}
	return maxMessage
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

// add adds a message unless the conversation is full. A message that is too long becomes several, each of which follows the
// one before it.
func (c *Conversation) add(m Message) {
	if c.nodes++; c.nodes > maxNodes {
		c.note(protocol.ImportMessagesCut, 1)
		return
	}
	m.ID, m.Parent = firstBytes(m.ID, maxID), firstBytes(m.Parent, maxID)
	if !m.Hidden && (c.visible >= maxMessages || c.memory >= maxMemory-c.most()) { // cleaning the parts would be in vain
		c.note(protocol.ImportMessagesCut, 1)
		m.Hidden, m.Parts = true, nil
	}
	parts := c.clean(m.Parts)
	if m.Parts = nil; len(parts) == 0 && len(m.Attachments) == 0 && !c.own() {
		m.Hidden = true
	}
	if m.Hidden {
		c.append(m, nil)
		return
	}
	pieces := pieces(parts, c.most())
	if len(pieces) > 1 {
		c.note(protocol.ImportMessagesSplit, 1)
	}
	for n, piece := range pieces {
		next := m
		if n < len(pieces)-1 { // the last piece has the identifier, so that what follows the message follows it
			next.ID = fmt.Sprintf("%s\x00%d", m.ID, n)
			next.Attachments, next.Feedback = nil, nil
			m.Parent = next.ID
		}
		c.append(next, piece)
	}
}

// append adds a message with its parts if there is space for it. Otherwise messages after it belong to the one before it.
func (c *Conversation) append(m Message, parts []sizedPart) {
	if !m.Hidden {
		text, memory := 0, 0
		for i := range parts {
			text += parts[i].size
			memory += parts[i].size + partOverhead
			m.Parts = append(m.Parts, parts[i].Part)
		}
		if c.text+text > maxText || c.memory+memory > maxMemory || c.visible >= maxMessages {
			c.note(protocol.ImportMessagesCut, 1)
			m.Hidden, m.Parts = true, nil
		} else {
			c.text, c.memory, c.visible, m.size = c.text+text, c.memory+memory, c.visible+1, text
		}
	}
	c.memory += messageOverhead + len(m.ID) + len(m.Parent) + len(m.Branch)
	c.Messages = append(c.Messages, m)
}

// sizedPart is a part with its size as JSON in bytes.
type sizedPart struct {
	protocol.Part
	size int
}

// pieces distributes parts over messages of at most a size in bytes; one part is never larger than that by much.
func pieces(parts []sizedPart, most int) [][]sizedPart {
	var all [][]sizedPart
	from, size := 0, 0
	for i := range parts {
		if i > from && size+parts[i].size > most {
			all, from, size = append(all, parts[from:i]), i, 0
		}
		size += parts[i].size
	}
	return append(all, parts[from:])
}

// clean removes what cannot be stored from the parts of a message, shortens what must be short, and divides long texts.
func (c *Conversation) clean(parts []protocol.Part) []sizedPart {
	var kept []sizedPart
	for i := range parts {
		c.cleanPart(&parts[i])
		for _, p := range divide(parts[i], c.most()/2) { // JSON needs more bytes than the text
			if p.PartID.IsZero() {
				p.PartID = protocol.NewPartID()
			}
			text, err := json.Marshal(p)
			if err == nil && (c.own() || p.Type == protocol.PartTool || p.ArtifactID != nil || p.Text != "" || p.Code != "") {
				kept = append(kept, sizedPart{p, len(text)})
			}
		}
	}
	return kept
}

func (c *Conversation) cleanPart(p *protocol.Part) {
	for _, text := range []*string{&p.Text, &p.Code, &p.Output, &p.Language, &p.Filename, &p.Title, &p.ToolName, &p.Kind} {
		c.cleanText(text)
	}
	if c.Kind == protocol.ImportFromChatGPT {
		for _, text := range []*string{&p.Text, &p.Code, &p.Output} {
			clean := privateMarks.ReplaceAllString(*text, "")
			c.note(protocol.ImportTextChanged, utf8.RuneCountInString(*text)-utf8.RuneCountInString(clean))
			*text = clean
		}
	}
	cut := 0
	for _, name := range []*string{&p.Language, &p.Filename, &p.Title, &p.ToolName, &p.Kind} {
		if short := clipRunes(*name, maxName); short != *name {
			*name = short
			cut++
		}
	}
	if len(p.Output) > maxOutput {
		p.Output, p.Truncated = clip.Bytes(p.Output, maxOutput), true
		cut++
	}
	c.note(protocol.ImportTextCut, cut)
	details, err := json.Marshal([]any{p.Input, p.Error, p.Citations, p.Sources})
	if err != nil || bytes.Contains(details, []byte(`\u0000`)) || len(details) > maxDetails {
		p.Input, p.Error, p.Citations, p.Sources = nil, nil, nil, nil
		c.note(protocol.ImportTextChanged, 1)
	}
}

// divide divides a part with a text of more than most bytes.
func divide(p protocol.Part, most int) []protocol.Part {
	long := &p.Text
	if p.Type == protocol.PartCode {
		long = &p.Code
	}
	var all []protocol.Part
	for rest := *long; ; {
		*long = clip.Bytes(rest, most)
		if line := strings.LastIndexByte(*long, '\n'); line > most/2 && len(*long) < len(rest) {
			*long = rest[:line+1]
		}
		all = append(all, p)
		if rest = rest[len(*long):]; rest == "" {
			return all
		}
		p.PartID, p.Citations = protocol.PartID{}, nil
	}
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
	if draft := clipRunes(c.Draft, protocol.MaxInputRunes); draft != c.Draft {
		c.Draft = draft
		c.note(protocol.ImportTextCut, 1)
	}
	c.ID, c.Active = firstBytes(c.ID, maxID), firstBytes(c.Active, maxID)
	c.CreatedAt = bounded(c.CreatedAt, c.firstTime(now), now)
	c.UpdatedAt = bounded(c.UpdatedAt, c.CreatedAt, now)
	if c.pinned && c.PinnedAt.IsZero() {
		c.PinnedAt = c.UpdatedAt
	}
	if c.archived && c.ArchivedAt.IsZero() {
		c.ArchivedAt = c.UpdatedAt
	}
	c.finishOwn(now)
	for i := range c.Messages {
		c.Messages[i].CreatedAt = bounded(c.Messages[i].CreatedAt, c.CreatedAt, now)
	}
	if c.own() {
		return
	}
	for _, f := range c.Files {
		f.CreatedAt = bounded(f.CreatedAt, c.CreatedAt, now)
		f.UpdatedAt = f.CreatedAt
	}
	c.textdocs()
	for _, v := range c.Artifacts {
		v.Key, v.CreatedAt = c.Key(), bounded(v.CreatedAt, c.CreatedAt, now)
	}
}

// firstTime returns the time of the first message; now if none has one.
func (c *Conversation) firstTime(now time.Time) time.Time {
	first := now
	for i := range c.Messages {
		if at := bounded(c.Messages[i].CreatedAt, now, now); at.Before(first) {
			first = at
		}
	}
	return first
}

// finishOwn cleans the fields that only exports of this service have.
func (c *Conversation) finishOwn(now time.Time) {
	c.Version, c.ChangedAt = version(c.Version), bounded(c.ChangedAt, c.CreatedAt, now)
	c.PinnedAt, c.ArchivedAt = bounded(c.PinnedAt, time.Time{}, now), bounded(c.ArchivedAt, time.Time{}, now)
	if c.Draft == "" && len(c.DraftAttachments) == 0 && c.DraftUpdatedAt.IsZero() {
		c.DraftVersion = 0
	}
	c.DraftUpdatedAt = bounded(c.DraftUpdatedAt, now, now)
	for i := range c.Branches {
		c.Branches[i].CreatedAt = bounded(c.Branches[i].CreatedAt, c.CreatedAt, now)
	}
	for i := range c.FollowUps {
		f := &c.FollowUps[i]
		f.CreatedAt = bounded(f.CreatedAt, c.CreatedAt, now)
		c.cleanText(&f.Content)
		if content := clipRunes(f.Content, protocol.MaxInputRunes); content != f.Content {
			f.Content = content
			c.note(protocol.ImportTextCut, 1)
		}
	}
}

// line returns a text as one line of at most limit characters.
func (c *Conversation) line(text string, limit int) string {
	clean, cut := shortLine(text, limit)
	if cut {
		c.note(protocol.ImportTitleCut, 1)
	}
	return clean
}

// shortLine returns a text as one line of at most limit characters, and whether it was longer.
func shortLine(text string, limit int) (clean string, cut bool) {
	const most = 16 // bytes of a character with the white space around it
	short := clip.Bytes(text, most*limit)
	cut = len(short) < len(text)
	clean = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, short)), " ")
	if utf8.RuneCountInString(clean) > limit {
		clean, cut = strings.TrimSpace(string([]rune(clean)[:limit])), true
	}
	return clean, cut
}

// bounded returns a time, or otherwise if it is missing or cannot be right.
func bounded(at, otherwise, now time.Time) time.Time {
	const firstYear = 1970
	if at.IsZero() || at.Year() <= firstYear || at.After(now) {
		return otherwise
	}
	return at
}

// clipRunes returns the first characters of a text, as a copy: a part of the text would keep all of it in memory.
func clipRunes(text string, limit int) string { return strings.Clone(clip.Runes(text, limit)) }

// firstBytes returns the first bytes of a text, cut anywhere. What it cuts is compared or parsed, never shown.
func firstBytes(text string, limit int) string {
	if len(text) > limit {
		return text[:limit]
	}
	return text
}
