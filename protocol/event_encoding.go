package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// TimeFormat is the only time format on the wire: RFC 3339 in UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Millis returns a time as TimeFormat shows it: in UTC, truncated to milliseconds.
func Millis(at time.Time) time.Time { return at.UTC().Truncate(time.Millisecond) }

// eventSize is about the size of an encoded event, in bytes.
const eventSize = 256

// AppendEvents appends the encodings of events with consecutive sequences, the first of which is first, one per line.
func AppendEvents(b []byte, turn TurnID, first int64, at time.Time, events []Payload) ([]byte, error) {
	b = slices.Grow(b, eventSize*len(events))
	for i, payload := range events {
		var err error
		if b, err = AppendEvent(b, turn, first+int64(i), at, payload); err != nil {
			return nil, err
		}
		b = append(b, '\n')
	}
	return b, nil
}

// AppendEvent appends the encoding of an event: a JSON object on one line. An event is encoded once, at commit. The
// log, other nodes and every reader get these bytes.
func AppendEvent(b []byte, turn TurnID, sequence int64, at time.Time, payload Payload) ([]byte, error) {
	b = append(b, `{"protocol_version":1,"turn_id":"`...)
	b = turn.AppendText(b)
	b = appendHead(b, sequence, at, payload)
	if delta, ok := payload.(*AnswerDelta); ok { // most events of a turn are deltas: encode them without reflection
		b = append(b, `,"part_id":"`...)
		b = delta.PartID.AppendText(b)
		b = append(b, `","offset":`...)
		b = strconv.AppendInt(b, int64(delta.Offset), 10)
		b = append(b, `,"delta":`...)
		b = appendJSONString(b, delta.Delta)
		if delta.Obfuscation != "" {
			b = append(b, `,"obfuscation":`...)
			b = appendJSONString(b, delta.Obfuscation)
		}
		return append(b, '}'), nil
	}
	return appendPayload(b, payload)
}

// appendEventsOf is AppendEvents for the events of other work: field is the name of its identifier in the envelope.
func appendEventsOf(b []byte, field, id string, first int64, at time.Time, events []Payload) ([]byte, error) {
	for i, payload := range events {
		b = append(append(append(b, `{"protocol_version":1,"`...), field...), `":"`...)
		b = appendHead(append(b, id...), first+int64(i), at, payload)
		var err error
		if b, err = appendPayload(b, payload); err != nil {
			return nil, err
		}
		b = append(b, '\n')
	}
	return b, nil
}

// appendHead appends the fields of an envelope that follow the identifier.
func appendHead(b []byte, sequence int64, at time.Time, payload Payload) []byte {
	b = append(b, `","sequence":`...)
	b = strconv.AppendInt(b, sequence, 10)
	b = append(b, `,"type":"`...)
	b = append(b, payload.EventType()...)
	b = append(b, `","at":"`...)
	b = at.UTC().AppendFormat(b, TimeFormat)
	return append(b, '"')
}

// appendPayload appends the fields of a payload and the end of the event.
func appendPayload(b []byte, payload Payload) ([]byte, error) {
	body, err := marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", payload.EventType(), err)
	}
	if len(body) > 2 { // not {}
		b = append(b, ',')
		b = append(b, body[1:len(body)-1]...)
	}
	return append(b, '}'), nil
}

// MarshalJSON writes the time of the message in TimeFormat. encoding/json alone would keep its time zone and drop
// trailing zeros.
func (s *TurnSnapshot) MarshalJSON() ([]byte, error) {
	type message Message
	type timed struct {
		message
		CreatedAt string `json:"created_at"`
	}
	return marshal(struct {
		CoversSequence int64 `json:"covers_sequence"`
		Message        timed `json:"message"`
	}{s.CoversSequence, timed{message(s.Message), s.Message.CreatedAt.UTC().Format(TimeFormat)}})
}

// marshal encodes like encoding/json, without HTML escaping: event bytes are never inserted into HTML.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

const hexDigits = "0123456789abcdef"

// appendJSONString writes text as marshal does: control characters, quotes, backslashes, U+2028 and U+2029 are escaped,
// invalid UTF-8 becomes U+FFFD. A test checks that both write the same bytes.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < 0x7f && c != '"' && c != '\\' || c == 0x7f {
			i++
			continue
		}
		if c >= 0x80 {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError && r != '\u2028' && r != '\u2029' || r == utf8.RuneError && size > 1 {
				i += size
				continue
			}
			b = append(b, s[start:i]...)
			switch r {
			case '\u2028', '\u2029':
				b = append(b, `\u202`...)
				b = append(b, hexDigits[r&0xf])
			default:
				b = append(b, `\ufffd`...)
			}
			i += size
			start = i
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// DecodeEvent decodes an event. For a type that this version does not know, both the payload and the error are nil:
// readers ignore unknown types.
func DecodeEvent(frame []byte) (Envelope, Payload, error) {
	var envelope Envelope
	if err := json.Unmarshal(frame, &envelope); err != nil {
		return envelope, nil, fmt.Errorf("decoding an event: %w", err)
	}
	payload := NewPayload(envelope.Type)
	if payload == nil {
		return envelope, nil, nil
	}
	if err := json.Unmarshal(frame, payload); err != nil {
		return envelope, nil, fmt.Errorf("decoding %s: %w", envelope.Type, err)
	}
	return envelope, payload, nil
}

var payloads = func() map[EventType]func() Payload {
	all := map[EventType]func() Payload{SnapshotSpec.Type: SnapshotSpec.New}
	for _, spec := range slices.Concat(Events, UploadEvents, ResearchEvents) {
		all[spec.Type] = spec.New
	}
	return all
}()

// NewPayload returns an empty payload of a type; nil when the type is unknown.
func NewPayload(t EventType) Payload {
	if create := payloads[t]; create != nil {
		return create()
	}
	return nil
}
