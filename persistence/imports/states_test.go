package imports

import (
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
)

func TestOpenImportsAreThoseOfTheTableOfStates(t *testing.T) {
	open := slices.DeleteFunc(slices.Clone(protocol.ImportStates), protocol.ImportState.Terminal)
	names := make([]string, len(open))
	for i, state := range open {
		names[i] = "'" + string(state) + "'"
	}
	if want := "state in (" + strings.Join(names, ", ") + ")"; openImports != want {
		t.Errorf("open imports are selected by %q, want %q", openImports, want)
	}
}
