//go:build !failpoint

package failpoint_test

import (
	"os/exec"
	"strings"
	"testing"

	"turnstone/protocol/failpoint"
)

// Without the tag every function returns a constant or its argument, so the compiler inlines all calls.
func TestPointsCostNothingWithoutTheTag(t *testing.T) {
	output, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, name := range []string{"Before", "After", "Respond", "Reached", "Hold"} {
		if !strings.Contains(string(output), "can inline "+name+"\n") {
			t.Errorf("%s is not inlined:\n%s", name, output)
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

// BenchmarkStep measures the cost of a point; compare it with an empty loop.
func BenchmarkStep(b *testing.B) {
	for b.Loop() {
		if step() != nil {
			b.Fatal("the step failed")
		}
	}
}
