package filetype

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"turnstone/protocol"
)

// MaxName limits the name of a file, in characters.
const MaxName = 255

// CleanName returns a name that is safe to show and to save under: without control characters and characters that
// are invisible or change the direction of the text, and with _ instead of the separators of paths. field names the field
// in the error for a name that is too long, or has nothing left.
func CleanName(field, name string) (string, error) {
	clean := strings.Map(func(c rune) rune {
		switch {
		case c == '/' || c == '\\':
			return '_'
		case unicode.IsSpace(c):
			return ' '
		case unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == utf8.RuneError:
			return -1
		}
		return c
	}, name)
	clean = strings.Join(strings.Fields(clean), " ")
	if strings.Trim(clean, ". ") == "" {
		clean = ""
	}
	if n := utf8.RuneCountInString(clean); n < 1 || n > MaxName {
		return "", protocol.Invalid(field, fmt.Sprintf("must have 1 to %d characters, and not only dots and invisible ones", MaxName))
	}
	return clean, nil
}
