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
		"a damaged line":            {a + "\n{bad}\n" + b, "a", 1},
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
