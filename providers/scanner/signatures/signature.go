// Package signatures is the scanner for host computers without a malware scanner. It detects only the standard test file
// (EICAR) and reports everything else as clean. The name of its engine shows this in every verdict. With this package,
// files are scanned everywhere. It does not protect from malware.
package signatures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"turnstone/protocol"
	"turnstone/providers/scanner"
)

const (
	engine = "test-signatures"
	// eicarName is clamd's name for the test file.
	eicarName = "Eicar-Test-Signature"
	chunk     = 64 << 10
)

var eicar = scanner.TestFile()

// Scanner detects the test file.
type Scanner struct{}

var _ scanner.Scanner = Scanner{}

// Scan implements scanner.Scanner. It keeps only the end of a chunk, in case the signature spans two chunks.
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
			verdict = scanner.Verdict{Signature: eicarName, Refusal: protocol.UploadMalware, Engine: engine}
		}
		if errors.Is(err, io.EOF) {
			return verdict, nil
		}
		if err != nil {
			return scanner.Verdict{}, fmt.Errorf("reading the body to be scanned: %w", err)
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
