package model

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"turnstone/actors/llm"
	"turnstone/protocol"
)

// thoughts separates reasoning that a model writes into its text, between marks at the start of a line, from the text. Marks in
// code stay text. After some text, an opening mark counts only if a line feed, a letter or a digit follows: before a space
// or a comma, it is what the text is about. A closing mark without an opening one (the template of the model has already
// written the opening one) means that everything before it was reasoning. Behind text in its line, it counts only if no
// sentence goes on or ends behind it. Inside reasoning, a closing mark in quotes or in code is what the reasoning is about.
// Marks are found in any case, and however the text is cut.
type thoughts struct {
	closing string // inside reasoning: the mark that ends it
	within  bool   // not at the start of a line
	fence   string // inside a block of code: the characters that started it
	inked   bool   // the current line has text before the current position
	spoken  bool   // there was text since the last reasoning
	ticks   int    // in the current line before the current position
	before  rune   // the last character before the current position
	skip    bool   // white space at the start of the next text is not shown
	tagged  bool   // a mark was found
	framed  bool   // the text has the frames of gpt-oss

	// The reasoning after a closing mark that was taken for what the reasoning is about. If no other follows, it was the end.
	doubted  bool
	doubtful strings.Builder
}

// A mark is how models write reasoning into their text.
type mark struct {
	opening, closing string
	first            bool // counts only before any text
}

var marks = []mark{
	{"<think>", "</think>", false},
	{"<thinking>", "</thinking>", false},
	{"<thought>", "</thought>", false},
	{"<reasoning>", "</reasoning>", false},
	{"<seed:think>", "</seed:think>", false}, // Seed-OSS
	{"[THINK]", "[/THINK]", true},            // Magistral
	{"◁think▷", "◁/think▷", true},            // Kimi
	{"<|channel|>analysis<|message|>", frameEnd, true},
}

// The frames that gpt-oss puts around the parts of an answer, if the server does not remove them.
const frameEnd, frameReturn = "<|end|>", "<|return|>"

var frameStarts = []string{"<|start|>assistant", "<|channel|>final<|message|>", "<|channel|>commentary<|message|>"}

// markStarts are the first characters of closing marks.
const markStarts = "<[◁"

const fence = "```"

const (
	maxFenceLine = 200 // bytes behind a fence that decide whether it ends the code
	maxBehind    = 8   // bytes behind a closing mark that decide whether a text mentions it
	// maxCodeBehind is the number of bytes behind a closing mark in a block of code that decide whether the block ends, so that
	// the mark is code, or was never meant to end, because the reasoning did.
	maxCodeBehind = 2 << 10
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

// reasoning returns how much of text is reasoning, and the length of the mark after it.
func (t *thoughts) reasoning(text string, last bool) (kind llm.ChunkKind, size, drop int) {
	for size < len(text) {
		rest := text[size:]
		if !t.within {
			start := len(rest) - len(strings.TrimLeft(rest, " \t"))
			if !last && (start == len(rest) || t.mayStart(rest[start:])) {
				break
			}
			t.within = true
			t.passFence(rest[start:])
		}
		end := strings.IndexByte(rest, '\n')
		line := rest
		if end >= 0 {
			line = rest[:end+1]
		}
		at := indexMark(line, t.closing)
		if at < 0 {
			if end < 0 && !last {
				line = line[:len(line)-partial(line, t.closing)]
			}
			t.doubt(line)
			size += len(line)
			if end < 0 {
				break
			}
			t.newLine()
			continue
		}
		about, more := t.mentions(line[:at], rest[at+len(t.closing):], last)
		t.doubt(line[:at])
		size += at
		if !about {
			if !more {
				drop = len(t.closing)
				t.end()
			}
			break
		}
		t.doubted = true
		t.doubtful.Reset()
		t.passed(t.closing)
		size += len(t.closing)
	}
	return llm.ChunkReasoning, size, drop
}

// doubt notes reasoning that has passed.
func (t *thoughts) doubt(text string) {
	t.passed(text)
	if t.doubted {
		t.doubtful.WriteString(text)
	}
}

// end notes that the reasoning has ended.
func (t *thoughts) end() {
	t.framed = t.framed || t.closing == frameEnd
	t.closing, t.skip, t.spoken, t.fence, t.doubted = "", true, false, "", false
	t.doubtful.Reset()
	t.newLine()
}

// unended returns the answer of a model whose reasoning did not end, except with a mark in quotes or in code; empty if
// there is none.
func (t *thoughts) unended() string {
	if t.closing == "" || !t.doubted {
		return ""
	}
	return strings.TrimLeft(t.doubtful.String(), " \t\r\n`\"'")
}

// quotePairs are the characters behind a mention of a mark, by those before it.
var quotePairs = map[rune]rune{'`': '`', '"': '"', '\'': '\'', '“': '”', '‘': '’', '„': '“', '«': '»', '「': '」', '『': '』'}

// mentions reports whether a closing mark between two texts is what the reasoning is about. With more, that depends on what
// follows.
func (t *thoughts) mentions(text, behind string, last bool) (about, more bool) {
	if t.fence != "" {
		return t.codeBehind(behind, last)
	}
	quote, code := quotePairs[t.last(text)], (t.ticks+strings.Count(text, "`"))%2 == 1
	if behind == "" {
		return false, !last && (quote != 0 || code)
	}
	next, _ := utf8.DecodeRuneInString(behind)
	return quote != 0 && next == quote || next == '`' && code, false
}

// codeBehind reports whether a text ends the current block of code. With more, that depends on what follows.
func (t *thoughts) codeBehind(text string, last bool) (ends, more bool) {
	decided := last || len(text) >= maxCodeBehind
	text = text[:min(len(text), maxCodeBehind)]
	for {
		_, next, found := strings.Cut(text, "\n")
		if !found {
			return false, !decided
		}
		text = next
		line := strings.TrimLeft(text, " \t")
		if mark := fenceOf(line); strings.HasPrefix(mark, t.fence) && (decided || strings.Contains(line, "\n")) {
			return blankLine(line[len(mark):], maxFenceLine), false // other text behind it starts a block
		}
	}
}

// last returns the last character of text or, if it is empty, the one before it.
func (t *thoughts) last(text string) rune {
	if text == "" {
		return t.before
	}
	last, _ := utf8.DecodeLastRuneInString(text)
	return last
}

// indexMark returns the position of a mark in text, in any case; -1 if there is none.
func indexMark(text, mark string) int {
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], mark[0])
		if next < 0 {
			return -1
		}
		if at += next; hasMark(text[at:], mark) {
			return at
		}
	}
}

// hasMark reports whether text begins with a mark, in any case.
func hasMark(text, mark string) bool {
	return len(text) >= len(mark) && strings.EqualFold(text[:len(mark)], mark)
}

// partial returns the length of the longest end of text with which mark may begin.
func partial(text, mark string) int {
	for n := min(len(text), len(mark)-1); n > 0; n-- {
		if strings.EqualFold(text[len(text)-n:], mark[:n]) {
			return n
		}
	}
	return 0
}

// plain returns how much of text is text up to the next position where it may change, and the length of a mark there.
func (t *thoughts) plain(text string, last bool) (kind llm.ChunkKind, size, drop int) {
	if !t.within {
		start := len(text) - len(strings.TrimLeft(text, " \t\r\n\ufeff"))
		rest := text[start:]
		found := t.opens(rest)
		size := len(found.opening)
		if !last && (rest == "" || t.mayStart(rest) || t.spoken && size > 0 && len(rest) == size) {
			return llm.ChunkText, 0, 0
		}
		if frame := t.frame(rest); frame > 0 {
			return llm.ChunkText, 0, start + frame
		}
		t.within = true
		if size > 0 && t.fence == "" && (!t.spoken || beginsThought(rest[size:])) {
			t.closing, t.tagged = found.closing, true
			t.newLine()
			return llm.ChunkText, 0, start + size
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
	if t.framed && t.fence == "" {
		if size, drop, found := t.unframe(line, last || end >= 0); found {
			return llm.ChunkText, size, drop
		}
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

// mayStart reports whether text is the start of a fence, of an opening mark or of a frame, and nothing more.
func (t *thoughts) mayStart(text string) bool {
	if text[0] == '`' || text[0] == '~' {
		behind := strings.TrimLeft(text, text[:1])
		return behind == "" || t.fence != "" && len(behind) < maxFenceLine && strings.TrimSpace(behind) == "" && !strings.Contains(behind, "\n")
	}
	starts := func(mark string) bool { return len(text) < len(mark) && strings.EqualFold(mark[:len(text)], text) }
	for i := range marks {
		if (!marks[i].first || !t.spoken) && starts(marks[i].opening) {
			return true
		}
	}
	return !t.spoken && slices.ContainsFunc(frameStarts, starts)
}

// opens returns the mark with which a line opens reasoning; the zero value if there is none.
func (t *thoughts) opens(line string) mark {
	for i := range marks {
		if (!marks[i].first || !t.spoken) && hasMark(line, marks[i].opening) {
			return marks[i]
		}
	}
	return mark{}
}

// frame returns the length of the start of a frame at the start of a line.
func (t *thoughts) frame(line string) int {
	for _, start := range frameStarts {
		if !t.spoken && t.fence == "" && hasMark(line, start) {
			t.framed, t.tagged = true, true
			return len(start)
		}
	}
	return 0
}

// unframe looks for the end of a frame in a line. With whole, no more of the line follows.
func (t *thoughts) unframe(line string, whole bool) (size, drop int, found bool) {
	size = len(line)
	for _, end := range []string{frameEnd, frameReturn} {
		if at := indexMark(line, end); at >= 0 && at < size {
			size, drop = at, len(end)
		} else if at < 0 && !whole {
			size = min(size, len(line)-partial(line, end))
		}
	}
	if size == len(line) {
		return 0, 0, false
	}
	t.passed(line[:size])
	if drop > 0 {
		t.spoken = false
		t.newLine()
	}
	return size, drop, true
}

// beginsThought reports whether text behind an opening mark is a thought, and not the rest of a sentence about the mark.
func beginsThought(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return first == '\n' || first == '\r' || unicode.IsLetter(first) || unicode.IsDigit(first)
}

// orphan looks for a closing mark in a line. With whole, no more of the line follows.
func (t *thoughts) orphan(line string, whole bool) (kind llm.ChunkKind, size, drop int, found bool) {
	ticks, inked := t.ticks, t.inked
	for from, at := 0, 0; ; from, at = at, at+1 {
		next := strings.IndexAny(line[at:], markStarts)
		if next < 0 {
			return 0, 0, 0, false
		}
		at += next
		ticks += strings.Count(line[from:at], "`")
		inked = inked || strings.TrimSpace(line[from:at]) != ""
		length, more := closingMark(line[at:])
		behind := line[at+length:]
		switch {
		case more && !whole:
			return t.upTo(line, at)
		case length == 0, ticks%2 == 1:
			continue
		case inked && !whole && len(behind) < maxBehind && strings.TrimSpace(behind) == "":
			return t.upTo(line, at)
		case inked && goesOn(behind):
			continue
		case at > 0:
			return t.upTo(line, at)
		}
		t.tagged, t.skip, t.spoken = true, true, false
		t.newLine()
		return llm.ChunkThought, 0, length, true
	}
}

// closingMark returns the length of the closing mark with which text begins. With more, text is only the start of one.
func closingMark(text string) (length int, more bool) {
	for i := range marks {
		closing := marks[i].closing
		switch {
		case closing == frameEnd:
		case hasMark(text, closing):
			return len(closing), false
		default:
			more = more || len(text) < len(closing) && strings.EqualFold(text, closing[:len(text)])
		}
	}
	return 0, more
}

// goesOn reports whether a sentence goes on, or ends, behind a closing mark: the text mentions it.
func goesOn(behind string) bool {
	first, _ := utf8.DecodeRuneInString(behind)
	return strings.ContainsRune(".,;:!?)]}。，、；：！？）」", first) || first == ' ' && !blankLine(behind, maxBehind)
}

// upTo returns the text of a line up to a mark.
func (t *thoughts) upTo(line string, size int) (llm.ChunkKind, int, int, bool) {
	t.passed(line[:size])
	return llm.ChunkText, size, 0, true
}

// passed notes text of the current line.
func (t *thoughts) passed(text string) {
	t.ticks += strings.Count(text, "`")
	t.before = t.last(text)
	if strings.TrimSpace(text) != "" {
		t.inked, t.spoken = true, true
	}
}

func (t *thoughts) newLine() { t.within, t.inked, t.ticks, t.before = false, false, 0, 0 }
