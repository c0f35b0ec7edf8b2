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
	instance
	databases int // 0: as many as Redis has by default
}

// StartRedis starts the server and returns when it accepts connections. If another process owns the folder, it waits
// for that process's server instead. The wait for a server ends with ctx, or after startTimeout.
func StartRedis(ctx context.Context, options RedisOptions) (*Redis, error) {
	r := &Redis{databases: options.Databases}
	r.instance = instance{
		program: r, name: "private Redis", comm: redisComm, socket: redisSocket, logger: options.Logger,
		stop: []process.Step{{Signal: syscall.SIGTERM, Grace: redisGrace}},
	}
	if err := r.open(ctx, options.DataDir, "redis", "nobody"); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Redis) command(ctx context.Context) (*exec.Cmd, error) {
	if err := RedisInstalled(); err != nil {
		return nil, err
	}
	if err := r.account.makeOwned(r.data()); err != nil {
		return nil, fmt.Errorf("creating the server's folder: %w", err)
	}
	// Redis has no shared files that could be lost. A server of a previous owner may already be stopping because of its
	// parent-death signal.
	if err := clearOrphans(ctx, r.data(), r.comm, r.orphan, r.stop...); err != nil {
		return nil, err
	}
	if err := os.Remove(r.address()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the files of an earlier server: %w", err)
	}
	cmd := exec.Command(redisComm, "--port", "0", "--unixsocket", r.address(), "--unixsocketperm", "700",
		"--save", "", "--appendonly", "no", "--dir", r.data(), "--daemonize", "no",
		"--maxmemory", "256mb", "--maxmemory-policy", "noeviction")
	if r.databases > 0 {
		cmd.Args = append(cmd.Args, "--databases", strconv.Itoa(r.databases))
	}
	cmd.Dir = r.data()
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	return cmd, nil
}

// orphan returns the process id of a server in our folder, or -1. A Redis server is one process.
func (r *Redis) orphan() int {
	pids, err := serversIn(r.data(), redisComm)
	if err != nil || len(pids) == 0 {
		return -1
	}
	return pids[0]
}

// ready reports whether the server responds to PING.
func (r *Redis) ready(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: pingTimeout}
	connection, err := dialer.DialContext(ctx, "unix", r.address())
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
	address := url.URL{Scheme: "unix", Path: r.address()}
	return address.String()
}

// address returns the path of the server's socket.
func (r *Redis) address() string { return filepath.Join(r.sockets, r.socket) }

// RedisInstalled returns nil if the server's program is installed, otherwise an ErrNotInstalled that names the package.
func RedisInstalled() error {
	if _, err := exec.LookPath(redisComm); err != nil {
		return fmt.Errorf("%w: redis-server (apt-get install redis-server)", ErrNotInstalled)
	}
	return nil
}
