package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// pollEvery is how often a condition outside our process (a socket, a pid file, another process) is looked at.
	pollEvery = 10 * time.Millisecond
	// killGrace is how long processes may take to go after SIGKILL before we say that they do not.
	killGrace = 5 * time.Second
	// logTail is how much of a server's log goes into the error of a failed start.
	logTail = 2000
)

// child is a process of ours. Its parent-death signal belongs to the thread that started it, so one goroutine, locked to
// its thread, starts it and waits for it.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone and reaped
	err  error         // set before done closes
}

func startChild(cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		c.err = cmd.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(cmd.Path), err)
	}
	return c, nil
}

func (c *child) exited() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// stopStep is one signal of a stop and how long it gets before the next.
type stopStep struct {
	signal syscall.Signal
	grace  time.Duration
}

// stop sends the signals in order until the process is gone, and SIGKILL after the last. When ctx ends the next signal
// comes at once: a stop always ends with the process gone.
func (c *child) stop(ctx context.Context, steps ...stopStep) error {
	for _, step := range append(steps, stopStep{syscall.SIGKILL, killGrace}) {
		if c.exited() {
			return nil
		}
		if err := c.cmd.Process.Signal(step.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("signalling %s: %w", filepath.Base(c.cmd.Path), err)
		}
		timer := time.NewTimer(step.grace)
		ended := ctx.Done()
		if step.signal == syscall.SIGKILL {
			ended = nil
		}
		select {
		case <-c.done:
		case <-timer.C:
		case <-ended:
		}
		timer.Stop()
	}
	if !c.exited() {
		return fmt.Errorf("%s (process %d) does not end", filepath.Base(c.cmd.Path), c.cmd.Process.Pid)
	}
	return nil
}

// serversIn finds the processes named comm whose working folder is dir: all processes of a Postgres or Redis live in
// their data folder, which survives reused process ids and missing pid files.
func serversIn(dir, comm string) ([]int, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for running servers: %w", err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		name, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
		if err != nil || strings.TrimSpace(string(name)) != comm {
			continue
		}
		if cwd, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd")); err == nil && cwd == dir {
			found = append(found, pid)
		}
	}
	return found, nil
}

// clearOrphans ends the servers that an owner which is gone left in dir. leader picks the process that takes the clean
// signals for all; a negative answer means that it is gone and the rest notice by themselves.
func clearOrphans(ctx context.Context, dir, comm string, leader func() int, steps ...stopStep) error {
	for _, step := range append(steps, stopStep{syscall.SIGKILL, killGrace}) {
		pids, err := serversIn(dir, comm)
		if err != nil || len(pids) == 0 {
			return err
		}
		if step.signal == syscall.SIGKILL {
			signalAll(pids, syscall.SIGKILL)
		} else if pid := leader(); contains(pids, pid) {
			_ = syscall.Kill(pid, step.signal)
		}
		waiting, cancel := context.WithTimeout(ctx, step.grace)
		err = poll(waiting, func() (bool, error) {
			left, err := serversIn(dir, comm)
			return len(left) == 0, err
		})
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for a server that an earlier process left in %s: %w", dir, ctx.Err())
		}
	}
	return fmt.Errorf("a server that an earlier process left in %s does not end", dir)
}

func signalAll(pids []int, signal syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, signal) // gone already is what we want
	}
}

func contains(pids []int, pid int) bool {
	for _, one := range pids {
		if one == pid {
			return true
		}
	}
	return false
}

// poll asks until the answer is yes, an error, or ctx ends.
func poll(ctx context.Context, ask func() (bool, error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// openLog makes the server's log anew, keeping the one before it. The server writes to the file itself, so a log needs
// none of our goroutines and survives us.
func openLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".before"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("keeping the last log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_EXCL, privateMode)
	if err != nil {
		return nil, fmt.Errorf("opening the server's log: %w", err)
	}
	return file, nil
}

// lastLines is the end of a log for an error message.
func lastLines(path string) string {
	text, err := os.ReadFile(path)
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return "its log " + path + " is empty"
	}
	if len(text) > logTail {
		text = text[len(text)-logTail:]
	}
	return "its log ends: " + string(bytes.TrimSpace(text))
}
