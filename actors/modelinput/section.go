package modelinput

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"turnstone/actors/passages"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

// add adds a text that shows files to a message.
func add(message *turnlog.HistoryMessage, section string) {
	message.Parts = append(slices.Clip(message.Parts), protocol.Part{Type: protocol.PartText, Text: section})
	message.Shown++
}

// frame returns a file in the form that a model gets. Neither its name nor its text can end it. head is nil for a deleted file.
func frame(number int, head *turnlog.FileHead, body string) string {
	attributes := foreign.Attribute("number", strconv.Itoa(number))
	if head != nil {
		attributes += foreign.Attribute("name", head.Filename) + foreign.Attribute("type", head.MediaType) + extent(head) + notes(head.Notes) +
			foreign.Attribute("id", head.FileID.String())
	}
	return "\n\n" + foreign.Frame(foreign.File, attributes, body)
}

// Excerpt returns a range of the text of a file, in the form in which a model gets files, and the file as a source. note is
// shown before the text, unless it is empty.
func Excerpt(number int, head *turnlog.FileHead, text string, blocks []protocol.TextBlock, start, end int, note string) (section string, source protocol.Source) {
	var pieces []passages.Passage
	for _, p := range whole(text, blocks) {
		if p.Start, p.End = max(p.Start, start), min(p.End, end); p.Start < p.End {
			pieces = append(pieces, p)
		}
	}
	body, read := render(text, blocks, pieces, false)
	if note != "" {
		body = note + "\n" + body
	}
	return frame(number, head, body), protocol.Source{Number: number, FileID: head.FileID, Title: head.Filename, Size: len(text), Blocks: read}
}

// extent returns the attributes that describe the size of a file.
func extent(head *turnlog.FileHead) string {
	switch {
	case head.Pages > 0:
		return fmt.Sprintf(" pages=\"%d\"", head.Pages)
	case head.Width > 0:
		return fmt.Sprintf(" width=\"%d\" height=\"%d\"", head.Width, head.Height)
	}
	return ""
}

// render returns passages of a text, below the numbers of their pages. gaps marks what is left out between two passages. read
// are the pages of which a passage is shown.
func render(text string, blocks []protocol.TextBlock, pieces []passages.Passage, gaps bool) (body string, read []protocol.TextBlock) {
	var b strings.Builder
	end, block := 0, -1
	for _, p := range pieces {
		if gaps && p.Start > end {
			b.WriteString("\n[…]\n")
		}
		if p.Block != block && p.Block >= 0 {
			fmt.Fprintf(&b, "[%s %d]\n", blocks[p.Block].Kind, blocks[p.Block].Page)
			read = append(read, blocks[p.Block])
		}
		b.WriteString(text[p.Start:p.End])
		end, block = p.End, p.Block
	}
	return strings.TrimRight(b.String(), "\n"), read
}

// whole divides a whole text into its pages, and the texts between two pages.
func whole(text string, blocks []protocol.TextBlock) (pieces []passages.Passage) {
	at := 0
	for i, b := range blocks {
		if b.Offset > at {
			pieces = append(pieces, passages.Passage{Start: at, End: b.Offset, Block: -1})
		}
		at = b.Offset + b.Length
		pieces = append(pieces, passages.Passage{Start: b.Offset, End: at, Block: i})
	}
	if at < len(text) {
		pieces = append(pieces, passages.Passage{Start: at, End: len(text), Block: -1})
	}
	return pieces
}
