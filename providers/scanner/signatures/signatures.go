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

	"turnstone/providers/scanner"
)

const (
	engine = "test-signatures"
	// eicarName is what clamd calls it.
	eicarName = "Eicar-Test-Signature"
	chunk     = 64 << 10
)

// eicar is the test file's text. It stands here in two pieces so that scanners leave this source and the binary alone.
var eicar = []byte(`X5O!P%@AP[4\PZX54(P^)7CC)7}$` + "EICAR-STANDARD-ANTIVIRUS" + `-TEST-FILE!$H+H*`)

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
