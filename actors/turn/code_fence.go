package turn

import "strings"

// fenceSplitter finds fenced code blocks (``` at the start of a line) in text that arrives in pieces of any size. It
// holds back only text that it cannot classify yet: backticks at the start of a line, the line of a fence, and white
// space before the next text. Fences that are indented or made of tildes stay text; Markdown renders them too.
type fenceSplitter struct {
	inCode    bool
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
	fence        = "```"
	maxFenceLine = 200  // in bytes; a longer line is not a fence
	maxLead      = 4096 // in bytes; longer leading white space is text
)

func newFenceSplitter() fenceSplitter { return fenceSplitter{lineStart: true, blank: true} }

// resume continues after text that was split before.
func (s *fenceSplitter) resume(text []byte, inCode bool) {
	*s = fenceSplitter{inCode: inCode, lineStart: len(text) == 0 || text[len(text)-1] == '\n'}
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
			if language, ok := s.fenceLine(line); ok {
				s.toggle(language, sink)
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
	switch _, ok := s.fenceLine(held); {
	case held == "":
	case ok && s.inCode:
		s.toggle("", sink)
	default:
		s.write(held, sink)
	}
}

func (s *fenceSplitter) toggle(language string, sink fenceSink) {
	s.lead = ""
	if s.inCode = !s.inCode; s.inCode {
		sink.openCode(language)
		return
	}
	s.blank = true
	sink.closeCode()
}

func (s *fenceSplitter) write(text string, sink fenceSink) {
	if s.inCode {
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
	if len(line) < len(fence) {
		return strings.HasPrefix(fence, line)
	}
	return strings.HasPrefix(line, fence) && len(line) <= maxFenceLine
}

// fenceLine parses a complete line as a fence: an opening one with its language, or a closing one.
func (s *fenceSplitter) fenceLine(line string) (language string, ok bool) {
	info, ok := strings.CutPrefix(line, fence)
	if !ok || strings.Contains(info, "`") {
		return "", false
	}
	info = strings.TrimSpace(info)
	if s.inCode {
		return "", info == ""
	}
	language, _, _ = strings.Cut(info, " ")
	return language, true
}
