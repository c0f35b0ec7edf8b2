package extract

import (
	"bytes"
	"io"
	"slices"
	"unicode/utf8"

	"turnstone/protocol"
	"turnstone/providers/charset"
)

// readText reads plain text, Markdown, CSV, JSON, source code and other texts, in any encoding that can be recognized.
func readText(t *text, c content) error {
	const most = 4*maxText + utf8.UTFMax // UTF-32 has 4 bytes for a character
	raw, err := io.ReadAll(io.LimitReader(c.reader(), most))
	if err != nil {
		return err
	}
	t.truncated = c.size > most
	return t.write(t.decode(raw, bytes.HasPrefix(raw, []byte("<?xml"))))
}

// decode returns bytes as text, and notes an encoding that was guessed.
func (t *text) decode(raw []byte, isMarkup bool) string {
	detect := charset.Detect
	if isMarkup {
		detect = charset.DetectMarkup
	}
	guess := detect(raw)
	const sure = 100
	if guess.Certainty < sure && !slices.ContainsFunc(t.notes, func(n protocol.TextNote) bool { return n.Kind == protocol.NoteEncoding }) {
		t.notes = append(t.notes, protocol.TextNote{Kind: protocol.NoteEncoding, Value: guess.Name, Count: guess.Certainty})
	}
	return guess.Decode(raw)
}
