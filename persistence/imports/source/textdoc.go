package source

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"turnstone/protocol"
	"turnstone/protocol/clip"
)

// The calls of ChatGPT that write a document next to the conversation.
const (
	createTextdoc = "canmore.create_textdoc"
	updateTextdoc = "canmore.update_textdoc"
)

// maxPatternWork limits the work for the changes of artifacts of one conversation: the bytes that are searched, times those of a pattern.
const maxPatternWork = 1 << 28

// writings are the artifacts that a conversation of another service has written.
type writings struct {
	versions map[protocol.ArtifactID]int64
	bySource map[string][]*Artifact
	work     int
}

// write adds a version of an artifact, and returns its part; nil: it is over a limit.
func (c *Conversation) write(id string, v *Artifact) *protocol.Part {
	v.ID, v.CreatedBy = protocol.ArtifactID(foreignID(c.Kind, id)), protocol.ByModel
	count, known := c.written.versions[v.ID]
	need := messageOverhead + len(v.Content)
	if len(v.Content) > protocol.MaxArtifactBytes || c.memory+need > maxMemory || !known && len(c.written.versions) >= protocol.MaxArtifacts || count >= protocol.MaxArtifactVersions {
		c.note(protocol.ImportArtifactsLimit, 1)
		return nil
	}
	if c.written.versions == nil {
		c.written.versions, c.written.bySource = map[protocol.ArtifactID]int64{}, map[string][]*Artifact{}
	}
	c.written.bySource[id] = append(c.written.bySource[id], v)
	v.Version = count + 1
	c.written.versions[v.ID] = v.Version
	c.cleanText(&v.Content)
	if v.Title = titleLine(v.Title); v.Title == "" {
		v.Title = untitled
	}
	if v.Kind != protocol.ArtifactCode {
		v.Language = nil
	}
	c.Artifacts, c.memory = append(c.Artifacts, v), c.memory+need
	return artifactPart(v)
}

const untitled = "Untitled"

func artifactPart(v *Artifact) *protocol.Part {
	p := &protocol.Part{Type: protocol.PartArtifact, ArtifactID: &v.ID, Version: v.Version, Kind: string(v.Kind), Title: v.Title, CreatedBy: v.CreatedBy}
	if v.Language != nil {
		p.Language = *v.Language
	}
	return p
}

// kindOf returns the kind and the language of an artifact by the types of Claude and ChatGPT.
func kindOf(media, language string) (protocol.ArtifactKind, *string) {
	named := func(name string) *string {
		if name = clipRunes(strings.ReplaceAll(name, "\x00", ""), protocol.MaxArtifactLanguage); name == "" {
			return nil
		}
		return &name
	}
	switch media {
	case "text/html", "code/html":
		return protocol.ArtifactHTML, nil
	case "image/svg+xml", "code/svg":
		return protocol.ArtifactSVG, nil
	case "application/vnd.ant.mermaid", "code/mermaid":
		return protocol.ArtifactDiagram, nil
	case "text/csv", "code/csv":
		return protocol.ArtifactTable, nil
	case "application/vnd.ant.react", "code/react":
		return protocol.ArtifactCode, named("jsx")
	case "application/vnd.ant.code":
		return protocol.ArtifactCode, named(language)
	}
	if name, is := strings.CutPrefix(media, "code/"); is {
		return protocol.ArtifactCode, named(name)
	}
	return protocol.ArtifactDocument, nil
}

// textdocs replaces the calls of ChatGPT that write documents by artifacts. An update changes the document that its path
// has written last, so parents come before their children.
func (c *Conversation) textdocs() {
	if !slices.ContainsFunc(c.Messages, func(m Message) bool { return slices.ContainsFunc(m.Parts, isTextdoc) }) {
		return
	}
	quiet := *c
	quiet.Notes = nil // Arrange notes it again
	a := &arrangement{c: &quiet}
	a.link()
	a.order()
	current := make([]*Artifact, len(c.Messages))
	for _, i := range a.walk {
		if parent := a.parent[i]; parent >= 0 {
			current[i] = current[parent]
		}
		for k := range c.Messages[i].Parts {
			if part := &c.Messages[i].Parts[k]; isTextdoc(*part) {
				current[i] = c.textdoc(part, &c.Messages[i], current[i])
			}
		}
	}
	for i := range c.Messages { // those that no path reaches
		for k := range c.Messages[i].Parts {
			if part := &c.Messages[i].Parts[k]; isTextdoc(*part) {
				*part = protocol.Part{Type: protocol.PartCode, PartID: part.PartID, Code: part.Code}
			}
		}
	}
}

func isTextdoc(p protocol.Part) bool { return p.Type == protocol.PartArtifact && p.ArtifactID == nil }

// textdoc applies a call to the current document, and returns the document after it. A call that cannot be applied stays as code.
func (c *Conversation) textdoc(p *protocol.Part, m *Message, current *Artifact) *Artifact {
	var call struct {
		Name    text `json:"name"`
		Type    text `json:"type"`
		Content text `json:"content"`
		Updates []struct {
			Pattern     text `json:"pattern"`
			Multiple    bool `json:"multiple"`
			Replacement text `json:"replacement"`
		} `json:"updates"`
	}
	id, tool := p.PartID, p.ToolName
	unapplied := protocol.Part{Type: protocol.PartCode, PartID: id, Code: p.Code}
	err := json.Unmarshal([]byte(p.Code), &call, lenient)
	v := &Artifact{CreatedAt: m.CreatedAt}
	switch {
	case err != nil || tool == updateTextdoc && (current == nil || len(call.Updates) == 0):
		c.note(protocol.ImportUnreadable, 1)
		*p = unapplied
		return current
	case tool == createTextdoc:
		v.Title, v.Content, v.source = string(call.Name), string(call.Content), m.ID
		v.Kind, v.Language = kindOf(string(call.Type), "")
	default:
		*v = Artifact{CreatedAt: m.CreatedAt, Title: current.Title, Kind: current.Kind, Language: current.Language, Content: current.Content, source: current.source}
		for _, update := range call.Updates {
			changed, applied := c.update(v.Content, string(update.Pattern), string(update.Replacement), update.Multiple)
			if !applied {
				c.note(protocol.ImportUnreadable, 1)
			}
			if v.Content = changed; len(v.Content) > protocol.MaxArtifactBytes {
				break
			}
		}
	}
	part := c.write(v.source, v)
	if part == nil {
		*p = unapplied
		return current
	}
	part.PartID = id
	*p = *part
	return v
}

// group finds references to groups in replacements of Python.
var group = regexp.MustCompile(`\\(?:([1-9]\d?)|g<(\w+)>|(.))`)

// update replaces what a pattern matches: the patterns are those of Python, of which nearly all mean the same here. applied is false
// if nothing changed.
func (c *Conversation) update(content, pattern, replacement string, multiple bool) (changed string, applied bool) {
	if pattern == ".*" { // the whole document
		return replacement, true
	}
	times := 1
	if multiple {
		times = -1
	}
	found, err := regexp.Compile(pattern)
	if err != nil || regexp.QuoteMeta(pattern) == pattern {
		if c.written.work += len(content); c.written.work > maxPatternWork || len(replacement)*strings.Count(content, pattern) > maxMemory {
			return content, false
		}
		changed = strings.Replace(content, pattern, replacement, times)
		return clip.Bytes(changed, protocol.MaxArtifactBytes+1), changed != content
	}
	if c.written.work += (len(content) + 1) * len(pattern); c.written.work > maxPatternWork {
		return content, false
	}
	template := group.ReplaceAllStringFunc(strings.ReplaceAll(replacement, "$", "$$"), func(escape string) string {
		parts := group.FindStringSubmatch(escape)
		switch {
		case parts[1]+parts[2] != "":
			return "${" + parts[1] + parts[2] + "}"
		case parts[3] == "n":
			return "\n"
		case parts[3] == "t":
			return "\t"
		}
		return parts[3]
	})
	var out []byte
	at := 0
	for _, match := range found.FindAllStringSubmatchIndex(content, times) {
		out = append(out, content[at:match[0]]...)
		out = found.ExpandString(out, template, content, match)
		if at = match[1]; len(out) > protocol.MaxArtifactBytes {
			break
		}
		applied = true
	}
	return string(append(out, content[at:]...)), applied
}
