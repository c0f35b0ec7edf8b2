// Package signatures is the scanner of a machine that has none: it finds the industry's test file (EICAR) and says of
// everything else only that it is not that. Its name tells so wherever a verdict is shown. It keeps the way through
// scanning the same everywhere, and protects from nothing.
package signatures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"turnstone/providers/scanner"
)

const (
	engine = "test-signatures"
	// eicarName is what clamd calls it.
	eicarName = "Eicar-Test-Signature"
	chunk     = 64 << 10
)

// eicar is the text of the test file. It is stored reversed, so that scanners find it neither in this source nor in the
// binary.
var eicar = reversed(`*H+H$!ELIF-TSET-SURIVITNA-DRADNATS-RACIE$}7)CC7)^P(45XZP\4[PA@%P!O5X`)

func reversed(text string) []byte {
	b := []byte(text)
	slices.Reverse(b)
	return b
}

// Scanner finds test signatures.
type Scanner struct{}

var _ scanner.Scanner = Scanner{}

// Scan implements scanner.Scanner. It keeps only the end of a chunk, in case a signature lies across two.
func (Scanner) Scan(ctx context.Context, body io.Reader, _ int64) (scanner.Verdict, error) {
	verdict := scanner.Verdict{Clean: true, Engine: engine}
	window := make([]byte, 0, chunk+len(eicar))
	for {
		if err := ctx.Err(); err != nil {
			return scanner.Verdict{}, err
		}
		n, err := body.Read(window[len(window):cap(window)])
		window = window[:len(window)+n]
		if bytes.Contains(window, eicar) {
			verdict = scanner.Verdict{Signature: eicarName, Engine: engine}
		}
		if errors.Is(err, io.EOF) {
			return verdict, nil
		}
		if err != nil {
			return scanner.Verdict{}, fmt.Errorf("reading what is to be scanned: %w", err)
		}
		if keep := len(eicar) - 1; len(window) > keep {
			window = window[:copy(window, window[len(window)-keep:])]
		}
	}
}

// Ready implements scanner.Scanner.
func (Scanner) Ready(context.Context) error { return nil }

// Engine implements scanner.Scanner.
func (Scanner) Engine() string { return engine }
