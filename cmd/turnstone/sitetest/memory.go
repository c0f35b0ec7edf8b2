package sitetest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// PeakMemory returns the most memory, in bytes, that was resident since the program started or ForgetPeakMemory was called.
func (p *Process) PeakMemory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var kilobytes int64
	_, line, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(line, &kilobytes); err != nil {
		t.Fatalf("the peak of the memory is missing: %v", err)
	}
	return kilobytes << 10
}

// ForgetPeakMemory sets the peak to the memory that is resident now.
func (p *Process) ForgetPeakMemory(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}
