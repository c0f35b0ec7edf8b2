package signatures_test

import (
	"strings"
	"testing"

	"turnstone/providers/scanner/scannertest"
	"turnstone/providers/scanner/signatures"
)

func TestSignaturesIsAScanner(t *testing.T) { scannertest.Run(t, signatures.Scanner{}) }

func TestItSaysWhatItIs(t *testing.T) {
	if name := (signatures.Scanner{}).Engine(); !strings.Contains(name, "test") {
		t.Errorf("%q sounds like protection", name)
	}
}

// The signature may lie across the pieces that are looked at, wherever their border is.
func TestASignatureAcrossTwoChunksIsFound(t *testing.T) {
	for before := 64<<10 - 100; before <= 64<<10+200; before++ {
		body := strings.Repeat("x", before) + scannertest.EICAR
		verdict, err := signatures.Scanner{}.Scan(t.Context(), strings.NewReader(body), int64(len(body)))
		if err != nil || verdict.Clean {
			t.Fatalf("after %d bytes: %+v, %v", before, verdict, err)
		}
	}
}
