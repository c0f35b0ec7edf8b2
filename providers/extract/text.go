package extract

import (
	"errors"
	"strings"
	"unicode/utf8"

	"turnstone/protocol"
	"turnstone/protocol/clip"
)

// Error is the failure to read a content, which a repeat would not change.
type Error struct {
	Reason protocol.TextReason
	cause  error
}

// Error implements error.
func (e *Error) Error() string {
	if e.cause == nil {
		return string(e.Reason)
	}
	return string(e.Reason) + ": " + e.cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

func fail(reason protocol.TextReason, cause error) *Error { return &Error{reason, cause} }

var (
	errEncrypted = fail(protocol.TextEncrypted, nil)
	errDamaged   = fail(protocol.TextDamaged, nil)
	errComplex   = fail(protocol.TextTooComplex, nil)
	// errFull ends the reading of a content of which enough was read. It is not a failure.
	errFull = errors.New("the text is long enough")
)

// text collects the text of a content and its blocks.
type text struct {
	b         strings.Builder
	blocks    []protocol.TextBlock
	pages     int // blocks that were begun, those without text included
	truncated bool
	notes     []protocol.TextNote
}

// note adds to what was left out or guessed.
func (t *text) note(kind protocol.NoteKind, count int) {
	for i := range t.notes {
		if t.notes[i].Kind == kind {
			t.notes[i].Count += count
			return
		}
	}
	t.notes = append(t.notes, protocol.TextNote{Kind: kind, Count: count})
}

// write adds a piece. Its invalid bytes and control characters are replaced, and the ends of its lines are \n. The error
// is errFull if the text has reached a limit.
func (t *text) write(piece string) error {
	piece = clean(piece)
	free := maxText - t.b.Len()
	if len(piece) <= free {
		t.b.WriteString(piece)
		return nil
	}
	t.b.WriteString(clip.Bytes(piece, free))
	t.truncated = true
	return errFull
}

// line ends a line that is not empty.
func (t *text) line() error {
	if s := t.b.String(); s == "" || strings.HasSuffix(s, "\n") {
		return nil
	}
	return t.write("\n")
}

// begin starts the next block.
func (t *text) begin(kind protocol.BlockKind, title string) error {
	if t.pages == maxBlocks {
		t.truncated = true
		return errFull
	}
	t.end()
	if err := t.line(); err != nil {
		return err
	}
	t.pages++
	t.blocks = append(t.blocks, protocol.TextBlock{Kind: kind, Page: t.pages, Title: shorten(clean(title)), Offset: t.b.Len()})
	return nil
}

// end ends the last block, and removes it if it has no text.
func (t *text) end() {
	if len(t.blocks) == 0 {
		return
	}
	last := &t.blocks[len(t.blocks)-1]
	last.Length = t.b.Len() - last.Offset
	if strings.TrimSpace(t.b.String()[last.Offset:]) == "" {
		t.blocks = t.blocks[:len(t.blocks)-1]
	}
}

// maxTitle limits the title of a block, in bytes.
const maxTitle = 200

func shorten(title string) string {
	return clip.Bytes(strings.Join(strings.Fields(title), " "), maxTitle)
}

// clean replaces invalid bytes and NUL by U+FFFD, the other control characters by spaces, and the ends of lines by \n.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.ContainsRune(s, '\r') {
		s = strings.ReplaceAll(s, "\r\n", "\n")
		s = strings.ReplaceAll(s, "\r", "\n")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == 0:
			return utf8.RuneError
		case r == '\n', r == '\t', r >= ' ' && r != 0x7F:
			return r
		}
		return ' '
	}, s)
}

// extraction returns the result for a text that was read.
func (t *text) extraction() *protocol.Extraction {
	t.end()
	return &protocol.Extraction{State: protocol.TextDone, Pages: t.pages, Truncated: t.truncated, Notes: t.notes, Text: t.b.String(), Blocks: t.blocks}
}

// joined writes lines, each followed by \n, without the empty ones at the end.
func (t *text) joined(lines string) error {
	lines = strings.TrimRight(lines, " \n\t")
	if lines == "" {
		return nil
	}
	return t.write(lines + "\n")
}
