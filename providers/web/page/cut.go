package page

import (
	"strings"

	"turnstone/protocol/clip"
)

// maxText limits the text of a page, in bytes: more than a model reads at once.
const maxText = 256 << 10

// structuralEnd returns where a text of at most a size ends: before a heading, else after a paragraph, a line or a word, if
// there is one in the last quarter.
func structuralEnd(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	head := text[:most]
	for _, border := range []string{"\n# ", "\n## ", "\n### ", "\n\n", "\n", " "} {
		if at := strings.LastIndex(head, border); at > most*3/4 {
			return at
		}
	}
	return len(clip.Bytes(text, most))
}
