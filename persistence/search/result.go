package search

import (
	"context"

	"turnstone/protocol"
)

// result returns the result for a text that matches.
func (f *finder) result(ctx context.Context, d *document, loose bool) (result protocol.SearchResult, err error) {
	if d.Kind == protocol.SearchFile {
		return f.fileResult(ctx, d, loose)
	}
	conversation := protocol.ConversationID(d.ContainerID)
	result = protocol.SearchResult{
		Kind: d.Kind, ConversationID: &conversation, BranchID: d.BranchID, ProjectID: d.ProjectID, Title: d.Title, At: d.At,
	}
	if d.Kind == protocol.SearchMessage {
		message := protocol.MessageID(d.ID)
		result.MessageID, result.Role = &message, d.Role
	}
	if d.Kind == protocol.SearchArtifact {
		artifact := protocol.ArtifactID(d.ID)
		result.ArtifactID, result.MessageID = &artifact, d.MessageID
	}
	if d.Kind == protocol.SearchTask {
		task := protocol.TaskID(d.ID)
		result.TaskID = &task
	}
	e := f.excerpt(ctx, loose)
	if err := f.readText(d, &e.flow); err != nil {
		return result, err
	}
	result.Snippet, _ = e.snippet()
	return result, nil
}

// excerpt cuts the excerpt of a text that has the words, or other forms of them.
func (f *finder) excerpt(ctx context.Context, loose bool) *excerpt {
	if loose {
		return f.loose.excerpt(ctx)
	}
	return f.query.excerpt(ctx)
}

// fileResult returns the result for a section of a file, with an excerpt of its text, or of its name if only that matches.
func (f *finder) fileResult(ctx context.Context, d *document, loose bool) (result protocol.SearchResult, err error) {
	file := protocol.FileID(d.ContainerID)
	result = protocol.SearchResult{Kind: d.Kind, FileID: &file, ProjectID: f.project, Title: d.Title, At: d.At}
	for _, text := range []string{d.Text, d.Title} {
		e := f.excerpt(ctx, loose)
		if err := readWhole(&e.flow, []string{text}); err != nil {
			return result, err
		}
		first := 0
		result.Snippet, first = e.snippet()
		if first >= 0 {
			if text == d.Text {
				result.Passage = d.passage(d.Start + first)
			}
			break
		}
	}
	return result, nil
}

// passage returns the page of an occurrence in the normal form of the text of the file. If that differs from the text, the
// passage may start a little earlier or later.
func (d *document) passage(first int) *protocol.SearchPassage {
	for _, b := range d.Blocks {
		if b.Offset <= first && first < b.Offset+b.Length {
			return &protocol.SearchPassage{Kind: b.Kind, Page: b.Page, Offset: b.Offset, Length: b.Length, Match: first}
		}
	}
	return &protocol.SearchPassage{Offset: first, Length: min(passageBytes, d.Start+len(d.Text)-first), Match: first}
}

// passageBytes is the length of a passage of a text without pages.
const passageBytes = 500
