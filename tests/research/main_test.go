package research

import (
	"flag"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
)

// inParallel is how many tests run at the same time. Each starts programs again and again, which keeps a processor busy; with more of
// them, the suites that run at the same time get no processor for seconds.
const inParallel = "2"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", inParallel); err != nil {
		panic(err)
	}
	sitetest.RunMain(m)
}
