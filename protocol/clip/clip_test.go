package clip

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		text                   string
		limit                  int
		runes, ellipsis, bytes string
	}{
		{"", 0, "", "", ""},
		{"tide", 4, "tide", "tide", "tide"},
		{"tides", 4, "tide", "tid…", "tide"},
		{"a tide", 3, "a t", "a…", "a t"},
		{"海と空", 3, "海と空", "海と空", "海"},
		{"海と空", 2, "海と", "海…", ""},
		{"海と空", 0, "", "…", ""},
		{"\xff\xfe\xfd", 2, "\xff\xfe", "\xff…", "\xff\xfe"},
	} {
		if got := Runes(c.text, c.limit); got != c.runes {
			t.Errorf("Runes(%q, %d) = %q, want %q", c.text, c.limit, got, c.runes)
		}
		if got := Ellipsis(c.text, c.limit); got != c.ellipsis {
			t.Errorf("Ellipsis(%q, %d) = %q, want %q", c.text, c.limit, got, c.ellipsis)
		}
		if got := Bytes(c.text, c.limit); got != c.bytes {
			t.Errorf("Bytes(%q, %d) = %q, want %q", c.text, c.limit, got, c.bytes)
		}
	}
}

func TestNoTextIsLongerThanItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, limit := rapid.String().Draw(t, "text"), rapid.IntRange(1, 20).Draw(t, "limit")
		if n := utf8.RuneCountInString(Ellipsis(text, limit)); n > limit {
			t.Errorf("%d characters of %d", n, limit)
		}
		if got := Bytes(text, limit); len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("%q", got)
		}
	})
}

func TestBytesHasOnlyWholeCharacters(t *testing.T) {
	for limit, want := range map[int]string{0: "", 1: "a", 2: "a", 3: "a", 4: "a€", 5: "a€b", 9: "a€b"} {
		if got := Bytes("a€b", limit); got != want {
			t.Errorf("the first %d bytes are %q, want %q", limit, got, want)
		}
	}
	if got := Bytes("𝔘", 3); got != "" {
		t.Errorf("a part of a character is %q", got)
	}
	if invalid := strings.Repeat("\x80", 10); Bytes(invalid, 6) != invalid[:6] {
		t.Errorf("the first 6 bytes of no character are %q", Bytes(invalid, 6))
	}
}
