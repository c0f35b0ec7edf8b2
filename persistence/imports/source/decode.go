package source

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"turnstone/protocol"
)

// lenient accepts what other programs write: text that is not UTF-8 and lone surrogates, which become U+FFFD, and
// repeated names. It also keeps the decoder from remembering all names of an object. A value of another type than expected
// is an error, but the members after it are still read.
var lenient = json.JoinOptions(
	jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true), jsonv1.ReportErrorsWithLegacySemantics(true),
)

// decoder reads the conversations of one JSON file.
type decoder struct {
	*jsontext.Decoder
	limit *limiter
	now   time.Time

	mismatches int // values that had another type than expected
}

func newDecoder(from io.Reader, now time.Time) *decoder {
	limit := newLimiter(from)
	return &decoder{Decoder: jsontext.NewDecoder(limit, lenient), limit: limit, now: now}
}

// each calls yield with every conversation of the file: the elements of an array, or the file itself. An error of the
// file is returned after the conversations before it; the one in which it occurred is passed on as far as it was read.
func (d *decoder) each(yield func(*Conversation) error) error {
	d.limit.next()
	if d.PeekKind() != '[' {
		return d.one(yield)
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.limit.next(); d.PeekKind() != ']'; d.limit.next() {
		if err := d.one(yield); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// yieldError is an error of the function that receives the conversations.
type yieldError struct{ error }

func (e yieldError) Unwrap() error { return e.error }

func (d *decoder) one(yield func(*Conversation) error) error {
	c := &Conversation{}
	cut, mismatches := d.limit.cut, d.mismatches
	damaged := d.conversation(c)
	c.note(protocol.ImportTextCut, d.limit.cut-cut)
	c.note(protocol.ImportUnreadable, d.mismatches-mismatches)
	if damaged != nil && len(c.Messages) == 0 {
		return damaged
	}
	if damaged != nil {
		c.note(protocol.ImportUnreadable, 1)
	}
	c.finish(d.now)
	if err := yield(c); err != nil {
		return yieldError{err}
	}
	return damaged
}

// members calls member with the name of each member of an object; member reads the value. A value that is not an object
// is skipped.
func (d *decoder) members(member func(name string) error) error {
	if d.PeekKind() != '{' {
		return d.skip()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for {
		d.limit.next()
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		if token.Kind() == '}' {
			return nil
		}
		if err := member(token.String()); err != nil {
			return err
		}
	}
}

// elements calls element for each element of an array; element reads it.
func (d *decoder) elements(element func() error) error {
	if d.PeekKind() != '[' {
		return d.skip()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for {
		d.limit.next()
		switch d.PeekKind() {
		case ']':
			_, err := d.ReadToken()
			return err
		case 0: // the text ends or is damaged
			_, err := d.ReadToken()
			return err
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// skip passes over a value of any size.
func (d *decoder) skip() error {
	depth := d.StackDepth()
	for {
		d.limit.next()
		if _, err := d.ReadToken(); err != nil || d.StackDepth() <= depth {
			return err
		}
	}
}

// value reads one value, of at most maxValue bytes, into v. What has another type than expected stays as it is.
func (d *decoder) value(v any) error {
	d.limit.next()
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	if json.Unmarshal(text, v, lenient) != nil {
		d.mismatches++
	}
	return nil
}

// conversation reads an object of any of the formats. Its members can be in any order.
func (d *decoder) conversation(c *Conversation) error {
	err := d.members(func(name string) error {
		switch name {
		case "mapping":
			c.Kind = protocol.ImportFromChatGPT
			return d.chatGPTNodes(c)
		case "chat_messages":
			c.Kind = protocol.ImportFromClaude
			return d.claudeMessages(c)
		case "format":
			var format text
			err := d.value(&format)
			if string(format) == protocol.ConversationExportFormat {
				c.Kind = protocol.ImportFromTurnstone
			}
			return err
		case "title", "name":
			return d.text(&c.Title)
		case "id", "conversation_id", "uuid":
			return d.text(&c.ID)
		case "current_node", "current_leaf_message_uuid":
			return d.text(&c.Active)
		case "create_time", "created_at":
			return d.time(&c.CreatedAt)
		case "update_time", "updated_at":
			return d.time(&c.UpdatedAt)
		}
		if c.Kind == "" || c.Kind == protocol.ImportFromTurnstone { // the format may be a later member
			return d.ownMember(c, name)
		}
		return d.skip()
	})
	if c.Kind == "" {
		c.Messages = nil
	}
	return err
}

func (d *decoder) text(to *string) error {
	var value text
	err := d.value(&value)
	if value != "" {
		*to = string(value)
	}
	return err
}

func (d *decoder) time(to *time.Time) error {
	var value when
	err := d.value(&value)
	*to = value.Time
	return err
}

// text is a string; another value is empty.
type text string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *text) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	value, err := from.ReadValue()
	if err == nil && value.Kind() == '"' {
		var s string
		if json.Unmarshal(value, &s, lenient) == nil {
			*t = text(s)
		}
	}
	return err
}

// when is a time, in seconds since 1970 or as in RFC 3339; another value is the zero time.
type when struct{ time.Time }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (w *when) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	value, err := from.ReadValue()
	if err != nil {
		return err
	}
	switch value.Kind() {
	case '0':
		const most = 1 << 40 // seconds; later times are no times
		var seconds float64
		if json.Unmarshal(value, &seconds) == nil && seconds > 0 && seconds < most {
			const micro = 1e6 // the precision of a float64 for these times
			w.Time = time.UnixMicro(int64(seconds * micro)).UTC()
		}
	case '"':
		var s string
		if json.Unmarshal(value, &s, lenient) == nil {
			if at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(s)); err == nil {
				w.Time = at.UTC()
			}
		}
	}
	return nil
}

// yielded returns the error of the receiving function if that is what ended the reading; nil otherwise.
func yielded(err error) error {
	var failed yieldError
	if errors.As(err, &failed) {
		return failed.error
	}
	return nil
}
