// Package passagestest makes texts with pages. Only tests import it.
package passagestest

import (
	"strings"

	"turnstone/protocol"
)

// Pages returns a text of n pages and its blocks. say returns what a page says.
func Pages(n int, say func(page int) string) (string, []protocol.TextBlock) {
	var text strings.Builder
	var blocks []protocol.TextBlock
	for page := 1; page <= n; page++ {
		body := say(page) + "\n"
		blocks = append(blocks, protocol.TextBlock{Kind: protocol.BlockPage, Page: page, Offset: text.Len(), Length: len(body)})
		text.WriteString(body)
	}
	return text.String(), blocks
}
