package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheCommandLineSaysWhatIsWrong(t *testing.T) {
	for _, arguments := range [][]string{{"bench", "--only", "P99"}, {"bench", "--rounds", "0"}, {"run"}, {"run", "ftp://x"}, {"nothing"}} {
		var out bytes.Buffer
		if code := run(t.Context(), arguments, io.Discard, &out); code == 0 || !strings.Contains(out.String(), "loadtest:") {
			t.Errorf("%v: %d %q", arguments, code, out.String())
		}
	}
	var help bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &help, io.Discard); code != 0 || !strings.Contains(help.String(), "bench") {
		t.Errorf("%d %q", code, help.String())
	}
}
