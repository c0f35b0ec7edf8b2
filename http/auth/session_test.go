package auth

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzUserAgent checks that the stored User-Agent is short, printable UTF-8, whatever the client sends.
func FuzzUserAgent(f *testing.F) {
	for _, text := range []string{"", "Mozilla/5.0 (é)", "caf\xe9", "\xff\xfe\x85\x00", "a\tb\r\n", "\u0085\x7f", strings.Repeat("\xe9", 300), strings.Repeat("é", 300), "\xed\xa0\x80"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if clean := cleanUserAgent(text); !utf8.ValidString(clean) || strings.ContainsFunc(clean, unicode.IsControl) || len(clean) > maxUserAgent || cleanUserAgent(clean) != clean {
			t.Errorf("%q is stored as %q", text, clean)
		}
	})
}
