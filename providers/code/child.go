package code

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"turnstone/providers/child"
)

// maxCPU is the processor time, in seconds, at which the kernel ends a child.
const maxCPU = 10 + spareCPU

// Child runs in the child process. It reads a request from a regular file, which is its standard input, and prints a report as
// JSON. When the code uses too much, Child returns while the code is still running: the process ends with Child.
func Child(stdin *os.File, stdout io.Writer) error {
	if err := child.Restrict(maxCPU, child.MaxAddresses); err != nil {
		return err
	}
	debug.SetMaxStack(maxStack)
	time.Local = time.UTC // code does not learn where the server is
	if info, err := stdin.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.New("the task must be a regular file")
	}
	var task request
	if err := json.NewDecoder(stdin).Decode(&task); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	debug.SetMemoryLimit(task.Budget.Memory / 4 * 3)
	printed := &output{}
	made := report{Failure: supervise(&task, printed)}
	made.Result = printed.result()
	if made.Failure != nil {
		made.Artifacts = nil
	}
	if err := json.NewEncoder(stdout).Encode(made); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}

// supervise executes the code of a task, and returns when it has ended or used too much.
func supervise(task *request, printed *output) *failure {
	done := make(chan *failure, 1)
	go func() { done <- execute(&task.Task, printed) }()
	ticks := time.NewTicker(watchInterval)
	defer ticks.Stop()
	for {
		select {
		case failed := <-done:
			return failed
		case <-ticks.C:
			if failed := exceeded(task.Budget); failed != nil {
				return failed
			}
		}
	}
}

// exceeded returns which limit this process has exceeded; nil: none.
func exceeded(allowed Budget) *failure {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err == nil && time.Duration(used.Utime.Nano()+used.Stime.Nano()) > allowed.CPU {
		return overCPU(allowed.CPU)
	}
	if child.Resident("self") > allowed.Memory {
		return overMemory(allowed.Memory)
	}
	return nil
}

func overCPU(limit time.Duration) *failure {
	return &failure{"cpu_limit", fmt.Sprintf("The code used more than %g s of processor time, and was ended.", limit.Seconds())}
}

func overMemory(limit int64) *failure {
	return &failure{"memory_limit", fmt.Sprintf("The code used more than %d MiB of memory, and was ended.", limit>>20)}
}
