package exports

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/foreign"
)

// writeMarkdown writes the path of the active branch, then the messages of each other branch that this path does not
// show, then the artifacts. Message texts are Markdown and are written as they are.
func (s *source) writeMarkdown(ctx context.Context, to io.Writer) error {
	text := &markdown{to: to}
	text.head(s.page)
	err := s.messages(ctx, s.page.ActiveBranchID, 1, text.message)
	if err == nil {
		err = s.branches(ctx, func(b *exportedBranch) error {
			if b.Active || b.HeadMessageID == nil {
				return nil
			}
			text.branch(&b.Branch)
			return s.messages(ctx, b.BranchID, max(b.FirstDepth, b.ShownDepth+1), text.message)
		})
	}
	if err == nil && s.alone {
		err = s.artifacts(ctx, true, text.artifact)
	}
	if protocol.CodeOf(err) == protocol.CodeNotFound && text.err == nil {
		err = nil
		text.printf("\n---\n\n*%s*\n", whyIncomplete)
	}
	if err != nil {
		return err
	}
	return text.err
}

// markdown writes one document. The first error is kept; message returns it.
type markdown struct {
	to      io.Writer
	err     error
	heading string // of a branch, written before its first message
}

func (m *markdown) printf(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.to, format, args...)
	}
}

func (m *markdown) head(page *protocol.ConversationPage) {
	title := foreign.OneLine(page.Title)
	if title == "" {
		title = "Untitled conversation"
	}
	m.printf("# %s\n\n", title)
	m.printf("- Conversation: %s\n- Created: %s\n- Last activity: %s\n", page.ConversationID, minute(page.CreatedAt), minute(page.LastActivityAt))
	if page.Draft.Content != "" {
		m.printf("\n## Draft\n\n%s\n", page.Draft.Content)
	}
}

func minute(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }

func (m *markdown) branch(b *protocol.Branch) {
	name := foreign.OneLine(b.Name)
	if name == "" {
		name = "Branch"
	} else {
		name = "Branch: " + name
	}
	m.heading = "\n---\n\n# " + name + "\n"
	if b.BaseMessageID != nil {
		m.heading += fmt.Sprintf("\nContinues after the message %s.\n", b.BaseMessageID)
	}
}

// artifact writes the newest version of an artifact. A document is Markdown, as the texts of messages.
func (m *markdown) artifact(a *protocol.ExportedArtifact) error {
	m.printf("\n---\n\n# Artifact: %s\n\n- Version: %d\n- Changed: %s\n", foreign.OneLine(a.Title), a.Version, minute(a.CreatedAt))
	if a.Kind == protocol.ArtifactDocument {
		m.printf("\n%s\n", a.Content)
		return m.err
	}
	language := fences[a.Kind]
	if a.Language != nil {
		language = foreign.OneLine(*a.Language)
	}
	m.fenced(language, a.Content)
	return m.err
}

// fences are the languages of the blocks in which the content of artifacts is written.
var fences = map[protocol.ArtifactKind]string{
	protocol.ArtifactHTML: "html", protocol.ArtifactSVG: "svg", protocol.ArtifactTable: "csv", protocol.ArtifactDiagram: "mermaid",
}

var roleNames = map[string]string{protocol.RoleUser: "User", protocol.RoleAssistant: "Assistant"}

func (m *markdown) message(message *protocol.Message) error {
	m.printf("%s", m.heading)
	m.heading = ""
	m.printf("\n## %s, %s\n\n<!-- %s -->\n", roleNames[message.Role], minute(message.CreatedAt), message.MessageID)
	if message.Status != protocol.MessageComplete {
		m.printf("\n*Status: %s*\n", message.Status)
	}
	for i := range message.Parts {
		m.part(&message.Parts[i])
	}
	for _, file := range message.Attachments {
		m.printf("\n- Attachment: %s\n", file)
	}
	return m.err
}

func (m *markdown) part(p *protocol.Part) {
	switch p.Type {
	case protocol.PartCode:
		if p.Filename != "" {
			m.printf("\n`%s`\n", foreign.OneLine(p.Filename))
		}
		m.fenced(foreign.OneLine(p.Language), p.Code)
	case protocol.PartReasoning:
		m.printf("\n> %s\n", strings.ReplaceAll(p.Text, "\n", "\n> "))
	case protocol.PartTool:
		m.printf("\n**Tool: %s** (%s)\n", foreign.OneLine(p.Title), p.State)
		var input bytes.Buffer
		if json.Indent(&input, p.Input, "", "  ") == nil && input.Len() > 0 {
			m.fenced("json", input.String())
		}
		if p.Output != "" {
			m.fenced("", p.Output)
		}
	case protocol.PartNotice:
		m.printf("\n*%s*\n", foreign.OneLine(p.Text))
	default:
		m.printf("\n%s\n", p.Text)
	}
}

// fenced writes a block of code.
func (m *markdown) fenced(language, code string) {
	fence := protocol.CodeFence(code)
	m.printf("\n%s%s\n%s\n%s\n", fence, language, strings.TrimSuffix(code, "\n"), fence)
}
