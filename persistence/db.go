package persistence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"turnstone/protocol"
)

const (
	connectTimeout = 2 * time.Second
	acquireTimeout = time.Second     // a request never waits longer for a connection, dialling included
	requestTimeout = 5 * time.Second // of one call here
	probeTimeout   = time.Second

	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 3 * time.Second
	keepAliveCount    = 3
	unackedTimeout    = 10 * time.Second // TCP_USER_TIMEOUT: a peer that is gone without a word

	maxMessage = 128 << 20 // bytes of one message of Postgres, as a row

	// A connection that nobody needed for so long is closed, so that a quiet node gives back what a busy hour took.
	keepIdle  = 30 * time.Second
	idleCheck = 10 * time.Second

	defaultConns       = 16
	defaultEngineConns = 6 // journal writers, lease, sweeps, and one to spare
	jobConns           = 4
)

// The roles of the service; see migrations/002_roles.sql.
const (
	appRole    = "turnstone_app"
	engineRole = "turnstone_engine"
)

// sessionSettings bound what a session may do to others, whatever becomes of its client.
var sessionSettings = map[string]string{
	"application_name":                    "turnstone",
	"search_path":                         "public",
	"timezone":                            "UTC",
	"statement_timeout":                   "5s",
	"lock_timeout":                        "2s",
	"idle_in_transaction_session_timeout": "2s",
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "3",
	"tcp_keepalives_count":                "3",
	"tcp_user_timeout":                    "10000",
}

// planSettings keep plans by key and in the order of an index: each statement has its index, and must go on to use it
// while the statistics call a table small that has just grown, or all accounts small of which one is not (ADR 14). They
// hold for our statements only: those of the job queue are written for a planner that may sort.
var planSettings = map[string]string{
	"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_sort": "off",
	"enable_incremental_sort": "off",
	"jit":                     "off", // what these settings forbid, Postgres counts as dear enough to be compiled
}

// engineSettings keep the plans, too: of a statement over arrays Postgres would make a new one each time, at four times
// the price of running it for two turns.
var engineSettings = map[string]string{"plan_cache_mode": "force_generic_plan"}

// Config says where Postgres is. Zero numbers mean the defaults.
type Config struct {
	URL         string        // of the login role
	MaxConns    int32         // of requests
	EngineConns int32         // of the journal, the lease and the sweeps
	KeyWait     time.Duration // how long a request waits for another one with its Idempotency-Key; 5 s
	Logger      *zap.Logger
}

// DB is the way to Postgres. Its methods may be called from any goroutine.
type DB struct {
	// Set by Open.
	app    *pgxpool.Pool
	engine *pgxpool.Pool
	jobs   *river.Client[pgx.Tx] // inserts only
	// What every request looks up.
	sessions *lookups[[][]byte, *Session]
	keys     *lookups[accountKey, *keptAnswer]
	log      *zap.Logger
	config   Config

	streaming streamingMessages

	// Guarded by mu.
	mu    sync.Mutex
	probe *pgx.Conn // of Ready alone, so that a busy pool does not look like a dead server
}

// Open connects and refuses, with one clear line, a server or a role on which the promises would not hold.
func Open(ctx context.Context, config Config) (*DB, error) {
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	if config.MaxConns == 0 {
		config.MaxConns = defaultConns
	}
	if config.EngineConns == 0 {
		config.EngineConns = defaultEngineConns
	}
	if config.KeyWait == 0 {
		config.KeyWait = defaultKeyWait
	}
	db := &DB{log: config.Logger, config: config}
	db.sessions, db.keys = newLookups(db.findSessions), newLookups(db.findKeys)
	var err error
	if db.app, err = db.pool(ctx, appRole, config.MaxConns, planSettings); err != nil {
		return nil, err
	}
	if db.engine, err = db.pool(ctx, engineRole, config.EngineConns, planSettings, engineSettings); err != nil {
		db.app.Close()
		return nil, err
	}
	if db.jobs, err = newInserter(db); err == nil {
		err = db.check(ctx)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Close ends every connection and waits for those in use.
func (db *DB) Close() {
	db.mu.Lock()
	if db.probe != nil {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		_ = db.probe.Close(ctx) // nothing is under way on it
		cancel()
		db.probe = nil
	}
	db.mu.Unlock()
	db.engine.Close()
	db.app.Close()
}

func (db *DB) pool(ctx context.Context, role string, conns int32, settings ...map[string]string) (*pgxpool.Pool, error) {
	config, err := poolConfig(db.config.URL, role)
	if err != nil {
		return nil, err
	}
	config.MaxConns = conns
	for _, s := range settings {
		maps.Copy(config.ConnConfig.RuntimeParams, s)
	}
	if role == appRole {
		config.AfterConnect = learnLife
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// poolConfig reads a URL. The parser's error may show the password, so it is not passed on.
func poolConfig(url, role string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database address is not a Postgres URL, as postgres://user@host:5432/turnstone")
	}
	config.PingTimeout = acquireTimeout
	config.MaxConnIdleTime, config.HealthCheckPeriod = keepIdle, idleCheck
	config.PrepareConn = quiet
	config.ConnConfig.BuildFrontend = frontend
	config.ConnConfig.ConnectTimeout = connectTimeout
	config.ConnConfig.DialFunc = dialer().DialContext
	maps.Copy(config.ConnConfig.RuntimeParams, sessionSettings)
	if role != "" {
		config.ConnConfig.RuntimeParams["role"] = role
	}
	return config, nil
}

// frontend reads no message that is longer than any of ours can be: the length comes before anything else of a message,
// and of bytes that are no answer of Postgres it would be gigabytes, waited for and allocated.
func frontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	f := pgproto3.NewFrontend(r, w)
	f.SetMaxBodyLen(maxMessage)
	return f
}

func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout: connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
		},
		Control: func(network, _ string, raw syscall.RawConn) error {
			if network == "unix" {
				return nil
			}
			var failed error
			err := raw.Control(func(fd uintptr) {
				failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unackedTimeout.Milliseconds()))
			})
			return errors.Join(err, failed)
		},
	}
}

// acquire takes a connection out of a pool, or says unavailable within acquireTimeout.
func acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, unavailable(fmt.Errorf("taking a connection: %w", err))
	}
	return conn, nil
}

// Ready asks the server over a connection of its own.
func (db *DB) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.probe == nil || db.probe.IsClosed() {
		conn, err := pgx.ConnectConfig(ctx, db.app.Config().ConnConfig)
		if err != nil {
			return unavailable(err)
		}
		db.probe = conn
	}
	if _, err := db.probe.Exec(ctx, "select 1"); err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
		defer cancel()
		_ = db.probe.Close(closing) // the next probe dials again
		return unavailable(err)
	}
	return nil
}

// PoolStats is what the metrics show of a pool.
type PoolStats struct {
	Name                    string
	Max, Total, Idle, InUse int32
	Waited                  int64 // acquisitions that had to wait
}

// Stats reads both pools.
func (db *DB) Stats() []PoolStats {
	stats := make([]PoolStats, 0, 2)
	for _, p := range []struct {
		name string
		pool *pgxpool.Pool
	}{{"app", db.app}, {"engine", db.engine}} {
		s := p.pool.Stat()
		stats = append(stats, PoolStats{p.name, s.MaxConns(), s.TotalConns(), s.IdleConns(), s.AcquiredConns(), s.EmptyAcquireCount()})
	}
	return stats
}

// Nobody is the account of statements before anybody is known: they see only tables without row-level security.
var Nobody protocol.AccountID

const (
	setAccountSQL = `select set_config('turnstone.account_id', $1, true)`
	// Shared trips have statements of one shape, whose plans do not get better when each is made for its values. Left to
	// itself Postgres plans them anew each time, since it takes shorter arrays for cheaper than it thinks the usual ones to be.
	keepPlans   = `set_config('plan_cache_mode', 'force_generic_plan', true)`
	keepPlanSQL = `select ` + keepPlans
	// For a trip that several accounts share; see migrations/004_shared_trips.sql.
	setAccountsSQL = `select set_config('turnstone.account_ids', $1, true), ` + keepPlans
)

// Send runs a batch for an account in one round trip, as one implicit transaction: all of it is stored or nothing, and
// the account is set for exactly its length. A failed callback does not undo anything: what a statement finds must not
// decide whether the others count; that is InTx.
func (db *DB) Send(ctx context.Context, account protocol.AccountID, batch *pgx.Batch) error {
	return classify(db.send(ctx, db.app, account, batch))
}

func (db *DB) send(ctx context.Context, pool *pgxpool.Pool, account protocol.AccountID, batch *pgx.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := acquire(ctx, pool)
	if err != nil {
		return err
	}
	defer conn.Release()
	whole := &pgx.Batch{}
	if account != Nobody {
		whole.Queue(setAccountSQL, uuidText(account))
	}
	whole.QueuedQueries = append(whole.QueuedQueries, batch.QueuedQueries...)
	return lost(conn.Conn(), conn.SendBatch(ctx, whole).Close())
}

// Rows runs one reading statement for an account. None found is an empty slice.
func Rows[T any](ctx context.Context, db *DB, account protocol.AccountID, to pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	var found []T
	batch := &pgx.Batch{}
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, to)
		return err
	})
	if err := db.Send(ctx, account, batch); err != nil {
		return nil, err
	}
	return found, nil
}

// Row is Rows for at most one: protocol.CodeNotFound when there is none.
func Row[T any](ctx context.Context, db *DB, account protocol.AccountID, to pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	found, err := Rows(ctx, db, account, to, sql, args...)
	if err == nil && len(found) == 0 {
		err = classify(pgx.ErrNoRows)
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}

// Exec runs one writing statement for an account and tells how many rows it touched. It is for statements whose
// repetition is harmless: when the answer is lost the outcome stays unknown.
func (db *DB) Exec(ctx context.Context, account protocol.AccountID, sql string, args ...any) (int64, error) {
	var tag pgconn.CommandTag
	batch := &pgx.Batch{}
	batch.Queue(sql, args...).Exec(func(t pgconn.CommandTag) error {
		tag = t
		return nil
	})
	err := db.send(ctx, db.app, account, batch)
	if err != nil && !refused(err) && protocol.CodeOf(err) == protocol.CodeInternal && transport(err) {
		return 0, outcomeUnknown(err)
	}
	return tag.RowsAffected(), classify(err)
}

func uuidText[T ~[16]byte](id T) string { return protocol.NodeID(id).String() }

// accountArray spells accounts as an array, as setAccountsSQL takes them.
func accountArray(accounts []protocol.AccountID) string {
	text := make([]byte, 0, len(accounts)*37+2)
	text = append(text, '{')
	for i, account := range accounts {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, uuidText(account)...)
	}
	return string(append(text, '}'))
}
