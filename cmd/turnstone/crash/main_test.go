package crash

import (
	"testing"

	"turnstone/providers/embedded/embeddedtest"
)

func TestMain(m *testing.M) { embeddedtest.RunMain(m) }
