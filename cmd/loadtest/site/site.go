package site

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/load"
	"turnstone/persistence/pg"
	"turnstone/providers/embedded"
)

// The database and the roles in the private Postgres.
const (
	DatabaseName  = "turnstone"
	databaseOwner = "turnstone_owner"
	DatabaseLogin = "turnstone"
)

// raisedLimits are settings under which limits are enforced as in production, but are high enough for a large load from
// a few accounts.
var raisedLimits = []string{
	"TURNSTONE_LIMIT_CHAT=10000000/1m burst 1000000", "TURNSTONE_LIMIT_WRITES=10000000/1m burst 1000000",
	"TURNSTONE_LIMIT_READS=10000000/1m burst 1000000", "TURNSTONE_LIMIT_REPLAYS=10000000/1m burst 1000000", "TURNSTONE_LIMIT_SEARCH=10000000/1m burst 1000000",
	"TURNSTONE_LIMIT_SIGNIN=1000000/1m burst 100000",
	"TURNSTONE_LIMIT_UPLOADS=10000000/1m burst 1000000", "TURNSTONE_MAX_UPLOAD_BYTES=2147483648", "TURNSTONE_MAX_FILE_BYTES=1099511627776",
	"TURNSTONE_MAX_LIVE_TURNS=100000", "TURNSTONE_MAX_STREAMS=100000", "TURNSTONE_NODE_MAX_LIVE_TURNS=0",
}

// Site is the environment of a measurement: Postgres, Redis, the model, the service and the baselines. Each is a
// separate process, with its data on this host computer's own disk.
type Site struct {
	program       *console.Console
	binary        string
	Folder        string
	Postgres      *embedded.Postgres
	Redis         *embedded.Redis
	secret        string
	Model         *Child
	Proxy         *Child
	SSE           *Child
	File          *Child
	Service       *Child
	Public        string
	Internal      string
	KeepAddresses bool // the service keeps its addresses when it is restarted, so that readers can resume
	Accounts      []*load.Account
	cluster       *Cluster // nil: the service runs alone
}

// New starts all processes of a site.
func New(ctx context.Context, p *console.Console, binary, folder string) (_ *Site, err error) {
	s := &Site{program: p, secret: rand.Text() + rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	if s.binary, err = filepath.Abs(binary); err != nil {
		return nil, err
	}
	if err = os.MkdirAll(folder, 0o711); err != nil {
		return nil, err
	}
	if s.Folder, err = os.MkdirTemp(folder, "site-"); err != nil {
		return nil, err
	}
	if s.Folder, err = filepath.Abs(s.Folder); err != nil {
		return nil, err
	}
	if err = os.Chmod(s.Folder, 0o711); err != nil { // the users that the servers run as must be able to enter it
		return nil, err
	}
	if err = s.startStores(ctx); err != nil {
		return nil, err
	}
	if s.Model, err = startOwn(ctx, s.Folder, "upstream"); err != nil {
		return nil, err
	}
	if err = errors.Join(s.startProxy(ctx), s.startSSE(ctx), s.startFile(ctx)); err != nil {
		return nil, err
	}
	_, err = s.StartService(ctx)
	return s, err
}

func (s *Site) startStores(ctx context.Context) (err error) {
	s.Postgres, err = embedded.StartPostgres(ctx, embedded.PostgresOptions{DataDir: filepath.Join(s.Folder, "postgres")})
	if err != nil {
		return err
	}
	s.Redis, err = embedded.StartRedis(ctx, embedded.RedisOptions{DataDir: filepath.Join(s.Folder, "redis")})
	if err != nil {
		return err
	}
	if err = pg.Provision(ctx, s.Postgres.DSN(embedded.Superuser, "postgres"), DatabaseName, databaseOwner, DatabaseLogin); err != nil {
		return err
	}
	if err = s.migrate(ctx); err != nil {
		return err
	}
	return s.ageLog(ctx)
}

// walSegments is the number of 16 MB segments that Postgres' write-ahead log has before anything is measured;
// max_wal_size allows 64.
const walSegments = 60

// ageLog brings the write-ahead log into the state of a server that has been running for a while, which reuses old
// segments after a checkpoint. A new server first fills each segment with zeros, and every commit waits for that (40 ms
// here).
func (s *Site) ageLog(ctx context.Context) error {
	statements := "create table age (n int);\n" + strings.Repeat("insert into age values (1); select pg_switch_wal();\n", walSegments) +
		"drop table age; checkpoint;\n"
	_, err := s.SQL(ctx, statements)
	return err
}

// migrate creates the schema of the service, which may be older than this program.
func (s *Site) migrate(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, s.binary, "migrate")
	cmd.Dir, cmd.Env = s.Folder, append(s.stores(), "TURNSTONE_MIGRATE_DATABASE_URL="+s.Postgres.DSN(databaseOwner, DatabaseName))
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("creating the schema: %w: %s", err, output)
	}
	return nil
}

// stores are the settings of the service's stores.
func (s *Site) stores() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"DATABASE_URL=" + s.Postgres.DSN(DatabaseLogin, DatabaseName), "REDIS_URL=" + s.Redis.URL(), "TURNSTONE_SECRET=" + s.secret,
	}
}

// MakeDatabase creates a further database with the schema of this program.
func (s *Site) MakeDatabase(ctx context.Context, name string) error {
	err := pg.Provision(ctx, s.Postgres.DSN(embedded.Superuser, "postgres"), name, databaseOwner, DatabaseLogin)
	if err != nil {
		return err
	}
	return pg.Migrate(ctx, s.Postgres.DSN(databaseOwner, name),
		pg.MigrateOptions{Login: DatabaseLogin, Logger: zap.NewNop()})
}

// StartService starts `turnstone serve`, with further settings, and returns the time until it was ready.
func (s *Site) StartService(ctx context.Context, settings ...string) (took time.Duration, err error) {
	if !s.KeepAddresses {
		if err := s.assignAddresses(ctx); err != nil {
			return 0, err
		}
	}
	begun := time.Now()
	s.Service, err = s.startNode(ctx, "service", s.Public, s.Internal, settings...)
	return time.Since(begun), err
}

// startNode starts a node and waits until it is ready. Its log and its data folder are named after it.
func (s *Site) startNode(ctx context.Context, name, public, internal string, more ...string) (node *Child, err error) {
	log, err := os.OpenFile(filepath.Join(s.Folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.binary, "serve")
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Folder, log, log
	cmd.Env = append(append(s.stores(),
		"TURNSTONE_LISTEN="+public, "TURNSTONE_INTERNAL_LISTEN="+internal, "TURNSTONE_CONTENT_LISTEN=off", "TURNSTONE_DATA_DIR="+filepath.Join(s.Folder, name),
		"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_API=chat", "TURNSTONE_MODEL_BASE_URL=http://"+s.Model.Address+"/v1",
		"TURNSTONE_MODEL_BALANCED=load", "TURNSTONE_DRAIN_GRACE=1s",
	), append(more, raisedLimits...)...)
	if node, err = StartChild("turnstone", cmd); err != nil {
		return nil, err
	}
	return node, load.Until(ctx, startTimeout, func() (bool, error) {
		select {
		case <-node.Done():
			return false, fmt.Errorf("the service ended before it was ready; see %s", log.Name())
		default:
		}
		_, err := load.Fetch(ctx, http.MethodGet, "http://"+internal+"/ready")
		return err == nil, nil
	})
}

// assignAddresses assigns new addresses to the service.
func (s *Site) assignAddresses(ctx context.Context) error {
	public, err := FreeAddress(ctx)
	if err != nil {
		return err
	}
	internal, err := FreeAddress(ctx)
	if err != nil {
		return err
	}
	return s.moveTo(public, internal)
}

// moveTo makes the accounts use the service at the given addresses, where it starts next.
func (s *Site) moveTo(public, internal string) error {
	s.Public, s.Internal = public, internal
	for _, a := range s.Accounts {
		if err := a.MoveTo(s.base()); err != nil {
			return err
		}
	}
	return nil
}

// RestartService restarts the service, for example before its memory is measured, so that earlier work does not count. The further
// settings hold until the next restart.
func (s *Site) RestartService(ctx context.Context, settings ...string) error {
	if err := s.Service.Stop(); err != nil {
		return err
	}
	_, err := s.StartService(ctx, settings...)
	return err
}

func (s *Site) startProxy(ctx context.Context) (err error) {
	s.Proxy, err = startOwn(ctx, s.Folder, "baseline", "proxy", "--to=http://"+s.Model.Address)
	return err
}

func (s *Site) startSSE(ctx context.Context) (err error) {
	s.SSE, err = startOwn(ctx, s.Folder, "baseline", "sse")
	return err
}

func (s *Site) startFile(ctx context.Context) (err error) {
	s.File, err = startOwn(ctx, s.Folder, "baseline", "file", "--folder="+s.Folder)
	return err
}

// RestartProxy restarts the baseline of relaying.
func (s *Site) RestartProxy(ctx context.Context) error {
	if err := s.Proxy.Stop(); err != nil {
		return err
	}
	return s.startProxy(ctx)
}

// RestartSSE restarts the baseline of streams.
func (s *Site) RestartSSE(ctx context.Context) error {
	if err := s.SSE.Stop(); err != nil {
		return err
	}
	return s.startSSE(ctx)
}

func (s *Site) base() string { return "http://" + s.Public }

// FreeAddress returns an address that no process listens on. Another process could take it before the service does,
// which is unlikely.
func FreeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// EnsureAccounts returns n accounts. It signs up those that are missing.
func (s *Site) EnsureAccounts(ctx context.Context, n int) ([]*load.Account, error) {
	if missing := n - len(s.Accounts); missing > 0 {
		more, err := load.SignUp(ctx, s.base(), missing)
		if err != nil {
			return nil, err
		}
		s.Accounts = append(s.Accounts, more...)
	}
	return s.Accounts[:n], nil
}

// EndTurns makes the model end every answer that it is streaming.
func (s *Site) EndTurns(ctx context.Context) error {
	_, err := load.Fetch(ctx, http.MethodPost, "http://"+s.Model.Address+"/end")
	return err
}

// Close stops all processes and removes their files. If a process cannot be stopped properly, the site's folder with
// the service's log is not removed.
func (s *Site) Close(ctx context.Context) error {
	errs := []error{s.cluster.stop()}
	for _, c := range []*Child{s.Service, s.Proxy, s.SSE, s.File, s.Model} {
		errs = append(errs, c.Stop())
	}
	if s.Redis != nil {
		errs = append(errs, s.Redis.Close(ctx))
	}
	if s.Postgres != nil {
		errs = append(errs, s.Postgres.Close(ctx), os.RemoveAll(s.Postgres.Folder())) // it may be outside of s.Folder
	}
	err := errors.Join(errs...)
	if err == nil && s.Folder != "" {
		err = os.RemoveAll(s.Folder)
	}
	return err
}

// LockFolder locks the folder and returns a function that unlocks it. It waits at most lockTimeout for another run that
// has the lock, since concurrent runs would distort each other's figures.
func LockFolder(ctx context.Context, folder string) (free func() error, err error) {
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return nil, err
	}
	var lock *embedded.FolderLock
	err = load.Until(ctx, lockTimeout, func() (bool, error) {
		lock, err = embedded.LockFolder(folder)
		if errors.Is(err, embedded.ErrLocked) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("locking the folder %s: %w", folder, err)
	}
	return lock.Unlock, nil
}

const lockTimeout = time.Hour
