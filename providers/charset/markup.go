package charset

import (
	"bytes"
	"regexp"
	"unicode/utf8"
)

// declarationSize is where the search for the encoding of markup ends. Browsers search 1,024 bytes, but pages have it later.
const declarationSize = 64 << 10

var declaration = regexp.MustCompile(`(?i)<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)["']|<meta[^>]*\scharset\s*=\s*["']?\s*([\w.:-]+)|<meta[^>]*[\s"';]charset\s*=\s*["']?\s*([\w.:-]+)`)

// DetectMarkup is Detect for HTML and XML, which may name their encodings.
func DetectMarkup(raw []byte) Guess {
	if utf8.Valid(raw) && !bytes.Contains(raw, []byte{0}) && !bytes.Contains(raw[:min(len(raw), sampleSize)], []byte("\x1b$")) {
		return UTF8
	}
	guess := Detect(raw)
	if guess.Certainty == certain {
		return guess
	}
	for _, name := range declaration.FindSubmatch(raw[:min(len(raw), declarationSize)]) {
		if declared, ok := named(string(name), certain); ok {
			return declared
		}
	}
	return guess
}
