package e2e

import (
	"testing"

	"turnstone/cmd/turnstone/sitetest"
)

func TestMain(m *testing.M) { sitetest.RunMain(m) }
