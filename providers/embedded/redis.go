package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"turnstone/providers/embedded/process"
)

const (
	redisSocket = "redis.sock"
	redisComm   = "redis-server"
	redisGrace  = 5 * time.Second
	pingTimeout = time.Second
)

// RedisOptions configure a Redis. Logger may be nil.
type RedisOptions struct {
	DataDir   string // a folder for this server only; created if missing
	Databases int    // 0: as many as Redis has by default
	Logger    *zap.Logger
}

// Redis is a private server on a unix socket, without persistence: it stores limits and hints, and no data that must
// survive a restart. Its methods may be called from any goroutine.
type Redis struct {
	// Set by StartRedis.
	options RedisOptions
	account account
	folder  string
	sockets string

	// Guarded by mu.
	mu     sync.Mutex
	lock   *FolderLock      // nil for a guest, which neither starts nor stops the server
	server *process.Process // nil for a guest and while stopped
}

// StartRedis starts the server and returns when it accepts connections. If another process owns the folder, it waits
// for that process's server instead. The wait for a server ends with ctx, or after startTimeout.
func StartRedis(ctx context.Context, options RedisOptions) (*Redis, error) {
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	dir, err := filepath.Abs(options.DataDir)
	if err != nil {
		return nil, fmt.Errorf("private Redis: %w", err)
	}
	options.DataDir = dir
	r := &Redis{options: options}
	if err := r.prepare(); err != nil {
		return nil, fmt.Errorf("private Redis: %w", err)
	}
	if r.lock == nil {
		if err := r.await(ctx, nil); err != nil {
			return nil, fmt.Errorf("private Redis: %s is owned by another process, whose server did not become ready: %w", r.folder, err)
		}
		return r, nil
	}
	if err := r.Start(ctx); err != nil {
		return nil, errors.Join(err, r.lock.Unlock())
	}
	return r, nil
}

func (r *Redis) prepare() (err error) {
	if r.account, err = serverAccount("redis", "nobody"); err != nil {
		return err
	}
	if r.folder, err = r.account.serverFolder(r.options.DataDir); err != nil {
		return err
	}
	if r.sockets, err = r.account.socketFolder(r.options.DataDir, r.folder, redisSocket); err != nil {
		return err
	}
	if r.lock, err = LockFolder(r.folder); errors.Is(err, ErrLocked) {
		return nil
	}
	return err
}

// Start starts a server that was stopped or has exited. It does nothing for a guest, or if the server is running.
func (r *Redis) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock == nil || (r.server != nil && !r.server.Exited()) {
		return nil
	}
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("private Redis: %w", err)
	}
	return nil
}

func (r *Redis) start(ctx context.Context) error {
	if err := RedisInstalled(); err != nil {
		return err
	}
	if err := r.account.makeOwned(r.data()); err != nil {
		return fmt.Errorf("creating the server's folder: %w", err)
	}
	// Redis has no shared files that could be lost. A server of a previous owner may already be stopping because of its
	// parent-death signal.
	if err := clearOrphans(ctx, r.data(), redisComm, r.orphan, process.Step{Signal: syscall.SIGTERM, Grace: redisGrace}); err != nil {
		return err
	}
	if err := os.Remove(r.socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the files of an earlier server: %w", err)
	}
	logPath := filepath.Join(r.folder, "server.log")
	log, err := openLog(logPath)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(redisComm, "--port", "0", "--unixsocket", r.socket(), "--unixsocketperm", "700",
		"--save", "", "--appendonly", "no", "--dir", r.data(), "--daemonize", "no",
		"--maxmemory", "256mb", "--maxmemory-policy", "noeviction")
	if r.options.Databases > 0 {
		cmd.Args = append(cmd.Args, "--databases", strconv.Itoa(r.options.Databases))
	}
	cmd.Dir = r.data()
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = r.account.attributes(syscall.SIGTERM)
	server, err := process.Start(cmd)
	if err != nil {
		return err
	}
	if err := r.await(ctx, server); err != nil {
		stopErr := server.Stop(context.WithoutCancel(ctx), process.Step{Signal: syscall.SIGTERM, Grace: redisGrace})
		return errors.Join(fmt.Errorf("%w; %s", err, lastLines(logPath)), stopErr)
	}
	r.server = server
	r.options.Logger.Info("private Redis is up", zap.String("folder", r.folder))
	return nil
}

// orphan returns the process id of a server in our folder, or -1. A Redis server is one process.
func (r *Redis) orphan() int {
	pids, err := serversIn(r.data(), redisComm)
	if err != nil || len(pids) == 0 {
		return -1
	}
	return pids[0]
}

// await waits until the server responds to PING; server is nil if another process owns it.
func (r *Redis) await(ctx context.Context, server *process.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		if server != nil && server.Exited() {
			return false, fmt.Errorf("the server exited while starting: %w", server.Err())
		}
		return r.ping(ctx), nil
	})
}

func (r *Redis) ping(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: pingTimeout}
	connection, err := dialer.DialContext(ctx, "unix", r.socket())
	if err != nil {
		return false
	}
	defer func() { _ = connection.Close() }()
	if connection.SetDeadline(time.Now().Add(pingTimeout)) != nil {
		return false
	}
	if _, err := connection.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	reply, err := bufio.NewReader(connection).ReadString('\n')
	return err == nil && reply == "+PONG\r\n"
}

// URL returns the server's address, in the form that go-redis accepts.
func (r *Redis) URL() string {
	address := url.URL{Scheme: "unix", Path: r.socket()}
	return address.String()
}

// Owned reports whether this process owns the server, so that the server ends with it.
func (r *Redis) Owned() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lock != nil
}

// Done returns a channel that is closed when the current server ends, on purpose or not; nil for a guest or a stopped
// server.
func (r *Redis) Done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return nil
	}
	return r.server.Done()
}

// Stop stops the server. The folder stays locked until Close, so that Start can follow. A guest's Stop does nothing.
func (r *Redis) Stop(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return nil
	}
	_ = signalServer(r.server, r.data(), redisComm, syscall.SIGCONT) // a paused server would not handle the stop signals
	if err := r.server.Stop(ctx, process.Step{Signal: syscall.SIGTERM, Grace: redisGrace}); err != nil {
		return fmt.Errorf("private Redis: %w", err)
	}
	r.server = nil
	r.options.Logger.Info("private Redis is down")
	return nil
}

// Close stops the server and unlocks the folder.
func (r *Redis) Close(ctx context.Context) error {
	err := r.Stop(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock == nil {
		return err
	}
	err = errors.Join(err, r.lock.Unlock())
	r.lock = nil
	return err
}

// Restart stops the server as Stop does and starts it again, without its data.
func (r *Redis) Restart(ctx context.Context) error {
	if err := r.Stop(ctx); err != nil {
		return err
	}
	return r.Start(ctx)
}

// Kill ends the server with SIGKILL and waits until it has exited.
func (r *Redis) Kill() error { return r.signal(syscall.SIGKILL) }

// Pause suspends the server: connections hang. Resume continues it.
func (r *Redis) Pause() error { return r.signal(syscall.SIGSTOP) }

// Resume continues a paused server.
func (r *Redis) Resume() error { return r.signal(syscall.SIGCONT) }

func (r *Redis) signal(signal syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return signalServer(r.server, r.data(), redisComm, signal)
}

func (r *Redis) data() string { return filepath.Join(r.folder, "data") }

func (r *Redis) socket() string { return filepath.Join(r.sockets, redisSocket) }

// RedisInstalled returns nil if the server's program is installed, otherwise an ErrNotInstalled that names the package.
func RedisInstalled() error {
	if _, err := exec.LookPath(redisComm); err != nil {
		return fmt.Errorf("%w: redis-server (apt-get install redis-server)", ErrNotInstalled)
	}
	return nil
}
