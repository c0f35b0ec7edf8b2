package source

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"turnstone/protocol"
)

// encoded returns a text as UTF-16.
func encoded(order binary.AppendByteOrder, text string) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

func titled(id, title string) string {
	return `{"uuid":"` + id + `","name":"` + title + `","chat_messages":[` + message("m", "", `"Tides"`) + `]}`
}

func TestEveryValueOfAFileIsRead(t *testing.T) {
	a, b := titled("a", "One 😀"), titled("b", "Zwei é")
	both := a + "\n" + b
	long := `{"uuid":"l","chat_messages":[` + message("m", "", `"`+strings.Repeat("x", 3*peeked)+`"`) + `]}`
	for name, test := range map[string]struct {
		file     string
		ids      string
		problems int
	}{
		"values":                    {a + b, "a b", 0},
		"lines":                     {a + "\r\n\r\n" + b + "\r\n", "a b", 0},
		"arrays":                    {"[" + a + "]\n[" + b + "]", "a b", 0},
		"an array and a value":      {"[" + a + "] " + b, "a b", 0},
		"a mark":                    {"\xef\xbb\xbf" + both, "a b", 0},
		"UTF-16, a mark, little":    {"\xff\xfe" + encoded(binary.LittleEndian, both), "a b", 0},
		"UTF-16, a mark, big":       {"\xfe\xff" + encoded(binary.BigEndian, both), "a b", 0},
		"UTF-16, little":            {encoded(binary.LittleEndian, both), "a b", 0},
		"UTF-16, big":               {encoded(binary.BigEndian, both), "a b", 0},
		"half a character":          {"\xff\xfe" + encoded(binary.LittleEndian, both) + "x", "a b", 1},
		"other text at the end":     {a + "\nx", "a", 1},
		"a damaged line":            {a + "\n{bad}\n" + b, "a b", 1},
		"a damaged first line":      {"{bad}\n" + a + "\n" + b, "a b", 1},
		"a line that ends early":    {a[:len(a)-40] + "\n" + b + "\n" + a, "b a", 1},
		"a line with an open text":  {a + "\n{\"uuid\":\"c\n" + b, "a b", 1},
		"lines of other values":     {a + "\n5\n[]\nnull x\n" + b, "a b", 3},
		"two values in a line":      {a + "\n" + b + a + "\n", "a b a", 0},
		"a long damaged line":       {a + "\n{\"x\":\"" + strings.Repeat("x", 3*peeked) + "\n" + b, "a b", 1},
		"a long line":               {long + "\n{bad}\n" + b, "l b", 1},
		"values over several lines": {"{\n" + a[1:] + "\n{\n" + b[1:], "a b", 0},
		"a value of another kind":   {a + "\n5\n" + b, "a b", 1},
		"an array that ends early":  {a + "\n[" + b, "a b", 1},
		"nothing":                   {"", "", 1},
		"nothing but a mark":        {"\xef\xbb\xbf", "", 1},
		"nothing but a UTF-16 mark": {"\xff\xfe", "", 1},
	} {
		for kind, file := range map[string][]byte{"json": []byte(test.file), "zip": zipOf(t, "conversations.json", test.file)} {
			r := read(t, file)
			var ids []string
			for _, c := range r.conversations {
				ids = append(ids, c.ID)
				if want := map[string]string{"a": "One 😀", "b": "Zwei é"}[c.ID]; c.Title != want {
					t.Errorf("%s, %s: title %q", name, kind, c.Title)
				}
			}
			if got := strings.Join(ids, " "); got != test.ids || len(r.problems) != test.problems {
				t.Errorf("%s, %s: %q, %v", name, kind, got, r.problems)
			}
		}
	}
}

func TestTimesOfOtherProgramsAreRead(t *testing.T) {
	want := time.Date(2023, 11, 14, 22, 13, 20, 250e6, time.UTC)
	for _, at := range []string{
		`1700000000.25`, `1700000000250`, `1700000000250000`, `1700000000250000000`, `"1700000000.25"`, `"1700000000250"`,
		`"2023-11-14T22:13:20.25Z"`, `"2023-11-14T22:13:20.25"`, `"2023-11-14 22:13:20.25"`, `"2023-11-14 23:13:20.25+01:00"`,
		`"2023-11-14T23:13:20.25+0100"`, `" 2023-11-14 22:13:20.25 UTC "`,
	} {
		r := read(t, []byte(`{"uuid":"x","created_at":`+at+`,"chat_messages":[`+message("m", "", `"Tides"`)+`]}`))
		if got := r.conversations[0].CreatedAt; !got.Equal(want) {
			t.Errorf("%s: %v", at, got)
		}
	}
	for _, at := range []string{`1e300`, `-5`, `"NaN"`, `"Inf"`, `"soon"`, `{}`, `null`, `true`} {
		var w when
		_ = newDecoder(strings.NewReader(at), time.Time{}).value(&w)
		if !w.IsZero() {
			t.Errorf("%s: %v", at, w)
		}
	}
}

func TestAnArchivedConversationStaysArchived(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "false": false, "null": false, `"x"`: false} {
		r := read(t, []byte(`{"id":"x","title":"x","update_time":1700000300,"create_time":1700000000,"is_archived":`+value+`,
			"mapping":{"n":{"id":"n","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["Tides"]}}}}}`))
		c := r.conversations[0]
		if c.Kind != protocol.ImportFromChatGPT || c.ArchivedAt.IsZero() == want || want && !c.ArchivedAt.Equal(c.UpdatedAt) {
			t.Errorf("%s: %v", value, c.ArchivedAt)
		}
	}
}

func TestPartsThatAreLeftOutAreNoted(t *testing.T) {
	chatGPT := func(content string) string {
		return `{"id":"x","title":"x","mapping":{"n":{"id":"n","message":{"author":{"role":"user"},"content":` + content + `}}}}`
	}
	for file, want := range map[string]int{
		`{"uuid":"x","name":"x","chat_messages":[{"uuid":"m","sender":"assistant","content":[{"type":"tool_use"},{"type":"text","text":"a"},{"type":"tool_result"},{"type":"new"}]}]}`: 3,
		claudeOf(message("m", "", `"Tides"`)):                                                          0,
		chatGPT(`{"content_type":"tether_quote","text":"a page"}`):                                     1,
		chatGPT(`{"content_type":"user_editable_context","user_profile":"I sail."}`):                   1,
		chatGPT(`{"content_type":"multimodal_text","parts":["a",{"new":"thing"},7," ",{"text":"b"}]}`): 2,
	} {
		if got := read(t, []byte(file)).conversations[0].Notes[protocol.ImportPartsSkipped]; got != want {
			t.Errorf("%s: %d parts are noted, want %d", file, got, want)
		}
	}
}

// What is left out or changed has a line in the report.
func TestEveryLossHasALine(t *testing.T) {
	const texts = `"content":{"content_type":"text","parts":["Tides"]}`
	chatGPT := func(message string) string {
		return `{"id":"x","title":"x","mapping":{"n":{"id":"n","message":{` + message + `}},"o":{"id":"o","message":{"author":{"role":"user"},` + texts + `}}}}`
	}
	claude := func(members string) string { return `{"uuid":"x","name":"x",` + members + `}` }
	one := `"chat_messages":[` + message("m", "", `"Tides"`) + `]`
	for file, want := range map[string]protocol.ImportReason{
		claude(`"created_at":"yesterday",` + one): protocol.ImportTimesUnreadable,
		claude(`"created_at":{},` + one):          protocol.ImportTimesUnreadable,
		claude(`"chat_messages":[{"uuid":"m","sender":"human","text":"Tides","created_at":"soon"}]`):                        protocol.ImportTimesUnreadable,
		claude(`"chat_messages":[{"uuid":"m","sender":"judge","text":"Tides"},{"uuid":"o","sender":"human","text":"x"}]`):   protocol.ImportRolesUnknown,
		claude(`"chat_messages":[{"uuid":"m","sender":"human","text":["Tides"]},{"uuid":"o","sender":"human","text":"x"}]`): protocol.ImportUnreadable,
		chatGPT(`"author":{"role":"judge"},` + texts):                                                                       protocol.ImportRolesUnknown,
		chatGPT(texts): protocol.ImportRolesUnknown,
		chatGPT(`"author":{"role":"system"},` + texts):                                                                                                                protocol.ImportHiddenSkipped,
		chatGPT(`"author":{"role":"user"},"metadata":{"is_visually_hidden_from_conversation":true},` + texts):                                                         protocol.ImportHiddenSkipped,
		claude(`"chat_messages":[` + message("m", "", "\"T\xffides\"") + `]`):                                                                                         protocol.ImportTextChanged,
		claude(`"chat_messages":[` + message("m", "", `"T\ud83dides"`) + `]`):                                                                                         protocol.ImportTextChanged,
		claude(`"chat_messages":[` + message("m", "", `"T\udc00ides"`) + `]`):                                                                                         protocol.ImportTextChanged,
		claude(`"chat_messages":[` + message("m", "", "\"T\xe2\x82\"") + `]`):                                                                                         protocol.ImportTextChanged,
		"\xff\xfe" + encoded(binary.LittleEndian, `{"uuid":"x","chat_messages":[{"sender":"human","text":"T`) + "\x00\xd8" + encoded(binary.LittleEndian, `ides"}]}`): protocol.ImportTextChanged,
		`{"format":"turnstone.conversation","conversation":{"conversation_id":"c"},"messages":[{"message_id":"1","role":"judge"},{"message_id":"2","role":"user"}]}`:  protocol.ImportRolesUnknown,
	} {
		r := read(t, []byte(file))
		if len(r.conversations) != 1 || len(r.problems) != 0 || r.conversations[0].Notes[want] != 1 || len(r.conversations[0].Notes) != 1 {
			t.Errorf("%s: want %s, got %+v", file, want, r)
			for _, c := range r.conversations {
				t.Log(c.Notes)
			}
		}
	}
	for _, file := range []string{
		claude(`"created_at":null,"updated_at":0,` + one), chatGPT(`"author":{"role":"system"},"content":{"content_type":"text","parts":[""]}`),
		claude(`"chat_messages":[` + message("m", "", `"é 😀 \ud83d\ude00 \u00e9 �"`) + `]`),
	} {
		if c := read(t, []byte(file)).conversations[0]; len(c.Notes) != 0 {
			t.Errorf("%s: %v", file, c.Notes)
		}
	}
}
