package site

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"turnstone/cmd/loadtest/console"
	"turnstone/providers/embedded/process"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 40 * time.Second
)

// Child is a process of a site, in a process group of its own.
type Child struct {
	*process.Process
	name    string
	Address string // where it listens, as it announced
}

// StartChild starts a program that announces its address, and waits for the announcement.
func StartChild(name string, cmd *exec.Cmd) (*Child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p, err := process.Start(cmd)
	if err != nil {
		return nil, err
	}
	return &Child{Process: p, name: name}, nil
}

// startOwn starts another process of this program as a server, and waits until it announces its address.
func startOwn(ctx context.Context, folder string, arguments ...string) (*Child, error) {
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
	// StdoutPipe is not used because Wait closes it.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = write
	c, err := StartChild(name, cmd)
	_ = write.Close() // the child has its own copy
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = read.Close() })
	defer stop()
	line, err := bufio.NewReader(read).ReadString('\n')
	if address, found := strings.CutPrefix(strings.TrimSpace(line), console.Announcement); found {
		c.Address = address
		go func() { _, _ = io.Copy(io.Discard, read) }()
		return c, nil
	}
	return nil, errors.Join(fmt.Errorf("%s did not announce its address: %w", name, err), c.Stop())
}

// Stop sends SIGTERM and waits. After stopTimeout it kills the process and returns an error. A nil child has nothing
// to stop.
func (c *Child) Stop() error {
	if c == nil || c.Exited() {
		return nil
	}
	err := c.Process.Stop(context.Background(), process.Step{Signal: syscall.SIGTERM, Grace: stopTimeout})
	if err == nil && c.Killed() {
		err = fmt.Errorf("%s did not end after SIGTERM", c.name)
	}
	return err
}
