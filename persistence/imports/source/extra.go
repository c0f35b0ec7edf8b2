package source

import (
	"crypto/sha256"
	"io"
	"strings"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/filetype"
)

// extras are what a value of an export of Claude has in place of a conversation: a project with its documents, or memories.
type extras struct {
	project      bool
	instructions string
	described    bool // the project has a description
	files        []*File
	ofProjects   map[*File]string // the identifiers of the projects to which files belong; the others belong to project
	memories     int
}

// textFile adds a file with a text that the conversation has; false: there is no space for it. A text without a name of
// a kind of text gets one.
func (c *Conversation) textFile(name, content string) (id protocol.FileID, added bool) {
	f := newTextFile(c.Kind, name, content)
	return f.ID, c.addFile(f, len(content))
}

// addFile adds a file of some bytes, once; false: there is no space for it.
func (c *Conversation) addFile(f *File, size int) bool {
	if c.hasFile[f.ID] {
		return true
	}
	need := messageOverhead + size
	if c.memory+need > maxMemory {
		return false
	}
	if c.hasFile == nil {
		c.hasFile = map[protocol.FileID]bool{}
	}
	c.Files, c.memory, c.hasFile[f.ID] = append(c.Files, f), c.memory+need, true
	return true
}

func newTextFile(of protocol.ImportSource, name, content string) *File {
	content = strings.ReplaceAll(content, "\x00", "\uFFFD")
	name = clipRunes(name, maxName-len(".txt"))
	if name == "" {
		name = "Text"
	}
	media := filetype.ByName(name)
	if filetype.KindOf(media) != protocol.FileText {
		name, media = name+".txt", "text/plain"
	}
	return newFile(of, name, media, content)
}

// newFile returns a file with a content. The same name and content are the same file in every import.
func newFile(of protocol.ImportSource, name, media, content string) *File {
	sum := sha256.Sum256([]byte(content))
	return &File{
		ID: protocol.FileID(foreignID(of, name+"\x00"+string(sum[:]))), Name: name, MediaType: media, Size: int64(len(content)), SHA256: sum[:], Version: 1, Listed: true,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}
}

// extra reads a member of a project or of memories of Claude. is is false for another member.
func (d *decoder) extra(c *Conversation, name string) (is bool, err error) {
	e := &c.extras
	switch name {
	case "prompt_template":
		e.project = true
		return true, d.longText(&e.instructions)
	case "description":
		var description text
		err := d.value(&description)
		e.described = description != ""
		return true, err
	case "docs":
		e.project = true
		return true, d.elements(func() error { return d.projectDocument(c) })
	case "conversations_memory":
		return true, d.memory(c, "")
	case "project_memories":
		return true, d.members(func(project string) error { return d.memory(c, project) })
	}
	return false, nil
}

// longText reads a long text.
func (d *decoder) longText(to *string) error {
	var value text
	err := d.value(&value)
	*to = string(value)
	return err
}

func (d *decoder) projectDocument(c *Conversation) error {
	var from struct {
		Name      text `json:"filename"`
		Content   text `json:"content"`
		CreatedAt when `json:"created_at"`
	}
	if err := d.value(&from); err != nil {
		return err
	}
	switch need := messageOverhead + len(from.Content); {
	case from.Content == "":
		c.note(protocol.ImportFilesAbsent, 1)
	case c.memory+need > maxMemory:
		c.note(protocol.ImportFilesOverLimit, 1)
	default:
		f := newTextFile(protocol.ImportFromClaude, string(from.Name), string(from.Content))
		f.CreatedAt = from.CreatedAt.Time
		c.extras.files, c.memory = append(c.extras.files, f), c.memory+need
	}
	return nil
}

// memory reads the memories of all conversations, or of those of a project. This service has no place for them, so they become a file.
func (d *decoder) memory(c *Conversation, project string) error {
	var content string
	if err := d.longText(&content); err != nil || content == "" {
		return err
	}
	need := messageOverhead + len(content)
	if c.memory+need > maxMemory {
		c.note(protocol.ImportFilesOverLimit, 1)
		return nil
	}
	e := &c.extras
	f := newTextFile(protocol.ImportFromClaude, "Claude memories.md", content)
	if project != "" {
		f = newTextFile(protocol.ImportFromClaude, "Claude memories of the project.md", content)
		if e.ofProjects == nil {
			e.ofProjects = map[*File]string{}
		}
		e.ofProjects[f] = firstBytes(project, maxID)
	}
	e.files, e.memories, c.memory = append(e.files, f), e.memories+1, c.memory+need
	return nil
}

func claudeProject(uuid string) protocol.ProjectID {
	return protocol.ProjectID(foreignID(protocol.ImportFromClaude, "project "+uuid))
}

// readExtras passes a project or memories to the handler; false: the value is something else.
func (c *Conversation) readExtras(to Handler, now time.Time) (is bool, err error) {
	e := &c.extras
	if !e.project && e.memories == 0 && len(e.files) == 0 {
		return false, nil
	}
	if e.project {
		if err := c.readProject(to, now); err != nil {
			return true, err
		}
	}
	for _, f := range e.files {
		f.CreatedAt = bounded(f.CreatedAt, now, now)
		f.UpdatedAt = f.CreatedAt
		if of := e.ofProjects[f]; of != "" {
			f.ProjectIDs = []protocol.ProjectID{claudeProject(of)}
		} else if e.project {
			f.ProjectIDs = []protocol.ProjectID{claudeProject(c.ID)}
		}
		if err := to.File(f); err != nil {
			return true, err
		}
	}
	if e.memories > 0 {
		c.note(protocol.ImportMemoriesAsFiles, e.memories)
	}
	for _, reason := range protocol.ImportReasons {
		if n := c.Notes[reason]; n > 0 {
			if err := to.Problem(reason, c.Title, "", n); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

func (c *Conversation) readProject(to Handler, now time.Time) error {
	if c.ID == "" {
		c.ID = c.Title
	}
	p := &Project{ID: claudeProject(c.ID), Name: c.Title, Settings: *protocol.DefaultProjectSettings(), Version: 1, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, ArchivedAt: c.ArchivedAt}
	if p.Name == "" {
		p.Name = unnamedProject
	}
	if c.extras.described { // projects of this service have none
		c.note(protocol.ImportPartsSkipped, 1)
	}
	if err := to.Project(p); err != nil {
		return err
	}
	c.cleanText(&c.extras.instructions)
	content := clipRunes(c.extras.instructions, protocol.MaxInstructions)
	if content != c.extras.instructions {
		c.note(protocol.ImportTextCut, 1)
	}
	if content == "" {
		return nil
	}
	return to.Instructions(&Instructions{ProjectID: p.ID, Version: 1, Content: content, CreatedAt: p.CreatedAt})
}
