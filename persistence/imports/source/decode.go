package source

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"turnstone/protocol"
	"turnstone/protocol/clip"
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

	assets *assets // nil: the file is not in an archive

	mismatches int // values that had another type than expected
	times      int // that could not be read
	options    json.Options

	// What was noted of limit.cut and limit.replaced.
	notedCut, notedReplaced int

	copied bytes.Buffer // the last value
	to     *jsontext.Encoder
}

func newDecoder(from io.Reader, now time.Time) *decoder {
	limit := newLimiter(from)
	d := &decoder{Decoder: jsontext.NewDecoder(limit, lenient), limit: limit, now: now, to: &jsontext.Encoder{}}
	d.options = json.JoinOptions(lenient, json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(d.readTime), json.UnmarshalFromFunc(d.readText))))
	return d
}

// each calls yield with every conversation of the file, which has one JSON value or several, as a file of JSON lines has. An
// error of the file is returned after the conversations before it; the one in which it occurred is passed on as far as it
// was read. In a file of lines, an error ends its line only, and is passed to damaged.
func (d *decoder) each(yield func(*Conversation) error, damaged func(error) error) error {
	d.limit.findLines()
	for {
		err := d.eachOfText(yield)
		if !d.limit.lines.is || yielded(err) != nil {
			return err
		}
		if err != nil {
			if err := damaged(err); err != nil {
				return yieldError{err}
			}
		}
		if more, err := d.limit.nextLine(); !more {
			return err
		}
		d.Reset(d.limit, lenient)
	}
}

// eachOfText calls yield with the conversations of all values up to the end of the file, or of the line.
func (d *decoder) eachOfText(yield func(*Conversation) error) error {
	for {
		if !d.limit.lines.is || d.PeekKind() != 0 {
			if err := d.eachOfValue(yield); err != nil {
				return err
			}
		}
		if !d.limit.lines.is {
			if d.limit.continueInLines(d.UnreadBuffer()); d.limit.lines.is {
				return nil
			}
		}
		if d.PeekKind() != 0 {
			continue
		}
		if _, err := d.ReadToken(); !errors.Is(err, io.EOF) { // what follows is damaged
			return err
		}
		return nil
	}
}

// eachOfValue calls yield with the conversations of one JSON value: the elements of an array, or the value itself.
func (d *decoder) eachOfValue(yield func(*Conversation) error) error {
	if d.PeekKind() != '[' {
		return d.one(yield)
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
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
	mismatches, times := d.mismatches, d.times
	damaged := d.conversation(c)
	if damaged != nil && len(c.Messages) == 0 {
		return damaged
	}
	cut, replaced := d.changed()
	c.note(protocol.ImportTextCut, cut)
	c.note(protocol.ImportTextChanged, replaced)
	c.note(protocol.ImportUnreadable, d.mismatches-mismatches)
	c.note(protocol.ImportTimesUnreadable, d.times-times)
	if damaged != nil {
		c.note(protocol.ImportUnreadable, 1)
	}
	c.finish(d.now)
	if err := yield(c); err != nil {
		return yieldError{err}
	}
	return damaged
}

// changed returns how many texts were cut and how many characters were replaced since it was last called.
func (d *decoder) changed() (cut, replaced int) {
	cut, replaced = d.limit.cut-d.notedCut, d.limit.replaced-d.notedReplaced
	d.notedCut, d.notedReplaced = d.limit.cut, d.limit.replaced
	return cut, replaced
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
		if _, err := d.ReadToken(); err != nil || d.StackDepth() <= depth {
			return err
		}
	}
}

// value reads one value into v, as far as the limits allow. What has another type than expected stays as it is.
func (d *decoder) value(v any) error {
	d.copied.Reset()
	d.to.Reset(&d.copied, lenient)
	c := copying{decoder: d}
	if err := c.value(); err != nil {
		return err
	}
	if json.Unmarshal(d.copied.Bytes(), v, d.options) != nil {
		d.mismatches++
	}
	return nil
}

// readTime reads a time, and counts one that cannot be read.
func (d *decoder) readTime(from *jsontext.Decoder, to *when) error {
	err := to.UnmarshalJSONFrom(from)
	if to.unreadable {
		d.times++
	}
	return err
}

// readText reads a text, and counts a value of another type. Identifiers can be numbers.
func (d *decoder) readText(from *jsontext.Decoder, to *text) error {
	switch from.PeekKind() {
	case 'n', '"', '0':
	default:
		d.mismatches++
	}
	return to.UnmarshalJSONFrom(from)
}

// copying copies one value up to maxValue bytes and maxValues values: the memory that is needed for millions of small
// values is a hundred times that of their text.
type copying struct {
	*decoder
	values int
	full   bool
}

func (c *copying) value() error {
	kind := c.PeekKind()
	if kind != '{' && kind != '[' {
		return c.token()
	}
	if err := c.token(); err != nil {
		return err
	}
	for {
		switch c.PeekKind() {
		case '}', ']', 0: // 0: the text ends or is damaged
			return c.token()
		}
		if err := c.element(kind == '{'); err != nil {
			return err
		}
	}
}

// element copies the next element of an array or member of an object, or skips it when a limit is reached.
func (c *copying) element(member bool) error {
	if c.values++; !c.full && (c.values > maxValues || c.to.OutputOffset() > maxValue) {
		c.full = true
		c.limit.cut++
	}
	if c.full {
		if member {
			if _, err := c.ReadToken(); err != nil {
				return err
			}
		}
		return c.skip()
	}
	if member {
		if err := c.token(); err != nil {
			return err
		}
	}
	return c.value()
}

func (c *copying) token() error {
	token, err := c.ReadToken()
	if err != nil {
		return err
	}
	return c.to.WriteToken(token)
}

// conversation reads an object of any of the formats. Its members can be in any order.
func (d *decoder) conversation(c *Conversation) error {
	err := d.members(func(name string) error {
		if is, err := d.messagesMember(c, name); is || err != nil {
			return err
		}
		if is, err := d.headMember(c, name); is || err != nil {
			return err
		}
		if is, err := d.extra(c, name); is || err != nil {
			return err
		}
		if is, err := d.activityMember(&c.activity, name); c.Kind == "" && (is || err != nil) {
			return err
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

// messagesMember reads a member that has messages, whose name says of which format they are. is is false for another member.
func (d *decoder) messagesMember(c *Conversation, name string) (is bool, err error) {
	switch name {
	case "mapping":
		if c.Kind != protocol.ImportFromDeepSeek {
			c.Kind = protocol.ImportFromChatGPT
		}
		return true, d.chatGPTNodes(c)
	case "chat_messages":
		c.Kind = protocol.ImportFromClaude
		return true, d.claudeMessages(c)
	case "chat":
		return true, d.openChat(c)
	case "history":
		return true, d.openHistory(c)
	case "messagesTree":
		c.Kind = protocol.ImportFromLibreChat
		return true, d.anyMessages(c)
	case "messages":
		switch c.Kind {
		case protocol.ImportFromTurnstone:
			return true, d.ownMessages(c)
		case "", protocol.ImportFromLibreChat:
			return true, d.anyMessages(c)
		}
		return true, d.skip()
	}
	return false, nil
}

// headMember reads a member that describes the conversation. is is false for another member.
func (d *decoder) headMember(c *Conversation, name string) (is bool, err error) {
	switch name {
	case "format":
		var format text
		err := d.value(&format)
		if string(format) == protocol.ConversationExportFormat {
			c.Kind = protocol.ImportFromTurnstone
		}
		return true, err
	case "title", "name":
		return true, d.text(&c.Title)
	case "id", "conversation_id", "uuid":
		return true, d.text(&c.ID)
	case "conversationId":
		c.Kind = protocol.ImportFromLibreChat
		return true, d.text(&c.ID)
	case "current_node", "current_leaf_message_uuid":
		return true, d.text(&c.Active)
	case "create_time", "created_at":
		return true, d.time(&c.CreatedAt)
	case "inserted_at":
		c.Kind = protocol.ImportFromDeepSeek
		return true, d.time(&c.CreatedAt)
	case "update_time", "updated_at":
		return true, d.time(&c.UpdatedAt)
	case "project":
		var project struct {
			ID text `json:"uuid"`
		}
		err := d.value(&project)
		if project.ID != "" {
			c.ProjectID = claudeProject(firstBytes(string(project.ID), maxID))
		}
		return true, err
	case "pinned":
		return true, d.flag(&c.pinned)
	case "is_archived", "archived":
		return true, d.flag(&c.archived)
	}
	return false, nil
}

// flag reads whether a value is true.
func (d *decoder) flag(to *bool) error {
	var value jsontext.Value
	err := d.value(&value)
	*to = value.Kind() == 't'
	return err
}

func (d *decoder) text(to *string) error {
	var value text
	err := d.value(&value)
	if value != "" {
		const most = 64 << 10 // more than any of these fields may have
		*to = clip.Bytes(string(value), most)
	}
	return err
}

func (d *decoder) time(to *time.Time) error {
	var value when
	err := d.value(&value)
	*to = value.Time
	return err
}

// text is a string, or the digits of a number; another value is empty.
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
	if err == nil && value.Kind() == '0' {
		*t = text(value)
	}
	return err
}

// yielded returns the error of the receiving function if that is what ended the reading; nil otherwise.
func yielded(err error) error {
	var failed yieldError
	if errors.As(err, &failed) {
		return failed.error
	}
	return nil
}
