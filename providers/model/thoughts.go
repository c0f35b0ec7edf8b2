package model

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"turnstone/actors/llm"
)

// thoughts separates reasoning that a model writes into its text, between tags at the start of a line, from the text. Tags in
// code stay text. After some text, an opening tag counts only if a line feed, a letter or a digit follows: before a space
// or a comma, it is what the text is about. A closing tag without an opening one (the template of the model has already written the opening one) means that
// everything before it was reasoning.
type thoughts struct {
	closing string // inside reasoning: the tag that ends it
	within  bool   // not at the start of a line
	fence   string // inside a block of code: the characters that started it
	inked   bool   // the current line has text before the current position
	spoken  bool   // there was text since the last reasoning
	ticks   int    // in the current line before the current position
	skip    bool   // white space at the start of the next text is not shown
	tagged  bool   // a tag was found
}

// thoughtTags are the names of the tags.
var thoughtTags = []string{"think", "thinking", "thought", "reasoning"}

const fence = "```"

// fenceOf returns the characters at the start of a line that start or end a block of code; empty if there are none.
func fenceOf(line string) string {
	if line == "" || line[0] != '`' && line[0] != '~' {
		return ""
	}
	size := len(line) - len(strings.TrimLeft(line, line[:1]))
	if size < len(fence) {
		return ""
	}
	return line[:size]
}

// passFence notes the start of a line outside reasoning, where a block of code may start or end.
func (t *thoughts) passFence(line string) {
	found := fenceOf(line)
	rest, _, _ := strings.Cut(line[len(found):], "\n")
	switch {
	case found == "":
	case t.fence == "":
		t.fence = found
	case strings.HasPrefix(found, t.fence) && strings.TrimSpace(rest) == "":
		t.fence = ""
	}
}

// split passes text, in order, to emit: as text, as reasoning, or, once, as the mark that everything before it was
// reasoning. It returns the end of the text that it cannot decide about before more arrives; nothing if text is the
// last.
func (t *thoughts) split(text string, last bool, emit func(kind llm.ChunkKind, text string) error) (held string, err error) {
	for text != "" {
		var kind llm.ChunkKind
		var size, drop int
		switch {
		case t.closing != "":
			kind, size, drop = t.reasoning(text, last)
		case t.skip:
			trimmed := strings.TrimLeft(text, " \t\r\n")
			if text = trimmed; text == "" {
				continue
			}
			t.skip = false
			continue
		default:
			kind, size, drop = t.plain(text, last)
		}
		if kind == llm.ChunkThought || size > 0 {
			if err := emit(kind, text[:size]); err != nil {
				return "", err
			}
		}
		if size+drop == 0 {
			return text, nil
		}
		text = text[size+drop:]
	}
	return "", nil
}

// reasoning returns how much of text is reasoning, and the length of the tag after it.
func (t *thoughts) reasoning(text string, last bool) (kind llm.ChunkKind, size, drop int) {
	if size = strings.Index(text, t.closing); size >= 0 {
		drop = len(t.closing)
		t.closing, t.skip, t.spoken = "", true, false
		t.newLine()
		return llm.ChunkReasoning, size, drop
	}
	size = len(text)
	if !last {
		size -= partial(text, t.closing)
	}
	return llm.ChunkReasoning, size, 0
}

// partial returns the length of the longest end of text with which tag may begin.
func partial(text, tag string) int {
	for n := min(len(text), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return n
		}
	}
	return 0
}

// plain returns how much of text is text up to the next position where it may change, and the length of a tag there.
func (t *thoughts) plain(text string, last bool) (kind llm.ChunkKind, size, drop int) {
	if !t.within {
		start := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
		rest := text[start:]
		if !last && (rest == "" || mayStart(rest) || t.spoken && rest == "<"+openTag(rest)+">") {
			return llm.ChunkText, 0, 0
		}
		t.within = true
		if name := openTag(rest); name != "" && t.fence == "" && (!t.spoken || beginsThought(rest[len(name)+2:])) {
			t.closing, t.tagged = "</"+name+">", true
			return llm.ChunkText, 0, start + len(name) + 2
		}
		t.passFence(rest)
	}
	end := strings.IndexByte(text, '\n')
	line := text[:max(end, 0)]
	if end < 0 {
		line = text
	}
	if t.fence == "" && !t.tagged {
		if kind, size, drop, found := t.orphan(line, last || end >= 0); found {
			return kind, size, drop
		}
	}
	t.passed(line)
	if end < 0 {
		return llm.ChunkText, len(text), 0
	}
	t.newLine()
	return llm.ChunkText, end + 1, 0
}

// mayStart reports whether text is the start of a fence or of an opening tag, and nothing more.
func mayStart(text string) bool {
	if strings.Trim(text, text[:1]) == "" && (text[0] == '`' || text[0] == '~') {
		return true
	}
	for _, name := range thoughtTags {
		if tag := "<" + name + ">"; len(text) < len(tag) && strings.HasPrefix(tag, text) {
			return true
		}
	}
	return false
}

func openTag(text string) string {
	for _, name := range thoughtTags {
		if strings.HasPrefix(text, "<"+name+">") {
			return name
		}
	}
	return ""
}

// beginsThought reports whether text behind an opening tag is a thought, and not the rest of a sentence about the tag.
func beginsThought(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return first == '\n' || first == '\r' || unicode.IsLetter(first) || unicode.IsDigit(first)
}

// orphan looks for a closing tag in a line. With whole, no more of the line follows.
func (t *thoughts) orphan(line string, whole bool) (kind llm.ChunkKind, size, drop int, found bool) {
	if !strings.Contains(line, "<") {
		return 0, 0, 0, false
	}
	for _, name := range thoughtTags {
		tag := "</" + name + ">"
		at := strings.Index(line, tag)
		if at < 0 {
			if n := partial(line, tag); n > 0 && !whole {
				return t.before(line, len(line)-n)
			}
			continue
		}
		after := line[at+len(tag):]
		switch {
		case (t.ticks+strings.Count(line[:at], "`"))%2 == 1, strings.HasPrefix(after, " ") && strings.TrimSpace(after) != "" && (t.inked || strings.TrimSpace(line[:at]) != ""):
			continue // the answer mentions the tag
		case after == "" && !whole:
			return t.before(line, at)
		case at > 0:
			return t.before(line, at)
		}
		t.tagged, t.skip, t.spoken = true, true, false
		t.newLine()
		return llm.ChunkThought, 0, len(tag), true
	}
	return 0, 0, 0, false
}

// before returns the text of a line up to a tag.
func (t *thoughts) before(line string, size int) (llm.ChunkKind, int, int, bool) {
	t.passed(line[:size])
	return llm.ChunkText, size, 0, true
}

// passed notes text of the current line.
func (t *thoughts) passed(text string) {
	t.ticks += strings.Count(text, "`")
	if strings.TrimSpace(text) != "" {
		t.inked, t.spoken = true, true
	}
}

func (t *thoughts) newLine() { t.within, t.inked, t.ticks = false, false, 0 }
