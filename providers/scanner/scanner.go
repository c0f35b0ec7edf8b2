// Package scanner says whether bytes are malware. It defines the scanner; signatures and clamd below implement it and
// scannertest holds both to one suite. A file is handed on only with a verdict that says clean.
package scanner

import (
	"context"
	"io"
)

// Scanner judges bytes. Safe for concurrent use.
type Scanner interface {
	// Scan reads body to its end and judges it. Anything but a definite judgement of all of it is an error and never a
	// verdict: protocol.CodeUnavailable when the scanner failed, protocol.CodeTooLarge when it takes no more bytes, the
	// body's own error when that failed. size is what is expected and sets how long it may take.
	Scan(ctx context.Context, body io.Reader, size int64) (Verdict, error)
	// Ready asks cheaply whether Scan would work with up-to-date signatures.
	Ready(ctx context.Context) error
	// Engine names the scanner for operators and for the verdict on a file.
	Engine() string
}

// Verdict is a definite judgement of all bytes of a body.
type Verdict struct {
	Clean     bool
	Signature string // what was found, by the engine's name; empty when clean
	Engine    string
}
