// Package process runs child processes that do not outlive this process, and stops them with a sequence of signals.
//
// It knows nothing about what a process does: the caller decides whether the process is ready. It neither restarts a
// process nor reads its output.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// KillGrace limits the wait for a process to exit after SIGKILL. After that, an error is returned.
const KillGrace = 5 * time.Second

// Process is a child process. Its methods may be called from any goroutine.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has exited and was reaped
	err  error         // set before done closes
}

// Start starts cmd. The caller sets cmd.SysProcAttr.Pdeathsig, the signal that the kernel sends when this process ends.
// That signal is bound to the thread that starts the process, so one goroutine, locked to its thread, starts the
// process and waits for it.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name(), err)
	}
	return p, nil
}

func (p *Process) name() string { return filepath.Base(p.cmd.Path) }

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited reports whether the process has exited.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Err returns the result of exec.Cmd.Wait. It is nil while the process is running.
func (p *Process) Err() error {
	if !p.Exited() {
		return nil
	}
	return p.err
}

// Step is one signal of a stop, and the wait before the next one.
type Step struct {
	Signal syscall.Signal
	Grace  time.Duration
}

// Stop sends the signals in order until the process has exited, and SIGKILL after the last. When ctx ends, the next
// signal follows at once, so that Stop does not leave the process running. It returns an error if the process has not
// exited after SIGKILL.
func (p *Process) Stop(ctx context.Context, steps ...Step) error {
	for _, step := range append(steps, Step{syscall.SIGKILL, KillGrace}) {
		if p.Exited() {
			return nil
		}
		if err := p.cmd.Process.Signal(step.Signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("signalling %s: %w", p.name(), err)
		}
		timer := time.NewTimer(step.Grace)
		ended := ctx.Done()
		if step.Signal == syscall.SIGKILL {
			ended = nil
		}
		select {
		case <-p.done:
		case <-timer.C:
		case <-ended:
		}
		timer.Stop()
	}
	if !p.Exited() {
		return fmt.Errorf("%s (process %d) did not exit", p.name(), p.PID())
	}
	return nil
}

// Killed reports whether the process was ended by SIGKILL.
func (p *Process) Killed() bool {
	if !p.Exited() {
		return false
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
