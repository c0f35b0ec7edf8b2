package embedded

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"turnstone/providers/embedded/process"
)

// startTimeout limits the start of a server. It includes the recovery of a crashed Postgres.
const startTimeout = 60 * time.Second

// program is what an instance has to know of the program that it runs. Its methods are called for one start at a time.
type program interface {
	// command prepares the folder, which no other server uses, and returns the command that starts the server.
	command(ctx context.Context) (*exec.Cmd, error)
	// ready reports whether the server accepts connections.
	ready(ctx context.Context) bool
}

// instance is a server in a folder that one process owns. The owner starts and stops the server; every other process is
// a guest, which uses it. Its methods may be called from any goroutine.
type instance struct {
	// Set before open.
	program program
	name    string         // for errors and the log, for example "private Redis"
	comm    string         // the name of the server's processes
	socket  string         // the name of the server's socket
	stop    []process.Step // a clean stop, and what follows if the server does not end; its parent's death sends the first one
	logger  *zap.Logger    // nil: nothing is logged

	// Set by open.
	account account
	folder  string // the server's folder; the server works in its subfolder "data"
	sockets string // the folder of the socket

	// Guarded by mu.
	mu     sync.Mutex
	lock   *FolderLock      // nil for a guest, which neither starts nor stops the server
	server *process.Process // nil for a guest and while stopped
}

// open takes dir if it is free, and starts the server. Otherwise it waits until the server of the folder's owner accepts
// connections. As root, the server runs under the first existing one of the accounts.
func (i *instance) open(ctx context.Context, dir string, accounts ...string) error {
	if i.logger == nil {
		i.logger = zap.NewNop()
	}
	err := i.prepare(dir, accounts)
	if err == nil && i.lock == nil {
		if err = i.await(ctx, nil); err != nil {
			err = fmt.Errorf("%s is owned by another process: %w", i.folder, err)
		}
	}
	switch {
	case err != nil:
		return i.failed(err)
	case i.lock == nil:
		return nil
	}
	if err := i.Start(ctx); err != nil {
		return errors.Join(err, i.lock.Unlock())
	}
	return nil
}

func (i *instance) prepare(dir string, accounts []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if i.account, err = serverAccount(accounts...); err != nil {
		return err
	}
	if i.folder, err = i.account.serverFolder(dir); err != nil {
		return err
	}
	if i.sockets, err = i.account.socketFolder(dir, i.folder, i.socket); err != nil {
		return err
	}
	if i.lock, err = LockFolder(i.folder); errors.Is(err, ErrLocked) {
		return nil
	}
	return err
}

// failed names the server in an error; nil stays nil.
func (i *instance) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", i.name, err)
}

// Start starts a server that was stopped or has exited. It does nothing for a guest, or if the server is running.
func (i *instance) Start(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lock == nil || (i.server != nil && !i.server.Exited()) {
		return nil
	}
	return i.failed(i.start(ctx))
}

func (i *instance) start(ctx context.Context) error {
	started := time.Now()
	cmd, err := i.program.command(ctx)
	if err != nil {
		return err
	}
	logPath := filepath.Join(i.folder, "server.log")
	log, err := openLog(logPath)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = i.account.attributes(i.stop[0].Signal)
	server, err := process.Start(cmd)
	if err != nil {
		return err
	}
	if err := i.await(ctx, server); err != nil {
		stopErr := server.Stop(context.WithoutCancel(ctx), i.stop[len(i.stop)-1])
		return errors.Join(fmt.Errorf("%w; %s", err, lastLines(logPath)), stopErr)
	}
	i.server = server
	i.logger.Info(i.name+" is up", zap.Duration("took", time.Since(started)), zap.String("folder", i.folder))
	return nil
}

// await waits until the server accepts connections, at most startTimeout; server is nil if another process owns it.
func (i *instance) await(ctx context.Context, server *process.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := poll(ctx, func() (bool, error) {
		if server != nil && server.Exited() {
			return false, fmt.Errorf("the server exited while starting: %w", server.Err())
		}
		return i.program.ready(ctx), nil
	})
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("the server did not become ready: %w", err)
	}
	return err
}

// Folder returns the folder of the server's files: the data folder, or another one if the server's account cannot
// access that.
func (i *instance) Folder() string { return i.folder }

func (i *instance) data() string { return filepath.Join(i.folder, "data") }

// Owned reports whether this process owns the server, so that the server ends with it.
func (i *instance) Owned() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.lock != nil
}

// Done returns a channel that is closed when the current server ends, on purpose or not; nil for a guest or a stopped
// server.
func (i *instance) Done() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.server == nil {
		return nil
	}
	return i.server.Done()
}

// Stop stops the server cleanly, and less so after a grace period or when ctx ends. The folder stays locked until Close,
// so that Start can follow. A guest's Stop does nothing.
func (i *instance) Stop(ctx context.Context) error { return i.stopWith(ctx, i.stop...) }

func (i *instance) stopWith(ctx context.Context, steps ...process.Step) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.server == nil {
		return nil
	}
	_ = i.signalAll(syscall.SIGCONT) // a paused server would not handle the stop signals
	if err := i.server.Stop(ctx, steps...); err != nil {
		return i.failed(err)
	}
	i.server = nil
	i.logger.Info(i.name + " is down")
	return nil
}

// Close stops the server and unlocks the folder.
func (i *instance) Close(ctx context.Context) error {
	err := i.Stop(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lock == nil {
		return err
	}
	err = errors.Join(err, i.lock.Unlock())
	i.lock = nil
	return err
}

// Restart stops the server as Stop does and starts it again.
func (i *instance) Restart(ctx context.Context) error {
	if err := i.Stop(ctx); err != nil {
		return err
	}
	return i.Start(ctx)
}

// Kill ends every process of the server with SIGKILL, as a crash of the host computer would, and waits until they have
// exited.
func (i *instance) Kill() error { return i.signal(syscall.SIGKILL) }

// Pause suspends every process of the server: connections hang. Resume continues them.
func (i *instance) Pause() error { return i.signal(syscall.SIGSTOP) }

// Resume continues a paused server.
func (i *instance) Resume() error { return i.signal(syscall.SIGCONT) }

func (i *instance) signal(signal syscall.Signal) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.server == nil {
		return errors.New("this process has no running server")
	}
	return i.signalAll(signal)
}

// signalAll signals all processes of the server. After SIGKILL it waits until they have exited.
func (i *instance) signalAll(signal syscall.Signal) error {
	pids, err := serversIn(i.data(), i.comm)
	if err != nil {
		return err
	}
	signalAll(pids, signal)
	if signal != syscall.SIGKILL {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), process.KillGrace)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		left, err := serversIn(i.data(), i.comm)
		signalAll(left, signal) // the server may have started one after it was listed
		return len(left) == 0 && i.server.Exited(), err
	})
}
