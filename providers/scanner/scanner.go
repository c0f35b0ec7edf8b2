// Package scanner defines the malware scanner. The subpackages signatures and clamd implement it, and scannertest is
// the test suite that both pass. A file is accepted only with a clean verdict.
package scanner

import (
	"context"
	"io"
	"slices"

	"turnstone/protocol"
)

// Scanner scans bytes for malware. It is safe for concurrent use.
type Scanner interface {
	// Scan reads body to its end and returns a verdict on all of it. Without a definite verdict it returns an error:
	// protocol.CodeUnavailable if the scanner failed, protocol.CodeTooLarge if body is larger than the scanner accepts,
	// or the error of body itself. size is the expected size of body; it determines the time limit.
	Scan(ctx context.Context, body io.Reader, size int64) (Verdict, error)
	// Ready checks cheaply whether Scan would work, with up-to-date signatures.
	Ready(ctx context.Context) error
	// Engine returns the name of the scanner, for operators and for the verdict on a file.
	Engine() string
}

// TestFile returns the text of the standard test file (EICAR), which every scanner must detect. It is stored reversed, so
// that malware scanners report neither this source file nor the binary.
func TestFile() []byte {
	text := []byte(`*H+H$!ELIF-TSET-SURIVITNA-DRADNATS-RACIE$}7)CC7)^P(45XZP\4[PA@%P!O5X`)
	slices.Reverse(text)
	return text
}

// Verdict is the definite result for all bytes of a body.
type Verdict = protocol.ScanVerdict
