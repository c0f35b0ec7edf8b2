package turns

import (
	"strings"
	"testing"
)

func TestALogComesBackByteForByte(t *testing.T) {
	for _, log := range []string{"", "{}\n", strings.Repeat(`{"delta":"\u2028 é"}`+"\n", 50_000)} {
		got, err := decompress(compress([]byte(log)), len(log))
		if err != nil || string(got) != log {
			t.Errorf("%d bytes came back as %d (%v)", len(log), len(got), err)
		}
	}
}

func TestDecompressingATruncatedOrMissizedLogFails(t *testing.T) {
	log := []byte(strings.Repeat("{}\n", 1000))
	whole := compress(log)
	for name, c := range map[string]struct {
		row  []byte
		size int
	}{"cut": {whole[:len(whole)-1], len(log)}, "longer": {whole, len(log) - 1}, "shorter": {whole, len(log) + 1}, "nothing": {nil, 1}} {
		if got, err := decompress(c.row, c.size); err == nil {
			t.Errorf("%s: %d bytes without an error", name, len(got))
		}
	}
}
