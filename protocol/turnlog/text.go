package turnlog

import "strings"

// Storable replaces what Postgres cannot store as text: NUL and invalid UTF-8.
func Storable(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\ufffd")
	}
	return strings.ToValidUTF8(text, "\ufffd")
}
