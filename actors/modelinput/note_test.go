package modelinput

import (
	"strings"
	"testing"

	"turnstone/protocol"
)

func TestWhatWasLeftOutOfAFileIsSaidToTheModel(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range protocol.NoteKinds {
		said := notes([]protocol.TextNote{{Kind: kind, Value: "Big5", Count: 7}})
		if said == "" || seen[said] || strings.Contains(said, sentence(protocol.TextNote{})) {
			t.Errorf("%s: %q", kind, said)
		}
		seen[said] = true
	}
	if said := notes(nil); said != "" {
		t.Errorf("nothing was left out: %q", said)
	}
}

func TestWhyAFileHasNoTextIsSaidToTheModel(t *testing.T) {
	for reason := range causes {
		if CauseOf(reason) == CauseOf("") {
			t.Errorf("%s", reason)
		}
	}
}
