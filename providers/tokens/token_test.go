package tokens

import (
	"strings"
	"testing"
	"time"
)

func TestEstimateIsNearAndBounded(t *testing.T) {
	for text, want := range map[string]int{"": 0, "hello world": 2, "The quick brown fox jumps over the lazy dog.": 10} {
		if got := Estimate(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	sentence := "The quick brown fox jumps over the lazy dog. "
	if got, want := Estimate(strings.Repeat(sentence, 100_000)), 1_000_000; got < want*95/100 || got > want*105/100 {
		t.Errorf("a long text: %d, want about %d", got, want)
	}
	for _, hostile := range []string{strings.Repeat("a", 8<<20), strings.Repeat(" ", 8<<20), strings.Repeat("\x80", 1<<20), strings.Repeat("鳥", 1<<20)} {
		begin := time.Now()
		if got := Estimate(hostile); got <= 0 || got > len(hostile) {
			t.Errorf("%q…: %d", hostile[:8], got)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%q… took %s", hostile[:8], took)
		}
	}
}
