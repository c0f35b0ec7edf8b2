package turns

import (
	"encoding/json"
	"strings"
	"testing"
	"unsafe"

	"turnstone/protocol"
)

// An account can import messages of many small parts, of which the lists take most of the memory.
func TestTheMemoryOfAMessageOfManyPartsIsCounted(t *testing.T) {
	many := func(one string) string { return "[" + strings.Repeat(one+",", 999) + one + "]" }
	for name, parts := range map[string]string{
		"parts":     many(`{"type":"text","part_id":"part_01m8mn8tt1eh9rymrne667p36x","text":"x"}`),
		"citations": `[{"type":"text","text":"x","citations":` + many(`{"index":0,"title":""}`) + `}]`,
		"sources":   `[{"type":"tool","sources":` + many(`{"number":0,"title":"","size":0}`) + `}]`,
	} {
		row := historyRow{bytes: len(parts)}
		if err := json.Unmarshal([]byte(parts), &row.Parts); err != nil {
			t.Fatal(err)
		}
		least := cap(row.Parts) * int(unsafe.Sizeof(protocol.Part{}))
		for _, part := range row.Parts {
			least += cap(part.Citations)*int(unsafe.Sizeof(protocol.Citation{})) + cap(part.Sources)*int(unsafe.Sizeof(protocol.Source{}))
		}
		if got := row.memory(); got < least || got > 3*least {
			t.Errorf("%s: a message of at least %d bytes counts as %d", name, least, got)
		}
	}
}
