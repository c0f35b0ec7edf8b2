package scannertest

import (
	"context"
	"io"

	"turnstone/providers/scanner"
	"turnstone/providers/scanner/signatures"
)

// Fake is signatures.Scanner with failures and pauses that a test chooses.
type Fake struct {
	signatures.Scanner
	NotReady error      // the result of Ready
	Results  chan error // a scan that has read its content waits for a value, which is its error; nil: a scan does not wait
}

var _ scanner.Scanner = (*Fake)(nil)

// Scan implements scanner.Scanner.
func (f *Fake) Scan(ctx context.Context, body io.Reader, size int64) (scanner.Verdict, error) {
	verdict, err := f.Scanner.Scan(ctx, body, size)
	if err != nil {
		return scanner.Verdict{}, err
	}
	if f.Results != nil {
		select {
		case err = <-f.Results:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return scanner.Verdict{}, err
	}
	return verdict, nil
}

// Ready implements scanner.Scanner.
func (f *Fake) Ready(context.Context) error { return f.NotReady }
