package child

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"turnstone/providers/embedded/process"
)

const (
	memoryInterval = 50 * time.Millisecond
	maxErrors      = 4 << 10 // of what a child prints as errors
)

// Limits are what a child may use. The parent kills a child that exceeds them.
type Limits struct {
	Time   time.Duration // on the clock, with the wait for a processor
	Memory int64         // resident, in bytes
}

// Limit is a limit that a child has exceeded.
type Limit int32

// The limits. None means that the parent did not kill the child for a limit.
const (
	None Limit = iota
	Time
	Memory
)

// Process is a running child.
type Process struct {
	*process.Process
	// Output is what the child prints. It ends with the child.
	Output *os.File

	cmd      *exec.Cmd
	errors   prefix
	exceeded atomic.Int32 // a Limit
	watched  chan struct{}
}

// Watch kills the child when it exceeds its limits, or when ctx ends. It is called once, and does not wait.
func (c *Process) Watch(ctx context.Context, limits Limits) {
	go func() {
		defer close(c.watched)
		c.watch(ctx, limits)
	}()
}

func (c *Process) watch(ctx context.Context, limits Limits) {
	deadline := time.NewTimer(limits.Time)
	defer deadline.Stop()
	ticks := time.NewTicker(memoryInterval)
	defer ticks.Stop()
	for {
		select {
		case <-c.Done():
			return
		case <-ctx.Done():
			c.kill()
			return
		case <-deadline.C:
			c.exceeded.Store(int32(Time))
			c.kill()
			return
		case <-ticks.C:
			if Resident(strconv.Itoa(c.PID())) > limits.Memory {
				c.exceeded.Store(int32(Memory))
				c.kill()
				return
			}
		}
	}
}

// End kills the child with its group, if it has not ended. When End returns, it is reaped, and nothing watches it.
func (c *Process) End() {
	c.kill()
	<-c.watched
	<-c.Done()
	_ = c.Output.Close() // it was only read
}

// kill ends the process group of the child.
func (c *Process) kill() { _ = syscall.Kill(-c.PID(), syscall.SIGKILL) } // it may have ended

// Exceeded returns the limit for which the parent has killed the child.
func (c *Process) Exceeded() Limit { return Limit(c.exceeded.Load()) }

// State returns how an ended child ended.
func (c *Process) State() *os.ProcessState { return c.cmd.ProcessState }

// CPU returns the processor time that an ended child has used.
func (c *Process) CPU() time.Duration {
	return c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

// Errors returns the beginning of what an ended child has printed as errors.
func (c *Process) Errors() string { return string(c.errors.text) }

// Resident returns the resident memory, in bytes, of a process of /proc; 0 if it has ended.
func Resident(process string) int64 {
	raw, err := os.ReadFile("/proc/" + process + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// prefix stores the beginning of what is written to it.
type prefix struct{ text []byte }

// Write implements io.Writer.
func (p *prefix) Write(piece []byte) (int, error) {
	p.text = append(p.text, piece[:min(len(piece), maxErrors-len(p.text))]...)
	return len(piece), nil
}
