package search

import (
	"strings"

	"turnstone/protocol"
)

// result returns the result for a text that matches.
func (f *finder) result(d *document) protocol.SearchResult {
	if d.Kind == protocol.SearchFile {
		return f.fileResult(d)
	}
	texts := d.texts()
	conversation := protocol.ConversationID(d.ContainerID)
	result := protocol.SearchResult{
		Kind: d.Kind, ConversationID: &conversation, BranchID: d.BranchID, ProjectID: d.ProjectID, Title: d.Title, At: d.At,
		Snippet: snippet(strings.Join(texts, partSeparator), f.query.occurrences(tokensOf(texts))),
	}
	if d.Kind == protocol.SearchMessage {
		message := protocol.MessageID(d.ID)
		result.MessageID = &message
	}
	return result
}

// fileResult returns the result for a section of a file, with an excerpt of its text, or of its name if only that matches.
func (f *finder) fileResult(d *document) protocol.SearchResult {
	file := protocol.FileID(d.ContainerID)
	result := protocol.SearchResult{Kind: d.Kind, FileID: &file, ProjectID: f.project, Title: d.Title, At: d.At}
	text := normalize(d.Text)
	found := f.query.occurrences(tokenize(text))
	if len(found) == 0 {
		name := normalize(d.Title)
		result.Snippet = snippet(name, f.query.occurrences(tokenize(name)))
		return result
	}
	result.Snippet, result.Passage = snippet(text, found), d.passage(text, best(found))
	return result
}

// passage returns the page of an occurrence in the normal form of the text. If that differs from the text, the passage may
// start a little earlier or later.
func (d *document) passage(text string, found occurrence) *protocol.SearchPassage {
	first := d.Start + byteOf(text, found.start)
	for _, b := range d.Blocks {
		if b.Offset <= first && first < b.Offset+b.Length {
			return &protocol.SearchPassage{Kind: b.Kind, Page: b.Page, Offset: b.Offset, Length: b.Length, Match: first}
		}
	}
	return &protocol.SearchPassage{Offset: first, Length: min(passageBytes, d.Start+len(d.Text)-first), Match: first}
}

// passageBytes is the length of a passage of a text without pages.
const passageBytes = 500

// byteOf returns the byte at which a code point of a text starts.
func byteOf(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
