// Package lenient reads the JSON of wire formats as real servers send it: members are left out, renamed or have another type.
// It knows no format.
package lenient

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decode decodes an object of a wire format into value. Members that have another type than the field of value are
// skipped, because servers leave out, rename and retype members. The error is that of text that is not JSON.
func Decode(data []byte, value any) error {
	err := json.Unmarshal(data, value)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return nil
	}
	return err // the callers name the format
}

// Text is a member that contains text: a string, a number, or a list of parts with a text. Any other value is empty.
// It may contain halves of characters, which the Call joins with the halves in the next piece.
type Text string

// UnmarshalJSON implements json.Unmarshaler. It returns no error.
func (t *Text) UnmarshalJSON(raw []byte) error {
	switch {
	case raw[0] == '"':
		*t = Text(unquote(raw[1 : len(raw)-1]))
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		*t = Text(raw)
	case raw[0] == '[' || raw[0] == '{':
		var read contentReader
		read.value(raw, 0)
		*t = Text(read.text.String())
	}
	return nil
}

// Content is the content of an answer: a text, or a list of parts, some of which may be reasoning.
type Content struct {
	Text      string
	Reasoning string
}

// UnmarshalJSON implements json.Unmarshaler. It returns no error.
func (c *Content) UnmarshalJSON(raw []byte) error {
	var read contentReader
	read.value(raw, 0)
	c.Text += read.text.String()
	c.Reasoning += read.reasoning.String()
	return nil
}

// maxContentDepth limits the nesting of lists and parts of content. What is deeper is not read.
const maxContentDepth = 8

// contentReader collects the texts of a content. The zero value is ready to use.
type contentReader struct {
	text, reasoning strings.Builder
	thinks          bool // all of it is reasoning
}

func (r *contentReader) value(raw []byte, depth int) {
	if depth > maxContentDepth || len(raw) == 0 {
		return
	}
	switch raw[0] {
	case '[':
		var parts []json.RawMessage
		_ = json.Unmarshal(raw, &parts)
		for _, part := range parts {
			r.value(part, depth+1)
		}
	case '{':
		r.part(raw, depth)
	case '"':
		r.write(unquote(raw[1 : len(raw)-1]))
	}
}

func (r *contentReader) part(raw []byte, depth int) {
	var part struct {
		Type      json.RawMessage `json:"type"`
		Text      json.RawMessage `json:"text"`
		Thinking  json.RawMessage `json:"thinking"`
		Reasoning json.RawMessage `json:"reasoning"`
		Refusal   json.RawMessage `json:"refusal"`
	}
	_ = Decode(raw, &part)
	outer := r.thinks
	r.thinks = true
	r.value(part.Thinking, depth+1)
	r.value(part.Reasoning, depth+1)
	switch string(part.Type) {
	case `"thinking"`, `"reasoning"`, `"reasoning_text"`:
	default:
		r.thinks = outer
	}
	r.value(part.Text, depth+1)
	r.thinks = outer
	r.value(part.Refusal, depth+1)
}

func (r *contentReader) write(text []byte) {
	if r.thinks {
		_, _ = r.reasoning.Write(text)
	} else {
		_, _ = r.text.Write(text)
	}
}

// Count is a number of tokens, or an index: a number, or a string that contains one. Any other value is -1.
type Count int

// MaxCount is the largest plausible number of tokens in one call. A larger one is not used.
const MaxCount = 10_000_000

// UnmarshalJSON implements json.Unmarshaler. It returns no error.
func (c *Count) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	number, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || math.IsNaN(number) || number < 0 || number > MaxCount {
		number = -1
	}
	*c = Count(number)
	return nil
}

// Raw is a member that is used as it is. Null and empty values are the zero Raw.
type Raw json.RawMessage

// UnmarshalJSON implements json.Unmarshaler. It returns no error.
func (r *Raw) UnmarshalJSON(raw []byte) error {
	switch string(raw) {
	case "null", `""`, "{}", "[]", "false", "0":
		*r = nil
	default:
		*r = bytes.Clone(raw)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// unquote decodes the content of a valid JSON string. It encodes a half of a surrogate pair in three bytes, as UTF-8
// would, and keeps bytes that are not UTF-8.
func unquote(raw []byte) []byte {
	text := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		plain := bytes.IndexByte(raw, '\\')
		if plain < 0 {
			return append(text, raw...)
		}
		text = append(text, raw[:plain]...)
		raw = raw[plain:]
		var n int
		if text, n = appendEscape(text, raw); n == 0 && len(raw) >= 6 {
			half, _ := hex4(raw[2:])
			text = append(text, 0xE0|byte(half>>12), 0x80|byte(half>>6)&0xBF, 0x80|byte(half)&0xBF)
			n = 6
		}
		raw = raw[min(len(raw), max(n, 1)):]
	}
	return text
}

// Settle makes text valid UTF-8. It joins the halves of characters. A half at the end is held, unless the text is the
// last; other invalid bytes are replaced.
func Settle(text []byte, last bool) (settled string, held []byte) {
	if utf8.Valid(text) {
		return string(text), nil
	}
	var valid []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch high, low := halfOf(text), halfOf(text[min(3, len(text)):]); {
		case r != utf8.RuneError || size > 1:
		case high>>10 == 0xD800>>10 && low>>10 == 0xDC00>>10:
			r, size = (high-0xD800)<<10+(low-0xDC00)+0x10000, 6
		case !last && (high>>10 == 0xD800>>10 && couldBeLow(text[3:]) || !utf8.FullRune(text) || couldBeHalf(text)):
			return string(valid), text
		case high != 0:
			size = 3
		}
		valid = utf8.AppendRune(valid, r)
		text = text[size:]
	}
	return string(valid), nil
}

// halfOf returns the half of a surrogate pair at the start of text, or 0.
func halfOf(text []byte) rune {
	if len(text) < 3 || text[0] != 0xED || text[1] < 0xA0 || text[1] > 0xBF || text[2]&0xC0 != 0x80 {
		return 0
	}
	return 0xD000 | rune(text[1]&0x3F)<<6 | rune(text[2]&0x3F)
}

func couldBeHalf(text []byte) bool { return len(text) == 2 && text[0] == 0xED && text[1] >= 0xA0 }

func couldBeLow(text []byte) bool {
	return len(text) == 0 || len(text) < 3 && text[0] == 0xED && (len(text) == 1 || text[1] >= 0xB0)
}
