package signatures_test

import (
	"strings"
	"testing"

	"turnstone/providers/scanner/scannertest"
	"turnstone/providers/scanner/signatures"
)

func TestSignaturesIsAScanner(t *testing.T) { scannertest.Run(t, signatures.Scanner{}) }

func TestTheEngineNameShowsThatItIsForTests(t *testing.T) {
	if name := (signatures.Scanner{}).Engine(); !strings.Contains(name, "test") {
		t.Errorf("the name %q does not show that it is for tests", name)
	}
}

// The signature may span two chunks, with any number of its bytes in the first one.
func TestASignatureAcrossTwoChunksIsFound(t *testing.T) {
	for before := 64<<10 - 100; before <= 64<<10+200; before++ {
		body := strings.Repeat("x", before) + scannertest.EICAR
		verdict, err := signatures.Scanner{}.Scan(t.Context(), strings.NewReader(body), int64(len(body)))
		if err != nil || verdict.Clean {
			t.Fatalf("after %d bytes: %+v, %v", before, verdict, err)
		}
	}
}
