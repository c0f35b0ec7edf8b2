package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"turnstone/providers/embedded/process"
)

const (
	// pollEvery is the interval at which a condition outside our process (a socket, a pid file, another process) is
	// checked.
	pollEvery = 10 * time.Millisecond
	// logTail limits the bytes of a server's log in the error of a failed start.
	logTail = 2000
)

// serversIn finds the processes named comm whose working folder is dir. All processes of a Postgres or Redis server
// have their data folder as the working folder. That check works with reused process ids and without a pid file.
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

// clearOrphans ends the servers that a previous owner has left in dir. leader returns the process that gets the signals
// for a clean stop. A negative result means that it has exited, and that the other processes end by themselves.
func clearOrphans(ctx context.Context, dir, comm string, leader func() int, steps ...process.Step) error {
	for _, step := range append(steps, process.Step{Signal: syscall.SIGKILL, Grace: process.KillGrace}) {
		pids, err := serversIn(dir, comm)
		if err != nil || len(pids) == 0 {
			return err
		}
		if step.Signal == syscall.SIGKILL {
			signalAll(pids, syscall.SIGKILL)
		} else if pid := leader(); slices.Contains(pids, pid) {
			_ = syscall.Kill(pid, step.Signal)
		}
		waiting, cancel := context.WithTimeout(ctx, step.Grace)
		err = poll(waiting, func() (bool, error) {
			left, err := serversIn(dir, comm)
			return len(left) == 0, err
		})
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for the end of a server that an earlier process left in %s: %w", dir, ctx.Err())
		}
	}
	return fmt.Errorf("a server that an earlier process left in %s did not exit", dir)
}

func signalAll(pids []int, signal syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, signal) // an error means that it has already exited
	}
}

// poll calls condition every pollEvery until it returns true or an error, or ctx ends.
func poll(ctx context.Context, condition func() (bool, error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if met, err := condition(); met || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// openLog creates a new log file for the server, and keeps the previous one with the suffix ".before". The server
// writes to the file directly, so the log needs none of our goroutines and does not end with our process.
func openLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".before"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("renaming the previous log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_EXCL, privateMode)
	if err != nil {
		return nil, fmt.Errorf("opening the server's log: %w", err)
	}
	return file, nil
}

// lastLines returns the end of a log for an error message.
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
