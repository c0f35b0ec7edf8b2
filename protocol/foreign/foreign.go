// Package foreign frames text that reaches a model as material and never as an instruction of the service: files and their
// passages, results of tools, and the instructions of projects and accounts. All of it passes Frame or Escape. Both clean the text first:
// a tag that is escaped before invisible characters are removed from it is a tag afterwards. The package imports nothing of
// the service.
package foreign

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The tags of the frames.
const (
	File         = "file"
	Instructions = "instructions"
	Result       = "result" // a part of the result of a tool
	WebPage      = "webpage"
	Artifact     = "artifact"
)

// frameTag matches what a model may take for the beginning or the end of a frame: also with spaces, accents and other
// characters within it that are hardly visible.
var frameTag = regexp.MustCompile(`(?i)<((?:[\s\pZ\pC\pM\x{fffd}]*/)*[\s\pZ\pC\pM\x{fffd}]*(?:` + File + `|` + Instructions + `|` + Result + `|` + WebPage + `|` + Artifact + `))`)

// Frame returns foreign text in a frame. Neither the text nor an attribute can end it. attributes are the results of
// Attribute, joined.
func Frame(tag, attributes, text string) string {
	return "<" + tag + attributes + ">\n" + Escape(text) + "\n</" + tag + ">"
}

// Attribute returns an attribute for Frame, with a space before it.
func Attribute(name, value string) string {
	return " " + name + "=" + strconv.Quote(Escape(value))
}

// Escape returns foreign text, cleaned, in which no tag of a frame is left. To escape a result again changes nothing.
func Escape(text string) string {
	return frameTag.ReplaceAllString(Clean(text), "‹$1")
}

// Clean removes the characters with which a text can hide something from its reader: format characters such as
// zero-width spaces, directions and tags, controls, fillers, and most variation selectors. Joiners within words and emoji
// stay. Invalid UTF-8 is replaced.
func Clean(text string) string {
	if isClean(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	last := rune(-1) // the character before, without those that were removed
	next, at := rune(-1), -1
	for i, c := range text {
		switch {
		case c == utf8.RuneError: // or invalid UTF-8
		case joins(c):
			if at < i { // otherwise it is also the next one of this joiner
				next, at = after(text, i)
			}
			if !joinable(last) || !joinable(next) {
				continue
			}
		case c == textStyle || c == emojiStyle:
			if !unicode.In(last, unicode.So, unicode.Sm, unicode.Sk, unicode.Po) || last < utf8.RuneSelf {
				continue
			}
		case hides(c):
			continue
		}
		b.WriteRune(c)
		last = c
	}
	return b.String()
}

// isClean reports whether a text is of characters that all stay. It is quick for most texts.
func isClean(text string) bool {
	for _, c := range text {
		if c == utf8.RuneError || joins(c) || hides(c) {
			return false
		}
	}
	return true
}

const (
	nonJoiner  = 0x200c
	joiner     = 0x200d
	textStyle  = 0xfe0e // the character before it is shown as text
	emojiStyle = 0xfe0f // or as an emoji
)

func joins(c rune) bool { return c == joiner || c == nonJoiner }

// joinable reports whether a joiner next to the character can change how it is written: letters of scripts other than the
// Latin one, and emoji.
func joinable(c rune) bool {
	return c >= 0x0590 && unicode.In(c, unicode.Letter, unicode.Mark, unicode.So, unicode.Sk, unicode.Sm)
}

// after returns the first character of a text after a byte that is no joiner and is not removed, and where it is. Without
// one, it returns -1 and the length of the text.
func after(text string, from int) (c rune, at int) {
	for i, c := range text[from:] {
		if !joins(c) && !hides(c) {
			return c, from + i
		}
	}
	return -1, len(text)
}

// hides reports whether a character is not visible and hides what is next to it.
func hides(c rune) bool {
	switch {
	case c == '\t' || c == '\n' || c == '\r':
		return false
	case c < ' ':
		return true
	case c < 0x7f:
		return false
	case unicode.Is(unicode.Prepended_Concatenation_Mark, c): // visible signs of Arabic
		return false
	case unicode.In(c, unicode.Cc, unicode.Cf, unicode.Co, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point):
		return true
	}
	return c == '\u2028' || c == '\u2029' || c >= 0xfe00 && c <= 0xfe0f || c >= 0xe0000 && c <= 0xe0fff
}
