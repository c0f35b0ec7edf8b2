package prompts_test

import (
	"testing"

	"go.uber.org/goleak"

	"turnstone/providers/embedded/embeddedtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(embeddedtest.Main(m)) }
