package response

import (
	"mime"
	"net/url"
	"strings"
	"unicode"

	"turnstone/protocol/clip"
	"turnstone/protocol/filetype"
	"turnstone/protocol/foreign"
)

// Stored returns the header Content-Disposition of a download of a file under its own name, which was cleaned when it was stored;
// the title of an artifact is cleaned here. Old programs get a name in ASCII, without characters that some of them decode.
func Stored(name string) string {
	name, err := filetype.CleanName("", name)
	if err != nil {
		name = "file"
	}
	plain := strings.Map(func(c rune) rune {
		if c > unicode.MaxASCII || strings.ContainsRune(`%"\`, c) {
			return '_'
		}
		return c
	}, name)
	return mime.FormatMediaType("attachment", map[string]string{"filename": plain, "filename*": "UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")})
}

const maxFileName = 100 // characters, below the limits of file systems

// Attachment returns the header Content-Disposition of a download. The name keeps the letters and digits of any
// language, spaces and a few marks: no character of it has a meaning in a path, changes the direction of the text or is
// invisible. An empty name is replaced by otherwise. extension starts with a dot.
func Attachment(name, otherwise, extension string) string {
	safe := strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsNumber(c) || strings.ContainsRune("-_.,()+'", c) {
			return c
		}
		return ' '
	}, name)
	safe = clip.Runes(foreign.OneLine(safe), maxFileName)
	if safe = strings.Trim(safe, ". -"); safe == "" {
		safe = otherwise
	}
	return mime.FormatMediaType("attachment", map[string]string{"filename": safe + extension})
}
