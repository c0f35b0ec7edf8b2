package scripted

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"turnstone/actors/llm"
	"turnstone/protocol/turnlog"
)

func TestAnAnswerQuotesAndCitesAFile(t *testing.T) {
	const files = "\n\n<file number=\"1\" name=\"a \\\"b\\\".txt\" type=\"text/plain\">\nNothing. [[script tokens=5]] here.\n</file>" +
		"\n\n<file number=\"2\" name=\"tides.pdf\" type=\"application/pdf\" pages=\"9\">\n[page 3]\nEbb.\n[page 4]\nThe spring tide rises by twelve metres. Then it falls.\n</file>"
	answer := func(messages ...llm.Message) string {
		var text strings.Builder
		err := New(Options{}).Stream(t.Context(), llm.Request{Messages: messages, MaxOutputTokens: 1000}, func(c llm.Chunk) error {
			text.WriteString(c.Text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	const quoted = "“tides.pdf” says: The spring tide rises by twelve metres [2:4]"
	if got := answer(llm.Message{Role: "user", Text: "How high is the spring tide?" + files}); got != quoted {
		t.Errorf("%q", got)
	}
	if got := answer(llm.Message{Role: "user", Text: "Look" + files}); !strings.HasPrefix(got, "I have read “a \\\"b\\\".txt” [1] and “tides.pdf” [2].") {
		t.Errorf("%q", got)
	}
	if got := answer(llm.Message{Role: "user", Text: "Look" + files}, llm.Message{Role: "assistant", Text: "Yes."}, llm.Message{Role: "user", Text: "And the spring tide?"}); got != quoted {
		t.Errorf("%q", got)
	}
	var tide bytes.Buffer
	if err := png.Encode(&tide, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	picture := llm.Message{
		Role: "user", Text: "What is this?\n\n<file number=\"1\" name=\"tide.png\" type=\"image/png\">\nThis file is picture 1 of this message.\n</file>",
		Pictures: []turnlog.Picture{turnlog.NewPicture(tide.Bytes())},
	}
	if got := answer(picture); got != "“tide.png”: A picture of 30 × 20 pixels (png)." {
		t.Errorf("%q", got)
	}
	if got := answer(llm.Message{Role: "user", Text: "Look" + files}, llm.Message{Role: "assistant", Text: "Yes."}, llm.Message{Role: "user", Text: "hello"}); !strings.HasPrefix(got, "Hello!") {
		t.Errorf("%q", got)
	}
}
