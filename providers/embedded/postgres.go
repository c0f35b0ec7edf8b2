package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"turnstone/providers/embedded/process"
)

// ErrNotInstalled means that the server's program is not installed on the host computer. The errors that wrap it name the package to
// install.
var ErrNotInstalled = errors.New("not installed")

const (
	// Superuser is the superuser role of a new cluster.
	Superuser = "postgres"

	oldestPostgres = 15
	debianPostgres = "/usr/lib/postgresql"
	postgresComm   = "postgres"
	postgresPort   = "5432" // only a part of the socket's name: nothing listens on TCP
	postgresSocket = ".s.PGSQL." + postgresPort
	pidFile        = "postmaster.pid"

	// startTimeout limits the start of a server. It includes the recovery of a crashed cluster.
	startTimeout = 60 * time.Second
	fastGrace    = 10 * time.Second // for SIGINT: sessions end, a checkpoint is written
	quitGrace    = 5 * time.Second  // for SIGQUIT: immediate, with recovery at the next start
)

// PostgresOptions configure a Postgres. Logger may be nil.
type PostgresOptions struct {
	DataDir       string            // a folder for this server only; created if missing
	ExtraSettings map[string]string // replace the defaults, by the names of the server
	Logger        *zap.Logger
}

// Postgres is a private server on a unix socket. Its methods may be called from any goroutine.
type Postgres struct {
	// Set by StartPostgres.
	options PostgresOptions
	account account
	folder  string // the server's folder; its subfolder "data" is the cluster
	sockets string

	// Guarded by mu.
	mu     sync.Mutex
	lock   *FolderLock      // nil for a guest, which neither starts nor stops the server
	server *process.Process // nil for a guest and while stopped
}

// StartPostgres creates the cluster if there is none, starts the server and returns when it accepts connections. If
// another process owns the folder, it waits for that process's server instead. The wait for a server ends with ctx, or
// after startTimeout.
func StartPostgres(ctx context.Context, options PostgresOptions) (*Postgres, error) {
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	dir, err := filepath.Abs(options.DataDir)
	if err != nil {
		return nil, fmt.Errorf("private Postgres: %w", err)
	}
	options.DataDir = dir
	p := &Postgres{options: options}
	if err := p.prepare(); err != nil {
		return nil, fmt.Errorf("private Postgres: %w", err)
	}
	if p.lock == nil {
		if err := p.awaitOwner(ctx); err != nil {
			return nil, fmt.Errorf("private Postgres: %w", err)
		}
		return p, nil
	}
	if err := p.Start(ctx); err != nil {
		return nil, errors.Join(err, p.lock.Unlock())
	}
	return p, nil
}

func (p *Postgres) prepare() (err error) {
	if p.account, err = serverAccount("postgres", "nobody"); err != nil {
		return err
	}
	if p.folder, err = p.account.serverFolder(p.options.DataDir); err != nil {
		return err
	}
	if p.sockets, err = p.account.socketFolder(p.options.DataDir, p.folder, postgresSocket); err != nil {
		return err
	}
	if p.lock, err = LockFolder(p.folder); errors.Is(err, ErrLocked) {
		return nil
	}
	return err
}

// awaitOwner waits until the server of the folder's owner accepts connections.
func (p *Postgres) awaitOwner(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := poll(ctx, func() (bool, error) { return p.status() == statusReady, nil }); err != nil {
		return fmt.Errorf("%s is owned by another process, whose server did not become ready: %w", p.folder, err)
	}
	return nil
}

// Start starts a server that was stopped or has exited. It does nothing for a guest, or if the server is running.
func (p *Postgres) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock == nil || (p.server != nil && !p.server.Exited()) {
		return nil
	}
	if err := p.start(ctx); err != nil {
		return fmt.Errorf("private Postgres: %w", err)
	}
	return nil
}

func (p *Postgres) start(ctx context.Context) error {
	started := time.Now()
	bin, err := findPostgres(p.data())
	if err != nil {
		return err
	}
	if err := p.removeStale(ctx); err != nil {
		return err
	}
	if err := p.initialise(ctx, bin); err != nil {
		return err
	}
	logPath := filepath.Join(p.folder, "server.log")
	log, err := openLog(logPath)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := p.command(filepath.Join(bin, "postgres"), p.arguments()...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = p.account.attributes(syscall.SIGINT)
	server, err := process.Start(cmd)
	if err != nil {
		return err
	}
	if err := p.awaitReady(ctx, server); err != nil {
		stopErr := server.Stop(context.WithoutCancel(ctx), process.Step{Signal: syscall.SIGQUIT, Grace: quitGrace})
		return errors.Join(fmt.Errorf("%w; %s", err, lastLines(logPath)), stopErr)
	}
	p.server = server
	p.options.Logger.Info("private Postgres is up", zap.Duration("took", time.Since(started)), zap.String("folder", p.folder))
	return nil
}

func (p *Postgres) awaitReady(ctx context.Context, server *process.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := poll(ctx, func() (bool, error) {
		if server.Exited() {
			return false, fmt.Errorf("the server exited while starting: %w", server.Err())
		}
		return p.status() == statusReady, nil
	})
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("the server did not become ready: %w", err)
	}
	return err
}

// removeStale removes what a previous owner has left: its server, if that is still running, and the files that indicate
// a running server. The pid file protects the shared memory of the cluster's processes, so it may be removed only after
// the last process has exited.
func (p *Postgres) removeStale(ctx context.Context) error {
	err := clearOrphans(ctx, p.data(), postgresComm, p.PID,
		process.Step{Signal: syscall.SIGINT, Grace: fastGrace}, process.Step{Signal: syscall.SIGQUIT, Grace: quitGrace})
	if err != nil {
		return err
	}
	for _, stale := range []string{
		filepath.Join(p.data(), pidFile),
		filepath.Join(p.sockets, postgresSocket),
		filepath.Join(p.sockets, postgresSocket+".lock"),
	} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the files of an earlier server: %w", err)
		}
	}
	return nil
}

// initialise creates the cluster under another name first and then renames it, so that an incomplete cluster is never
// taken for a complete one.
func (p *Postgres) initialise(ctx context.Context, bin string) error {
	if _, err := os.Lstat(filepath.Join(p.data(), "PG_VERSION")); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	unfinished := filepath.Join(p.folder, "data.new")
	for _, dir := range []string{unfinished, p.data()} { // data without PG_VERSION is not a cluster
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing an unfinished cluster: %w", err)
		}
	}
	if err := p.account.makeOwned(unfinished); err != nil {
		return fmt.Errorf("creating the cluster's folder: %w", err)
	}
	output := new(strings.Builder)
	cmd := p.command(filepath.Join(bin, "initdb"), "--pgdata="+unfinished, "--username="+Superuser, "--encoding=UTF8",
		"--locale=C.UTF-8", "--auth=trust", "--no-instructions")
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = p.account.attributes(syscall.SIGKILL)
	initdb, err := process.Start(cmd)
	if err != nil {
		return err
	}
	select {
	case <-initdb.Done():
	case <-ctx.Done():
		return errors.Join(ctx.Err(), initdb.Stop(context.WithoutCancel(ctx)))
	}
	if err := initdb.Err(); err != nil {
		return fmt.Errorf("creating a cluster with initdb: %w: %s", err, strings.TrimSpace(output.String()))
	}
	if err := os.Rename(unfinished, p.data()); err != nil {
		return fmt.Errorf("renaming the new cluster: %w", err)
	}
	return nil
}

// command returns a command for a program of Postgres. It does not pass our environment, which may contain secrets and
// PG* variables.
func (p *Postgres) command(path string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(path, arguments...)
	cmd.Dir = p.folder
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	return cmd
}

// arguments returns the server's arguments, with the settings for development: durable as in production,
// little memory, and a log that never contains statements or values.
func (p *Postgres) arguments() []string {
	settings := map[string]string{
		"listen_addresses":        "",
		"port":                    postgresPort,
		"unix_socket_directories": p.sockets,
		"unix_socket_permissions": "0700",
		"max_connections":         "200",
		"shared_buffers":          "128MB",
		"fsync":                   "on",
		"full_page_writes":        "on",
		"synchronous_commit":      "on",
		"wal_level":               "minimal",
		"max_wal_senders":         "0",
		"max_wal_size":            "1GB",
		"min_wal_size":            "128MB",
		"wal_compression":         "on",
		"checkpoint_timeout":      "15min",
		"jit":                     "off",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"log_checkpoints":         "off",
		"log_error_verbosity":     "terse",
		"log_min_error_statement": "panic",
	}
	for name, value := range p.options.ExtraSettings {
		settings[name] = value
	}
	names := make([]string, 0, len(settings))
	for name := range settings {
		names = append(names, name)
	}
	sort.Strings(names)
	arguments := []string{"-D", p.data()}
	for _, name := range names {
		arguments = append(arguments, "-c", name+"="+settings[name])
	}
	return arguments
}

// DSN returns the address of a database for a role, in the form that pgx and psql accept.
func (p *Postgres) DSN(role, database string) string {
	dsn := url.URL{
		Scheme:   "postgres",
		User:     url.User(role),
		Path:     "/" + database,
		RawQuery: url.Values{"host": {p.sockets}, "port": {postgresPort}}.Encode(),
	}
	return dsn.String()
}

// Folder returns the folder of the server's files: the data folder, or another one if the server's account cannot
// access that.
func (p *Postgres) Folder() string { return p.folder }

// Owned reports whether this process owns the server, so that the server ends with it.
func (p *Postgres) Owned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lock != nil
}

// Done returns a channel that is closed when the current server ends, on purpose or not; nil for a guest or a stopped
// server.
func (p *Postgres) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return nil
	}
	return p.server.Done()
}

// Stop stops the server: with SIGINT (sessions end, checkpoint), and with SIGQUIT after a grace period or when ctx
// ends. The folder stays locked until Close, so that Start can follow. A guest's Stop does nothing.
func (p *Postgres) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return nil
	}
	_ = signalServer(p.server, p.data(), postgresComm, syscall.SIGCONT) // a paused server would not handle the stop signals
	err := p.server.Stop(ctx, process.Step{Signal: syscall.SIGINT, Grace: fastGrace}, process.Step{Signal: syscall.SIGQUIT, Grace: quitGrace})
	if err != nil {
		return fmt.Errorf("private Postgres: %w", err)
	}
	p.server = nil
	p.options.Logger.Info("private Postgres is down")
	return nil
}

// Close stops the server and unlocks the folder.
func (p *Postgres) Close(ctx context.Context) error {
	err := p.Stop(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock == nil {
		return err
	}
	err = errors.Join(err, p.lock.Unlock())
	p.lock = nil
	return err
}

// Restart stops the server as Stop does and starts it again.
func (p *Postgres) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// StopAtOnce shuts the server down immediately: sessions end, nothing is written, and the next start recovers from the
// log.
func (p *Postgres) StopAtOnce(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return nil
	}
	if err := p.server.Stop(ctx, process.Step{Signal: syscall.SIGQUIT, Grace: quitGrace}); err != nil {
		return fmt.Errorf("private Postgres: %w", err)
	}
	p.server = nil
	return nil
}

// Kill ends every process of the server with SIGKILL, as a crash of the host computer would, and waits until they have
// exited.
func (p *Postgres) Kill() error { return p.signal(syscall.SIGKILL) }

// Pause suspends every process of the server: connections hang. Resume continues them.
func (p *Postgres) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume continues a paused server.
func (p *Postgres) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Postgres) signal(signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return signalServer(p.server, p.data(), postgresComm, signal)
}

func (p *Postgres) data() string { return filepath.Join(p.folder, "data") }

const statusReady = "ready"

// status returns the status line of the pid file, which the server writes: "starting", "ready" or "stopping"; empty
// without a pid file.
func (p *Postgres) status() string {
	const statusLine = 7
	lines := p.pidLines()
	if len(lines) <= statusLine {
		return ""
	}
	return strings.TrimSpace(lines[statusLine])
}

// PID returns the process id of the server's main process, from its pid file; -1 without one.
func (p *Postgres) PID() int {
	lines := p.pidLines()
	if len(lines) == 0 {
		return -1
	}
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return -1
	}
	return pid
}

func (p *Postgres) pidLines() []string {
	text, err := os.ReadFile(filepath.Join(p.data(), pidFile))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// PostgresProgram returns the path of a program, for example psql, of the newest installed version.
func PostgresProgram(name string) (string, error) {
	bin, err := findPostgres("")
	return filepath.Join(bin, name), err
}

// findPostgres returns the folder of the programs: those of the version that created the cluster in data, otherwise the
// newest.
func findPostgres(data string) (string, error) {
	version, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err == nil {
		major := strings.TrimSpace(string(version))
		if bin := filepath.Join(debianPostgres, major, "bin"); runnable(bin) {
			return bin, nil
		}
	}
	newest, bin := 0, ""
	folders, _ := filepath.Glob(filepath.Join(debianPostgres, "*", "bin")) // the pattern is well formed
	for _, folder := range folders {
		major, err := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		if err == nil && major >= oldestPostgres && major > newest && runnable(folder) {
			newest, bin = major, folder
		}
	}
	if bin != "" {
		return bin, nil
	}
	if path, err := exec.LookPath("postgres"); err == nil && runnable(filepath.Dir(path)) {
		return filepath.Dir(path), nil
	}
	return "", fmt.Errorf("%w: PostgreSQL %d or newer (apt-get install postgresql-15)", ErrNotInstalled, oldestPostgres)
}

func runnable(bin string) bool {
	for _, program := range []string{"postgres", "initdb"} {
		if info, err := os.Stat(filepath.Join(bin, program)); err != nil || info.Mode().Perm()&0o111 == 0 {
			return false
		}
	}
	return true
}

// signalServer signals all processes of a server that this process owns. After SIGKILL it waits until they have exited.
func signalServer(server *process.Process, dir, comm string, signal syscall.Signal) error {
	if server == nil {
		return errors.New("this process has no running server")
	}
	pids, err := serversIn(dir, comm)
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
		left, err := serversIn(dir, comm)
		signalAll(left, signal) // the server may have started one after it was listed
		return len(left) == 0 && server.Exited(), err
	})
}
