package embeddedtest_test

import (
	"testing"

	"go.uber.org/goleak"

	"turnstone/providers/embedded/embeddedtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(embeddedtest.Main(m)) }

func TestServersAreSharedByAllTestsOfAProcess(t *testing.T) {
	postgres, redis := embeddedtest.Postgres(t), embeddedtest.Redis(t)
	if postgres != embeddedtest.Postgres(t) || redis != embeddedtest.Redis(t) {
		t.Error("a second test gets a second server")
	}
}
