//go:build !failpoint

package failpoint_test

import (
	"os/exec"
	"strings"
	"testing"

	"turnstone/protocol/failpoint"
)

// Without the tag the compiler puts the bodies, which are a constant or an argument, in the place of the calls.
func TestTheProductPaysNothing(t *testing.T) {
	said, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, name := range []string{"Before", "After", "Answer", "Hold"} {
		if !strings.Contains(string(said), "can inline "+name+"\n") {
			t.Errorf("%s is not inlined:\n%s", name, said)
		}
	}
	if got := testing.AllocsPerRun(1000, func() { _ = step() }); got != 0 {
		t.Errorf("a step with a point allocates %g times", got)
	}
}

func step() error {
	if err := failpoint.Before(failpoint.LeaseBeforeRenew); err != nil {
		return err
	}
	return failpoint.After(failpoint.LeaseBeforeRenew, nil)
}

// BenchmarkStep is what a point costs: compare with an empty loop.
func BenchmarkStep(b *testing.B) {
	for b.Loop() {
		if step() != nil {
			b.Fatal("it failed")
		}
	}
}
