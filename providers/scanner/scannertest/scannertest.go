// Package scannertest is the test suite that every scanner must pass. Only tests import it.
package scannertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"turnstone/providers/scanner"
)

// EICAR is the test file that every scanner must detect.
var EICAR = `X5O!P%@AP[4\PZX54(P^)7CC)7}$` + "EICAR-STANDARD-ANTIVIRUS" + `-TEST-FILE!$H+H*`

// Run checks that a scanner meets the contract of scanner.Scanner.
func Run(t *testing.T, s scanner.Scanner) {
	t.Run("content without malware is clean", func(t *testing.T) {
		for _, body := range []string{"", "plain text", strings.Repeat("long ", 100_000)} {
			verdict, err := s.Scan(t.Context(), strings.NewReader(body), int64(len(body)))
			if err != nil || verdict != (scanner.Verdict{Clean: true, Engine: s.Engine()}) {
				t.Errorf("%d bytes: %+v, %v", len(body), verdict, err)
			}
		}
	})
	t.Run("the test file is found in any division into reads", func(t *testing.T) {
		for name, body := range map[string]io.Reader{
			"whole":                    strings.NewReader(EICAR),
			"byte by byte":             iotest.OneByteReader(strings.NewReader(EICAR)),
			"late":                     strings.NewReader(strings.Repeat("x", 3<<20) + EICAR + "tail"),
			"with the end in one read": iotest.DataErrReader(strings.NewReader(EICAR)),
		} {
			verdict, err := s.Scan(t.Context(), body, 3<<20)
			if err != nil || verdict.Clean || verdict.Signature == "" || verdict.Engine != s.Engine() {
				t.Errorf("%s: %+v, %v", name, verdict, err)
			}
		}
	})
	t.Run("a body that fails has no verdict", func(t *testing.T) {
		broken := errors.New("the client has disconnected")
		body := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(broken))
		verdict, err := s.Scan(t.Context(), body, 2<<20)
		if !errors.Is(err, broken) || verdict != (scanner.Verdict{}) {
			t.Errorf("%+v, %v", verdict, err)
		}
	})
	t.Run("a cancelled scan has no verdict", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		verdict, err := s.Scan(ctx, strings.NewReader("x"), 1)
		if !errors.Is(err, context.Canceled) || verdict != (scanner.Verdict{}) {
			t.Errorf("%+v, %v", verdict, err)
		}
	})
	t.Run("the scanner is ready and has a name", func(t *testing.T) {
		if err := s.Ready(t.Context()); err != nil || s.Engine() == "" {
			t.Errorf("%q: %v", s.Engine(), err)
		}
	})
}
