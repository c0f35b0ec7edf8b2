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

	fastGrace = 10 * time.Second // for SIGINT: sessions end, a checkpoint is written
	quitGrace = 5 * time.Second  // for SIGQUIT
)

// immediate ends the server without a checkpoint; the next start recovers from the log.
var immediate = process.Step{Signal: syscall.SIGQUIT, Grace: quitGrace}

// PostgresOptions configure a Postgres. Logger may be nil.
type PostgresOptions struct {
	DataDir       string            // a folder for this server only; created if missing
	ExtraSettings map[string]string // replace the defaults, by the names of the server
	Logger        *zap.Logger
}

// Postgres is a private server on a unix socket. Its methods may be called from any goroutine.
type Postgres struct {
	instance
	settings map[string]string // replace the defaults, by the names of the server
}

// StartPostgres creates the cluster if there is none, starts the server and returns when it accepts connections. If
// another process owns the folder, it waits for that process's server instead. The wait for a server ends with ctx, or
// after startTimeout.
func StartPostgres(ctx context.Context, options PostgresOptions) (*Postgres, error) {
	p := &Postgres{settings: options.ExtraSettings}
	p.instance = instance{
		program: p, name: "private Postgres", comm: postgresComm, socket: postgresSocket, logger: options.Logger,
		stop: []process.Step{{Signal: syscall.SIGINT, Grace: fastGrace}, immediate},
	}
	if err := p.open(ctx, options.DataDir, "postgres", "nobody"); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Postgres) command(ctx context.Context) (*exec.Cmd, error) {
	bin, err := findPostgres(p.data())
	if err != nil {
		return nil, err
	}
	if err := p.removeStale(ctx); err != nil {
		return nil, err
	}
	if err := p.initialise(ctx, bin); err != nil {
		return nil, err
	}
	return p.run(filepath.Join(bin, "postgres"), p.arguments()...), nil
}

func (p *Postgres) ready(context.Context) bool { return p.status() == statusReady }

// removeStale removes what a previous owner has left: its server, if that is still running, and the files that indicate
// a running server. The pid file protects the shared memory of the cluster's processes, so it may be removed only after
// the last process has exited.
func (p *Postgres) removeStale(ctx context.Context) error {
	if err := clearOrphans(ctx, p.data(), p.comm, p.PID, p.stop...); err != nil {
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
	cmd := p.run(filepath.Join(bin, "initdb"), "--pgdata="+unfinished, "--username="+Superuser, "--encoding=UTF8",
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

// run returns a command for a program of Postgres. It does not pass our environment, which may contain secrets and
// PG* variables.
func (p *Postgres) run(path string, arguments ...string) *exec.Cmd {
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
	for name, value := range p.settings {
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

// StopAtOnce shuts the server down immediately: sessions end, nothing is written, and the next start recovers from the
// log.
func (p *Postgres) StopAtOnce(ctx context.Context) error { return p.stopWith(ctx, immediate) }

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
