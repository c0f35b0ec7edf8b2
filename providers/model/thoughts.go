package model

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"turnstone/actors/llm"
	"turnstone/protocol"
)

// thoughts separates reasoning that a model writes into its text, between tags at the start of a line, from the text. Tags in
// code stay text. After some text, an opening tag counts only if a line feed, a letter or a digit follows: before a space
// or a comma, it is what the text is about. A closing tag without an opening one (the template of the model has already
// written the opening one) means that everything before it was reasoning. Behind text in its line, it counts only if no
// sentence goes on or ends behind it. Tags are found in any case, and however the text is cut.
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

const (
	maxFenceLine = 200 // bytes behind a fence that decide whether it ends the code
	maxBehind    = 8   // bytes behind a closing tag that decide whether a text mentions it
)

// blankLine reports whether the first size bytes of text have only white space up to the end of the line.
func blankLine(text string, size int) bool {
	line, _, _ := strings.Cut(text[:min(len(text), size)], "\n")
	return strings.TrimSpace(line) == ""
}

// fenceOf returns the characters at the start of a line that start or end a block of code; empty if there are none.
func fenceOf(line string) string {
	size := protocol.FenceRun(line)
	if size < len(fence) {
		return ""
	}
	return line[:size]
}

// passFence notes the start of a line outside reasoning, where a block of code may start or end.
func (t *thoughts) passFence(line string) {
	found := fenceOf(line)
	switch {
	case found == "":
	case t.fence == "":
		t.fence = found
	case strings.HasPrefix(found, t.fence) && blankLine(line[len(found):], maxFenceLine):
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
	if size = indexTag(text, t.closing); size >= 0 {
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

// indexTag returns the position of a tag in text, in any case; -1 if there is none.
func indexTag(text, tag string) int {
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], '<')
		if next < 0 {
			return -1
		}
		if at += next; hasTag(text[at:], tag) {
			return at
		}
	}
}

// hasTag reports whether text begins with a tag, in any case.
func hasTag(text, tag string) bool {
	return len(text) >= len(tag) && strings.EqualFold(text[:len(tag)], tag)
}

// partial returns the length of the longest end of text with which tag may begin.
func partial(text, tag string) int {
	for n := min(len(text), len(tag)-1); n > 0; n-- {
		if strings.EqualFold(text[len(text)-n:], tag[:n]) {
			return n
		}
	}
	return 0
}

// plain returns how much of text is text up to the next position where it may change, and the length of a tag there.
func (t *thoughts) plain(text string, last bool) (kind llm.ChunkKind, size, drop int) {
	if !t.within {
		start := len(text) - len(strings.TrimLeft(text, " \t\r\n\ufeff"))
		rest := text[start:]
		name := openTag(rest)
		if !last && (rest == "" || t.mayStart(rest) || t.spoken && name != "" && len(rest) == len(name)+2) {
			return llm.ChunkText, 0, 0
		}
		t.within = true
		if name != "" && t.fence == "" && (!t.spoken || beginsThought(rest[len(name)+2:])) {
			t.closing, t.tagged = "</"+name+">", true
			return llm.ChunkText, 0, start + len(name) + 2
		}
		if line := strings.LastIndexByte(text[:start], '\n'); line >= 0 { // blank lines
			t.newLine()
			return llm.ChunkText, line + 1, 0
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
func (t *thoughts) mayStart(text string) bool {
	if text[0] == '`' || text[0] == '~' {
		behind := strings.TrimLeft(text, text[:1])
		return behind == "" || t.fence != "" && len(behind) < maxFenceLine && strings.TrimSpace(behind) == "" && !strings.Contains(behind, "\n")
	}
	for _, name := range thoughtTags {
		if tag := "<" + name + ">"; len(text) < len(tag) && strings.EqualFold(tag[:len(text)], text) {
			return true
		}
	}
	return false
}

func openTag(text string) string {
	for _, name := range thoughtTags {
		if hasTag(text, "<"+name+">") {
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
	ticks, inked := t.ticks, t.inked
	for from, at := 0, 0; ; from, at = at, at+1 {
		next := strings.IndexByte(line[at:], '<')
		if next < 0 {
			return 0, 0, 0, false
		}
		at += next
		ticks += strings.Count(line[from:at], "`")
		inked = inked || strings.TrimSpace(line[from:at]) != ""
		length, more := closingTag(line[at:])
		behind := line[at+length:]
		switch {
		case more && !whole:
			return t.before(line, at)
		case length == 0, ticks%2 == 1:
			continue
		case inked && !whole && len(behind) < maxBehind && strings.TrimSpace(behind) == "":
			return t.before(line, at)
		case inked && goesOn(behind):
			continue
		case at > 0:
			return t.before(line, at)
		}
		t.tagged, t.skip, t.spoken = true, true, false
		t.newLine()
		return llm.ChunkThought, 0, length, true
	}
}

// closingTag returns the length of the closing tag with which text begins. With more, text is only the start of one.
func closingTag(text string) (length int, more bool) {
	for _, name := range thoughtTags {
		tag := "</" + name + ">"
		if hasTag(text, tag) {
			return len(tag), false
		}
		more = more || len(text) < len(tag) && strings.EqualFold(text, tag[:len(text)])
	}
	return 0, more
}

// goesOn reports whether a sentence goes on, or ends, behind a closing tag: the text mentions it.
func goesOn(behind string) bool {
	first, _ := utf8.DecodeRuneInString(behind)
	return strings.ContainsRune(".,;:!?)]}。，、；：！？）」", first) || first == ' ' && !blankLine(behind, maxBehind)
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
