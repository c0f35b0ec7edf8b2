package search

import (
	"strings"

	"turnstone/protocol"
)

// result returns the result for a text that matches.
func (f *finder) result(d *document) protocol.SearchResult {
	texts := d.texts()
	result := protocol.SearchResult{
		Kind: d.Kind, ConversationID: &d.ConversationID, BranchID: d.BranchID, ProjectID: d.ProjectID, Title: d.Title, At: d.At,
		Snippet: snippet(strings.Join(texts, partSeparator), f.query.occurrences(tokensOf(texts))),
	}
	if d.Kind == protocol.SearchMessage {
		message := protocol.MessageID(d.ID)
		result.MessageID = &message
	}
	return result
}
