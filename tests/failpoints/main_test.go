package failpoints

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
)

// atOnce is the number of groups of cells that run in parallel. They spend more time waiting, for a process or for a
// lease, than working. With eight of them, two processors were busy all the time, and Redis missed the limiter's 200 ms.
const atOnce = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sitetest.RunMain(m)
}

// TestAPointFailsAsItIsArmed runs the tests of package failpoint, which need the build tag too.
func TestAPointFailsAsItIsArmed(t *testing.T) {
	t.Parallel()
	if output, err := exec.Command("go", "test", "-race", "-tags=failpoint", "turnstone/protocol/failpoint").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
