package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	startPatience = 60 * time.Second
	stopPatience  = 40 * time.Second
)

// child is a process of ours. The kernel ends it with the thread that started it, so a goroutine of its own, locked to
// its thread, starts it and waits for it.
type child struct {
	name    string
	cmd     *exec.Cmd
	address string // where it says that it listens
	done    chan struct{}
}

func startChild(name string, cmd *exec.Cmd) (*child, error) {
	c := &child{name: name, cmd: cmd, done: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended stands in ProcessState
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return c, nil
}

// startOwn starts this program again as a server, and waits until it says where it listens.
func startOwn(ctx context.Context, folder string, arguments ...string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	name := arguments[len(arguments)-1]
	for _, argument := range arguments {
		if !strings.HasPrefix(argument, "-") {
			name = argument
		}
	}
	cmd := exec.Command(program, arguments...)
	log, err := os.Create(filepath.Join(folder, name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd.Stderr = log
	// Not by StdoutPipe, which Wait closes.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = write
	c, err := startChild(name, cmd)
	_ = write.Close() // the child has its own
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = read.Close() })
	defer stop()
	line, err := bufio.NewReader(read).ReadString('\n')
	if address, found := strings.CutPrefix(strings.TrimSpace(line), announcement); found {
		c.address = address
		go func() { _, _ = io.Copy(io.Discard, read) }()
		return c, nil
	}
	return nil, errors.Join(fmt.Errorf("%s does not say where it listens: %w", name, err), c.stop())
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// stop asks it to end, and ends it after a while.
func (c *child) stop() error {
	if c == nil {
		return nil
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-timer.C:
		_ = syscall.Kill(-c.pid(), syscall.SIGKILL)
		<-c.done
		return fmt.Errorf("%s did not end by itself", c.name)
	}
}
