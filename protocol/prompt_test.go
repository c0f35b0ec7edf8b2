package protocol

import (
	"strings"
	"testing"
)

func TestANameOfAPromptCanBeTyped(t *testing.T) {
	for text, want := range map[string]string{
		"greet": "greet", "Code-Review_2": "Code-Review_2", "要約": "要約", "تلخيص": "تلخيص", "सारांश": "सारांश", "2nd": "2nd",
		"gru\u0308n":                       "grün", // composed
		strings.Repeat("ü", MaxPromptName): strings.Repeat("ü", MaxPromptName),
	} {
		if name, valid := PromptName(text); !valid || name != want {
			t.Errorf("%q becomes %q, %t", text, name, valid)
		}
	}
	for _, text := range []string{"", " ", "two words", "-first", "_first", "usr/bin", "a.b", "a\u200bb", "a\x00", "\u0301a", "🌊", "{{a}}", strings.Repeat("a", MaxPromptName+1)} {
		if name, valid := PromptName(text); valid {
			t.Errorf("%q is a name: %q", text, name)
		}
	}
}
