package failpoints

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
)

// program can be made to fail.
var program = sitetest.NewBuild("turnstone-failpoint", "-tags=failpoint")

// atOnce is how many groups of cells run beside one another. They wait, for a process or for a lease, more than they work.
const atOnce = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sitetest.RunMain(m)
}

// The points' own tests need the tag too.
func TestAPointFailsAsItIsArmed(t *testing.T) {
	t.Parallel()
	if said, err := exec.Command("go", "test", "-race", "-tags=failpoint", "turnstone/protocol/failpoint").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
