package foreign

import (
	"strings"

	"turnstone/protocol/clip"
)

// borders are where a text is cut, best first: between paragraphs, lines, sentences and words.
var borders = []string{"\n\n", "\n", ". ", " "}

// Cut returns the beginning of a text with at most limit bytes. It ends at the best border in the last quarter.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = clip.Bytes(text, limit)
	from := len(text) - len(text)/4
	for _, border := range borders {
		if at := strings.LastIndex(text[from:], border); at >= 0 {
			return text[:from+at+len(border)]
		}
	}
	return text
}

// OneLine returns a text with a space for each run of white space, also for its line breaks.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Close returns the beginning of a text with frames, with the end of a frame that was cut off.
func Close(text string) string {
	for _, tag := range []string{File, Instructions, Result, WebPage, Artifact} {
		if strings.LastIndex(text, "<"+tag) > strings.LastIndex(text, "</"+tag+">") {
			return text + "\n</" + tag + ">"
		}
	}
	return text
}

// Storable replaces what Postgres cannot store as text: NUL and invalid UTF-8.
func Storable(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\ufffd")
	}
	return strings.ToValidUTF8(text, "\ufffd")
}
