package words

import (
	"strings"
	"testing"
)

func BenchmarkTokenize(b *testing.B) {
	text := []byte(strings.Repeat("The tide comes in twice a day, at about the same hour as on the day before; see HttpServer.start(x) in C++ and Größe 12. ", 1000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		t := Tokenizer{Wants: func([]byte) bool { return false }}
		t.Feed(text)
		t.End()
	}
}
