package e2e

import (
	"testing"

	"turnstone/cmd/turnstone/sitetest"
)

// The client is a test without the race detector; the programs that it starts have it.
func TestMain(m *testing.M) {
	sitetest.DetectRaces()
	sitetest.RunMain(m)
}
