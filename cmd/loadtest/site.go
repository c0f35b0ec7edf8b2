package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"turnstone/persistence"
	"turnstone/providers/embedded"
)

// The names in the private Postgres.
const (
	databaseName  = "turnstone"
	databaseOwner = "turnstone_owner"
	databaseLogin = "turnstone"
)

// raisedLimits are at work as in production, with room for the load of a whole town on a few accounts.
var raisedLimits = []string{
	"TURNSTONE_LIMIT_CHAT=10000000/1m burst 1000000", "TURNSTONE_LIMIT_WRITES=10000000/1m burst 1000000",
	"TURNSTONE_LIMIT_READS=10000000/1m burst 1000000", "TURNSTONE_LIMIT_REPLAYS=10000000/1m burst 1000000", "TURNSTONE_LIMIT_SIGNIN=1000000/1m burst 100000",
	"TURNSTONE_MAX_LIVE_TURNS=100000", "TURNSTONE_MAX_STREAMS=100000",
}

// site is everything that a measurement needs: the servers, the model, the service and the baselines, each in a process
// of its own, on this machine's own disk.
type site struct {
	program  *program
	binary   string
	folder   string
	postgres *embedded.Postgres
	redis    *embedded.Redis
	secret   string
	model    *child
	proxy    *child
	sse      *child
	service  *child
	public   string
	internal string
	steady   bool // the service comes back where it was, as readers that resume need it
	accounts []*account
}

// newSite starts everything.
func newSite(ctx context.Context, p *program, binary, folder string) (_ *site, err error) {
	s := &site{program: p, secret: rand.Text() + rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}()
	if s.binary, err = filepath.Abs(binary); err != nil {
		return nil, err
	}
	if err = os.MkdirAll(folder, 0o711); err != nil {
		return nil, err
	}
	if s.folder, err = os.MkdirTemp(folder, "site-"); err != nil {
		return nil, err
	}
	if s.folder, err = filepath.Abs(s.folder); err != nil {
		return nil, err
	}
	if err = os.Chmod(s.folder, 0o711); err != nil { // the servers' accounts pass through
		return nil, err
	}
	if err = s.startStores(ctx); err != nil {
		return nil, err
	}
	if s.model, err = startOwn(ctx, s.folder, "upstream"); err != nil {
		return nil, err
	}
	if err = errors.Join(s.startProxy(ctx), s.startSSE(ctx)); err != nil {
		return nil, err
	}
	_, err = s.startService(ctx)
	return s, err
}

func (s *site) startStores(ctx context.Context) (err error) {
	s.postgres, err = embedded.StartPostgres(ctx, embedded.PostgresOptions{DataDir: filepath.Join(s.folder, "postgres")})
	if err != nil {
		return err
	}
	s.redis, err = embedded.StartRedis(ctx, embedded.RedisOptions{DataDir: filepath.Join(s.folder, "redis")})
	if err != nil {
		return err
	}
	if err = s.makeDatabase(ctx, databaseName); err != nil {
		return err
	}
	return s.ageLog(ctx)
}

// oldSegments of Postgres' write-ahead log, of 16 MB, are there before anything is measured; max_wal_size keeps 64.
const oldSegments = 60

// ageLog brings the write-ahead log to where it is in a server that has been through a checkpoint and writes its old
// segments anew. A young server fills each segment with zeros first, and every commit waits for that: 40 ms here.
func (s *site) ageLog(ctx context.Context) error {
	statements := "create table age (n int);\n" + strings.Repeat("insert into age values (1); select pg_switch_wal();\n", oldSegments) +
		"drop table age; checkpoint;\n"
	_, err := s.sql(ctx, statements)
	return err
}

// makeDatabase makes a database with the service's schema.
func (s *site) makeDatabase(ctx context.Context, name string) error {
	err := persistence.Provision(ctx, s.postgres.DSN(embedded.Superuser, "postgres"), name, databaseOwner, databaseLogin)
	if err != nil {
		return err
	}
	return persistence.Migrate(ctx, s.postgres.DSN(databaseOwner, name),
		persistence.MigrateOptions{Login: databaseLogin, Logger: zap.NewNop()})
}

// startService starts `turnstone serve` and answers how long it took until it was ready.
func (s *site) startService(ctx context.Context) (time.Duration, error) {
	if !s.steady {
		if err := s.move(ctx); err != nil {
			return 0, err
		}
	}
	log, err := os.OpenFile(filepath.Join(s.folder, "service.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.binary, "serve")
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.folder, log, log
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"DATABASE_URL=" + s.postgres.DSN(databaseLogin, databaseName), "REDIS_URL=" + s.redis.URL(), "TURNSTONE_SECRET=" + s.secret,
		"TURNSTONE_LISTEN=" + s.public, "TURNSTONE_INTERNAL_LISTEN=" + s.internal, "TURNSTONE_DATA_DIR=" + filepath.Join(s.folder, "data"),
		"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_API=chat", "TURNSTONE_MODEL_BASE_URL=http://" + s.model.address + "/v1",
		"TURNSTONE_MODEL_BALANCED=load", "TURNSTONE_DRAIN_GRACE=1s",
	}, raisedLimits...)
	begun := time.Now()
	if s.service, err = startChild("turnstone", cmd); err != nil {
		return 0, err
	}
	err = until(ctx, startPatience, func() (bool, error) {
		select {
		case <-s.service.done:
			return false, fmt.Errorf("the service does not start; see %s", log.Name())
		default:
		}
		_, err := call(ctx, http.MethodGet, "http://"+s.internal+"/ready", nil, nil, http.StatusOK, nil)
		return err == nil, nil
	})
	return time.Since(begun), err
}

// move gives the service other addresses.
func (s *site) move(ctx context.Context) (err error) {
	if s.public, err = freeAddress(ctx); err != nil {
		return err
	}
	if s.internal, err = freeAddress(ctx); err != nil {
		return err
	}
	for _, a := range s.accounts {
		a.host = s.public
	}
	return nil
}

// The servers are started again before their memory is measured, so that nothing is left of what they did before.

func (s *site) restartService(ctx context.Context) error {
	if err := s.service.stop(); err != nil {
		return err
	}
	_, err := s.startService(ctx)
	return err
}

func (s *site) startProxy(ctx context.Context) (err error) {
	s.proxy, err = startOwn(ctx, s.folder, "baseline", "proxy", "--to=http://"+s.model.address)
	return err
}

func (s *site) startSSE(ctx context.Context) (err error) {
	s.sse, err = startOwn(ctx, s.folder, "baseline", "sse")
	return err
}

func (s *site) restartProxy(ctx context.Context) error {
	if err := s.proxy.stop(); err != nil {
		return err
	}
	return s.startProxy(ctx)
}

func (s *site) restartSSE(ctx context.Context) error {
	if err := s.sse.stop(); err != nil {
		return err
	}
	return s.startSSE(ctx)
}

func (s *site) base() string { return "http://" + s.public }

// freeAddress is one that nobody listens on, most likely still when the service does.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// accountsOf is how many accounts live turns need so that no limit of an account is met.
func accountsOf(turns int) int { return (turns + turnsEach - 1) / turnsEach }

// users are at least n accounts; those that are missing sign up.
func (s *site) users(ctx context.Context, n int) ([]*account, error) {
	if missing := n - len(s.accounts); missing > 0 {
		more, err := signUp(ctx, s.base(), missing)
		if err != nil {
			return nil, err
		}
		s.accounts = append(s.accounts, more...)
	}
	return s.accounts[:n], nil
}

// endTurns makes the model end every answer that it is giving.
func (s *site) endTurns(ctx context.Context) error {
	_, err := call(ctx, http.MethodPost, "http://"+s.model.address+"/end", nil, nil, http.StatusOK, nil)
	return err
}

// settle waits until the service and Postgres have nothing left to do of what went before.
func (s *site) settle(ctx context.Context) error {
	const still, patience = 200 * time.Millisecond, 30 * time.Second
	const quiet = 3 * tick // the keeper's and the pools' own work
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		before, err := s.cpu()
		if err != nil {
			return err
		}
		if err := wait(ctx, still); err != nil {
			return fmt.Errorf("the service does not come to rest: %w", err)
		}
		after, err := s.cpu()
		if err != nil || after.service+after.postgres-before.service-before.postgres <= quiet {
			return err
		}
	}
}

// usage is the processor time of each part so far.
type usage struct {
	service, postgres, proxy, sse, model, own, machine time.Duration
}

func (s *site) cpu() (u usage, err error) {
	postmaster, err := s.postmaster()
	if err != nil {
		return u, err
	}
	var errs [8]error
	u.postgres, errs[0] = cpuOfFamily(postmaster)
	for i, each := range []struct {
		of   *child
		into *time.Duration
	}{{s.service, &u.service}, {s.proxy, &u.proxy}, {s.sse, &u.sse}, {s.model, &u.model}} {
		*each.into, errs[i+1] = cpuOf(each.of.pid())
	}
	u.own, errs[5] = cpuOf(os.Getpid())
	u.machine, errs[6] = busy()
	return u, errors.Join(errs[:]...)
}

func (u usage) minus(before usage) usage {
	return usage{
		service: u.service - before.service, postgres: u.postgres - before.postgres, proxy: u.proxy - before.proxy,
		sse: u.sse - before.sse, model: u.model - before.model, own: u.own - before.own, machine: u.machine - before.machine,
	}
}

// foreign is what the machine worked for others, the kernel's own threads and Redis included.
func (u usage) foreign() time.Duration {
	return max(0, u.machine-u.service-u.postgres-u.proxy-u.sse-u.model-u.own)
}

// postmaster is the process of Postgres that has all others as children.
func (s *site) postmaster() (int, error) {
	for _, folder := range []string{s.serverFolder(), filepath.Join(s.folder, "postgres")} {
		text, err := os.ReadFile(filepath.Join(folder, "data", "postmaster.pid"))
		if err != nil {
			continue
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return strconv.Atoi(strings.TrimSpace(line))
	}
	return 0, errors.New("the private Postgres has no pid file")
}

// serverFolder is where the server's account could put its files, when it could not reach ours.
func (s *site) serverFolder() string {
	text, err := os.ReadFile(filepath.Join(s.folder, "postgres", "location"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// tool finds a program of Postgres: those of the newest version on this machine.
func tool(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is well formed
	if len(found) > 0 {
		return found[len(found)-1], nil
	}
	return exec.LookPath(name)
}

// sql runs statements in the service's database; see sqlIn.
func (s *site) sql(ctx context.Context, statements string) (string, error) {
	return s.sqlIn(ctx, databaseName, statements)
}

// sqlIn runs statements as the superuser and answers what they print, unaligned, a line a row.
func (s *site) sqlIn(ctx context.Context, database, statements string) (string, error) {
	psql, err := tool("psql")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, psql, "-XAqt", "-F", "|", "-v", "ON_ERROR_STOP=1", "-d", s.postgres.DSN(embedded.Superuser, database))
	cmd.Stdin = strings.NewReader(statements)
	complaint := new(strings.Builder)
	cmd.Stderr = complaint
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, complaint)
	}
	return strings.TrimSpace(string(output)), nil
}

// sqlNumbers reads the one row that a query answers.
func (s *site) sqlNumbers(ctx context.Context, query string) ([]float64, error) {
	text, err := s.sql(ctx, query)
	if err != nil {
		return nil, err
	}
	var numbers []float64
	for _, field := range strings.Split(text, "|") {
		n, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", field)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// profile takes the service's processor profile over the next seconds and writes it to a file.
func (s *site) profile(ctx context.Context, over time.Duration, to string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.internal, max(1, int(over.Seconds()))), nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: over + callTimeout}).Do(request)
	if err != nil {
		return fmt.Errorf("taking a profile: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}

// close stops everything and removes what it left, unless the service failed: then its log stays.
func (s *site) close(ctx context.Context) error {
	var errs []error
	for _, c := range []*child{s.service, s.proxy, s.sse, s.model} {
		errs = append(errs, c.stop())
	}
	if s.redis != nil {
		errs = append(errs, s.redis.Close(ctx))
	}
	elsewhere := s.serverFolder()
	if s.postgres != nil {
		errs = append(errs, s.postgres.Close(ctx))
	}
	if elsewhere != "" {
		errs = append(errs, os.RemoveAll(elsewhere))
	}
	err := errors.Join(errs...)
	if err == nil && s.folder != "" {
		err = os.RemoveAll(s.folder)
	}
	return err
}

// metric reads one number that the service tells about itself.
func (s *site) metric(ctx context.Context, name string) (float64, error) {
	all, err := s.metrics(ctx)
	if err != nil {
		return 0, err
	}
	value, told := all[name]
	if !told {
		return 0, fmt.Errorf("the service tells no %s", name)
	}
	return value, nil
}

// metrics are all of them, by their names with labels.
func (s *site) metrics(ctx context.Context) (map[string]float64, error) {
	text, err := s.read(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64); err == nil {
			all[line[:at]] = value
		}
	}
	return all, nil
}

// read returns a page of the internal listener.
func (s *site) read(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.internal+path, nil)
	if err != nil {
		return "", err
	}
	response, err := browser.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %d: %.300s", path, response.StatusCode, text)
	}
	return string(text), err
}

// liveHeap collects garbage and returns the bytes that are left. The profile with debug=1 begins with numbers that are
// read before any of it is written; the garbage of writing it, some MB, is not among them.
func (s *site) liveHeap(ctx context.Context) (float64, error) {
	var text string
	for range 2 { // what finalizers free goes with the second
		var err error
		if text, err = s.read(ctx, "/debug/pprof/heap?gc=1&debug=1"); err != nil {
			return 0, err
		}
	}
	for line := range strings.Lines(text) {
		if bytes, found := strings.CutPrefix(line, "# HeapAlloc = "); found {
			return strconv.ParseFloat(strings.TrimSpace(bytes), 64)
		}
	}
	return 0, errors.New("the heap profile does not say how much is allocated")
}
