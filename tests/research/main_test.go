package research

import (
	"testing"

	"turnstone/cmd/turnstone/sitetest"
)

func TestMain(m *testing.M) { sitetest.RunMain(m) }
