package evidence

import (
	"strings"
	"unicode/utf8"

	"turnstone/protocol"
)

// blockKind is what a block of a Markdown text is.
type blockKind int

const (
	prose      blockKind = iota // a paragraph, or one of a list item or quotation
	row                         // a row of the body of a table
	heading                     // also the header of a table
	code                        // fenced or indented
	definition                  // of a link
	numbered                    // the definition of a link or footnote whose label is a number, so that citations become links to it
)

// block is a range of lines of a Markdown text. That of prose begins after the marker of its list or quotation.
type block struct {
	Span
	kind blockKind
}

// blocksOf returns the blocks of a Markdown text, in order. Blank lines and rules are in none.
func blocksOf(text string) []block {
	s := blockScanner{text: text}
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text)
		} else {
			end += at
		}
		s.line(at, end)
		at = end + 1
	}
	s.closeParagraph()
	return s.blocks
}

type blockScanner struct {
	text    string
	blocks  []block
	open    bool // the last block is a paragraph that may continue
	item    bool // the open paragraph is that of a list item
	list    bool // no line without indentation since the last list item
	fence   string
	comment bool
	table   bool
	nested  int // markers of list items before the content of the line
}

// maxNested is how many markers of list items a line may begin with.
const maxNested = 8

func (s *blockScanner) closeParagraph() { s.open, s.item = false, false }

func (s *blockScanner) add(kind blockKind, start, end int) {
	s.closeParagraph()
	s.blocks = append(s.blocks, block{Span{start, end}, kind})
}

// line adds a line without its end.
func (s *blockScanner) line(start, end int) {
	at, indent := s.afterQuotes(start, end)
	rest := strings.TrimRight(s.text[at:end], " \t\r")
	switch {
	case s.fence != "":
		if strings.HasPrefix(rest, s.fence) && strings.Trim(rest, s.fence[:1]) == "" {
			s.fence = ""
		}
		s.add(code, start, end)
	case s.comment:
		s.comment = !strings.Contains(rest, "-->")
		s.add(code, start, end)
	case rest == "":
		s.closeParagraph()
		s.table = false
	case indent >= 4 && !s.open && !s.list:
		s.add(code, start, end)
	default:
		if indent == 0 && !s.open {
			s.list = false
		}
		s.content(at, end, rest)
	}
}

// afterQuotes returns where a line begins after its indentation and markers of quotations, and the indentation.
func (s *blockScanner) afterQuotes(at, end int) (start, indent int) {
	for ; at < end; at++ {
		switch s.text[at] {
		case ' ':
			indent++
		case '\t':
			indent += 4
		case '>':
			if indent >= 4 {
				return at, indent
			}
			indent = -1 // one space belongs to the marker
		default:
			return at, max(indent, 0)
		}
	}
	return end, max(indent, 0)
}

// content adds the line after its indentation, or after the marker of a list item.
func (s *blockScanner) content(at, end int, rest string) {
	switch fence := fenceOf(rest); {
	case fence != "":
		s.fence = fence
		s.add(code, at, end)
	case strings.HasPrefix(rest, "<!--"):
		s.comment = !strings.Contains(rest, "-->")
		s.add(code, at, end)
	case isHeading(rest):
		s.add(heading, at, end)
	case s.open && isUnderline(rest):
		s.underline()
	case isRule(rest):
		s.closeParagraph()
	case isDelimiterRow(rest):
		s.add(heading, at, end)
	case s.table && strings.Contains(rest, "|"):
		s.add(row, at, end)
	case strings.Contains(rest, "|") && s.delimiterFollows(end):
		s.table = true
		s.add(heading, at, end)
	default:
		s.paragraph(at, end, rest)
	}
}

func (s *blockScanner) paragraph(at, end int, rest string) {
	if kind, is := definitionOf(rest); is && !s.open {
		s.add(kind, at, end)
		return
	}
	if n := listMarker(rest, s.open && !s.item); n > 0 {
		s.closeParagraph()
		s.list, s.table = true, false
		inner := strings.TrimLeft(rest[n:], " \t")
		if s.nested++; inner != "" && s.nested < maxNested {
			s.content(at+len(rest)-len(inner), end, inner)
			s.item = s.open
		}
		s.nested--
		return
	}
	if s.open {
		s.blocks[len(s.blocks)-1].End = end
		return
	}
	s.add(prose, at, end)
	s.open = true
}

// maxSetext is the longest line, in bytes, that a line below makes a heading. A longer one is a paragraph before a rule.
const maxSetext = 120

// underline makes the open paragraph a heading, unless it ends like a sentence.
func (s *blockScanner) underline() {
	last := &s.blocks[len(s.blocks)-1]
	body := strings.TrimRight(s.text[last.Start:last.End], " \t\r\n")
	if c, _ := utf8.DecodeLastRuneInString(body); len(body) <= maxSetext && !strings.ContainsRune(body, '\n') && !isTerminator(c) && c != ']' {
		last.kind = heading
	}
	s.closeParagraph()
}

func (s *blockScanner) delimiterFollows(end int) bool {
	if end+1 >= len(s.text) {
		return false
	}
	line, _, _ := strings.Cut(s.text[end+1:], "\n")
	return isDelimiterRow(strings.Trim(line, " \t\r>"))
}

// fenceOf returns the fence that begins a code block, or "".
func fenceOf(line string) string {
	n := protocol.FenceRun(line)
	if n < 3 || line[0] == '`' && strings.Contains(line[n:], "`") {
		return ""
	}
	return line[:n]
}

func isHeading(line string) bool {
	rest := strings.TrimLeft(line, "#")
	n := len(line) - len(rest)
	return 1 <= n && n <= 6 && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

func isUnderline(line string) bool {
	return strings.Trim(line, "=") == "" || len(line) >= 2 && strings.Trim(line, "-") == ""
}

func isRule(line string) bool {
	plain := strings.ReplaceAll(line, " ", "")
	return len(plain) >= 3 && (strings.Trim(plain, "-") == "" || strings.Trim(plain, "*") == "" || strings.Trim(plain, "_") == "")
}

func isDelimiterRow(line string) bool {
	return strings.Contains(line, "-") && strings.Contains(line, "|") && strings.Trim(line, "|-: \t") == ""
}

// definitionOf returns which kind of definition a line is.
func definitionOf(line string) (blockKind, bool) {
	if line[0] != '[' {
		return 0, false
	}
	label, _, is := strings.Cut(line[1:min(len(line), 1000)], "]:")
	if !is || label == "" || strings.ContainsAny(label, "[]") {
		return 0, false
	}
	if n, numbers := numberList(strings.Trim(label, "^")); n > 0 && len(numbers) > 0 && n == len(strings.Trim(label, "^")) {
		return numbered, true
	}
	return definition, true
}

// listMarker returns the length of the marker of a list item, or 0. Within a paragraph, only the number 1 begins a list.
func listMarker(line string, within bool) int {
	n := 0
	switch c, size := utf8.DecodeRuneInString(line); {
	case c == '-' || c == '*' || c == '+' || c == '•' || c == '‣' || c == '◦':
		n = size
	case isDigit(line[0]):
		for n < len(line) && n < 9 && isDigit(line[n]) {
			n++
		}
		if n == len(line) || line[n] != '.' && line[n] != ')' || within && line[:n] != "1" {
			return 0
		}
		n++
	default:
		return 0
	}
	if n < len(line) && line[n] != ' ' && line[n] != '\t' {
		return 0
	}
	for _, box := range []string{" [ ] ", " [x] ", " [X] "} {
		if strings.HasPrefix(line[n:], box) {
			return n + len(box)
		}
	}
	return n
}

func isTerminator(c rune) bool {
	return strings.ContainsRune(".!?…؟۔։።", c) || strings.ContainsRune(wideTerminators, c)
}
