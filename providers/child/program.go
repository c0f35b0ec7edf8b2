package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"

	"turnstone/providers/embedded/process"
)

// Program starts children. Its methods may be called from any goroutine.
type Program struct {
	command []string
	shared  atomic.Bool // this system allows no namespaces of its own for children
}

// New returns a program whose children are processes of a command.
func New(command ...string) *Program { return &Program{command: command} }

// Shared reports whether children share the network of this process, because the system allows no other.
func (p *Program) Shared() bool { return p.shared.Load() }

// Spool copies a content into a file without a name, which a child can read at any position.
func Spool(of io.Reader) (*os.File, error) {
	spool, err := os.CreateTemp("", "turnstone-child-*")
	if err != nil {
		return nil, fmt.Errorf("storing the input of a child: %w", err)
	}
	err = os.Remove(spool.Name())
	if err == nil {
		_, err = io.Copy(spool, of)
	}
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = spool.Close()
		return nil, fmt.Errorf("storing the input of a child: %w", err)
	}
	return spool, nil
}

// Start starts a child with arguments in a process group and, if the system allows it, in a network namespace of its own, in
// which there is no network. The caller calls End.
func (p *Program) Start(stdin *os.File, arguments ...string) (*Process, error) {
	const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	if !p.shared.Load() {
		c, err := p.startIn(namespaces, stdin, arguments)
		if err == nil || !refusesNamespaces(err) {
			return c, err
		}
		p.shared.Store(true)
	}
	return p.startIn(0, stdin, arguments)
}

func refusesNamespaces(err error) bool {
	for _, one := range []error{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EINVAL, syscall.ENOSYS, syscall.EUSERS} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

func (p *Program) startIn(namespaces uintptr, stdin *os.File, arguments []string) (*Process, error) {
	output, print, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting a child: %w", err)
	}
	c := &Process{Output: output, watched: make(chan struct{})}
	c.cmd = exec.Command(p.command[0], append(append([]string{}, p.command[1:]...), arguments...)...) // Watch ends it
	c.cmd.Env = []string{}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = stdin, print, &c.errors
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces}
	c.Process, err = process.Start(c.cmd)
	_ = print.Close() // the child has a copy
	if err != nil {
		_ = output.Close()
		return nil, err
	}
	return c, nil
}
