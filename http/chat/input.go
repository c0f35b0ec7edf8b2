package chat

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"turnstone/protocol"
)

// readInput joins the texts of an input, and lists its files, each once.
func readInput(items []protocol.InputItem) (text string, attachments []protocol.FileID, err error) {
	for _, item := range items {
		if item.Type != "file" {
			continue
		}
		if item.FileID == nil {
			return "", nil, protocol.Invalid("body.input", "must have the file_id of each file")
		}
		attachments = append(attachments, *item.FileID)
	}
	if attachments, err = onceEach("body.input", attachments); err != nil {
		return "", nil, err
	}
	text = protocol.JoinTexts(items)
	if utf8.RuneCountInString(text) > protocol.MaxInputRunes {
		return "", nil, protocol.Invalid("body.input", "is too long")
	}
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	return text, attachments, nil
}

// onceEach returns the files of a message without repetitions.
func onceEach(at string, files []protocol.FileID) (distinct []protocol.FileID, err error) {
	for _, id := range files {
		if !slices.Contains(distinct, id) {
			distinct = append(distinct, id)
		}
	}
	if len(distinct) > protocol.MaxAttachments {
		return nil, protocol.Invalid(at, fmt.Sprintf("must have at most %d files", protocol.MaxAttachments))
	}
	return distinct, nil
}
