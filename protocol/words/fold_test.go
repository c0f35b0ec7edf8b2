package words

import (
	"testing"
	"unicode/utf8"
)

func TestEveryCharacterIsFoldedAsWithoutTables(t *testing.T) {
	for c := range rune(utf8.MaxRune + 1) {
		if !utf8.ValidRune(c) || c > 0x20000 && c%97 != 0 {
			continue
		}
		if got, want := string(Fold(nil, c)), foldSlowly(c); got != want {
			t.Fatalf("%U is folded to %q, and without tables to %q", c, got, want)
		}
	}
}
