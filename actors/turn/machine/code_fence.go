package machine

import (
	"strings"

	"turnstone/protocol"
)

// fenceSplitter finds fenced code blocks in text that arrives in pieces of any size. A fence is at least three backticks or
// tildes at the start of a line; as many of the same or more, alone in their line, end the block. It holds back only text
// that it cannot classify yet: these characters at the start of a line, the line of a fence, and white space before the
// next text. Indented fences stay text, which Markdown renders too; but a fence that ends a block may be indented by one to
// three spaces.
type fenceSplitter struct {
	opener    string // the fence that started the current block of code; empty outside code
	lineStart bool
	blank     bool   // the text part has not started: only white space so far
	lead      string // that white space
	held      string // text that is not classified yet
}

// fenceSink receives the text and the code blocks that the splitter finds.
type fenceSink interface {
	writeText(text string)
	openCode(language string)
	writeCode(code string)
	closeCode()
}

const (
	minFence     = 3    // in characters
	maxFenceLine = 200  // in bytes; a longer line is not a fence
	maxIndent    = 3    // in spaces
	maxLead      = 4096 // in bytes; longer leading white space is text
)

func newFenceSplitter() fenceSplitter { return fenceSplitter{lineStart: true, blank: true} }

// resume continues after text that was split before. opener is the fence of the code at its end, if there is any.
func (s *fenceSplitter) resume(text []byte, opener string) {
	*s = fenceSplitter{opener: opener, lineStart: len(text) == 0 || text[len(text)-1] == '\n'}
}

// feed splits one more piece of text.
func (s *fenceSplitter) feed(delta string, sink fenceSink) {
	rest := s.held + delta
	for s.held = ""; rest != ""; {
		line, terminated := rest, false
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			line, terminated = rest[:i+1], true
		}
		if s.lineStart && s.mayBeFence(line) {
			if !terminated {
				s.held = rest
				return
			}
			if fence, language := s.fenceLine(line); fence != "" {
				s.toggle(fence, language, sink)
				rest = rest[len(line):]
				continue
			}
		}
		s.write(line, sink)
		s.lineStart = terminated
		rest = rest[len(line):]
	}
}

// end classifies the text that was held back, when no more text follows.
func (s *fenceSplitter) end(sink fenceSink) {
	held := s.held
	s.held = ""
	switch fence, _ := s.fenceLine(held); {
	case held == "":
	case fence != "" && s.opener != "":
		s.toggle("", "", sink)
	default:
		s.write(held, sink)
	}
}

func (s *fenceSplitter) toggle(fence, language string, sink fenceSink) {
	s.lead = ""
	if s.opener == "" {
		s.opener = fence
		sink.openCode(language)
		return
	}
	s.opener, s.blank = "", true
	sink.closeCode()
}

func (s *fenceSplitter) write(text string, sink fenceSink) {
	if s.opener != "" {
		sink.writeCode(text)
		return
	}
	if s.blank {
		text = s.lead + text
		if s.lead = text; strings.TrimSpace(text) == "" && len(text) < maxLead {
			return
		}
		s.blank, s.lead = false, ""
	}
	sink.writeText(text)
}

// mayBeFence reports whether a line, or the start of one, may be a fence.
func (s *fenceSplitter) mayBeFence(line string) bool {
	rest := s.unindented(line)
	run := protocol.FenceRun(rest)
	return len(line) <= maxFenceLine && (run >= minFence || run == len(rest))
}

// unindented returns a line in code without the spaces that may precede the fence that ends it.
func (s *fenceSplitter) unindented(line string) string {
	if s.opener == "" {
		return line
	}
	return line[min(maxIndent, len(line)-len(strings.TrimLeft(line, " "))):]
}

// fenceLine parses a complete line as a fence: an opening one with its language, or one that closes the current block. The
// fence is empty if the line is none.
func (s *fenceSplitter) fenceLine(line string) (fence, language string) {
	rest := s.unindented(line)
	run := protocol.FenceRun(rest)
	fence, info := rest[:run], strings.TrimSpace(rest[run:])
	switch {
	case run < minFence || len(line) > maxFenceLine:
		return "", ""
	case s.opener != "":
		if info != "" || !strings.HasPrefix(fence, s.opener) {
			return "", ""
		}
		return fence, ""
	case fence[0] == '`' && strings.Contains(info, "`"):
		return "", ""
	}
	if words := strings.Fields(info); len(words) > 0 {
		language = strings.ReplaceAll(words[0], "`", "") // what a model gets of the code has a fence of backticks
	}
	return fence, language
}
