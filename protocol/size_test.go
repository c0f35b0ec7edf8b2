package protocol_test

import (
	"testing"

	"turnstone/protocol"
)

// The texts are those of web/src/messages/byte-size.ts in English.
func TestSizesAreThoseOfTheApp(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1000: "1,000 bytes", 1024: "1 kB", 1025: "1 kB", 1536: "1.5 kB", 1023 << 10: "1,023 kB",
		1<<20 - 1: "1,024 kB", 1 << 20: "1 MB", 1_500_000: "1.4 MB", 5 << 30: "5 GB", 2048 << 30: "2,048 GB",
	} {
		if got := protocol.SizeText(bytes); got != want {
			t.Errorf("%d is %q, want %q", bytes, got, want)
		}
	}
}
