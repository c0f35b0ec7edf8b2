package pg

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

var (
	connectTimeout = timelimit.Of(2 * time.Second)
	// hostTimeout is the limit of the TCP connection to one of several hosts of a URL. A host that does not respond, for example that
	// of the former primary after a failover, must leave time for the next one within ProbeTimeout and acquireTimeout. pgx dials each
	// host twice, with and without TLS, if the URL does not choose.
	hostTimeout = timelimit.Of(200 * time.Millisecond)
	// acquireTimeout is the limit of the wait for a connection, including dialling. A request that gets none is refused within
	// a second, and it does more than wait.
	acquireTimeout = timelimit.Of(900 * time.Millisecond)

	// RequestTimeout is the limit of one call of this package.
	RequestTimeout = timelimit.Of(5 * time.Second)
	// ProbeTimeout is the limit of one readiness probe.
	ProbeTimeout = timelimit.Of(time.Second)
)

const (
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 3 * time.Second
	keepAliveCount    = 3
	unackedTimeout    = 10 * time.Second // TCP_USER_TIMEOUT: detects a peer that vanished without closing the connection

	maxMessage = 128 << 20 // size limit of one protocol message from Postgres, for example a row, in bytes

	// An idle connection is closed after this time, so that a quiet node releases the connections that it opened under
	// load.
	keepIdle  = 30 * time.Second
	idleCheck = 10 * time.Second

	defaultConns       = 16
	defaultEngineConns = 6 // journal writers, lease, sweeps, and one spare
	// JobConns is the number of connections of the job queue.
	JobConns = 4
)

// The roles of the service; see migrations/002_roles.sql.
const (
	AppRole    = "turnstone_app"
	EngineRole = "turnstone_engine"
)

// A node that stops or is cut off keeps the locks of a transaction until idleTimeout has passed. A statement of it that waits for
// such a lock then gets it, and keeps it as long. That statement began before the node stopped, and waits for lockTimeout at most: after
// the sum of both no row is locked any more. A transaction of another node is tried again until then (lockRetries).
const (
	lockTimeout = 800 * time.Millisecond
	idleTimeout = time.Second
	lockRetries = 2
)

// sessionSettings limit how long a session can block others, even if its client vanished.
var sessionSettings = map[string]string{
	"application_name":                    "turnstone",
	"search_path":                         "public",
	"timezone":                            "UTC",
	"statement_timeout":                   timelimit.Setting(5 * time.Second),
	"lock_timeout":                        timelimit.Setting(lockTimeout),
	"idle_in_transaction_session_timeout": timelimit.Setting(idleTimeout),
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "3",
	"tcp_keepalives_count":                "3",
	"tcp_user_timeout":                    "10000",
}

// planSettings force plans that find rows by an index and read them in its order. Every statement has such an index,
// and must keep using it while the statistics still describe a table that has just grown as small, or describe all
// accounts as small although one of them is large (ADR 14). They apply to our statements only: those of the job queue
// need sorts.
var planSettings = map[string]string{
	"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_sort": "off",
	"enable_incremental_sort": "off",
	"jit":                     "off", // Postgres estimates so high a cost for steps that are off that it would compile the plan
}

// engineSettings force generic plans: for a statement over arrays, Postgres would otherwise create a new plan each
// time, at four times the cost of running it for two turns.
var engineSettings = map[string]string{"plan_cache_mode": "force_generic_plan"}

// Config configures Open. A number that is zero selects the default.
type Config struct {
	URL         string // connection URL of the login role
	MaxConns    int32  // for requests
	EngineConns int32  // for the journal, the lease and the sweeps
	Logger      *zap.Logger
	// CheckSpace returns a protocol.CodeUnavailable error while the disk of the database is nearly full; nil: it is not
	// known.
	CheckSpace func() error
	// SelfTest is called with a connection under the role of requests. An error means that the database would break the
	// guarantees of the service.
	SelfTest func(ctx context.Context, conn *pgx.Conn) error
}

// DB is the access to Postgres. Its methods may be called from any goroutine.
type DB struct {
	// Set by Open.
	App    *pgxpool.Pool
	Engine *pgxpool.Pool
	Log    *zap.Logger
	config Config

	// Guarded by mu.
	mu    sync.Mutex
	probe *pgx.Conn // used by Ready only, so that a busy pool does not look like a dead server
}

// Open connects to Postgres. It returns a one-line error if the server, the login role or the schema would break the
// guarantees of the service.
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
	db := &DB{Log: config.Logger, config: config}
	var err error
	if db.App, err = db.Pool(ctx, AppRole, config.MaxConns, planSettings); err != nil {
		return nil, err
	}
	if db.Engine, err = db.Pool(ctx, EngineRole, config.EngineConns, planSettings, engineSettings); err != nil {
		db.App.Close()
		return nil, err
	}
	if err = db.check(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// CheckSpace returns an error while the disk of the database is nearly full. Jobs that write much call it, and are tried
// again later; requests and live turns have priority for the space that is left.
func (db *DB) CheckSpace() error {
	if db.config.CheckSpace == nil {
		return nil
	}
	return db.config.CheckSpace()
}

// Close closes every connection and waits for those in use.
func (db *DB) Close() {
	db.mu.Lock()
	if db.probe != nil {
		ctx, cancel := context.WithTimeout(context.Background(), ProbeTimeout)
		_ = db.probe.Close(ctx) // no statement is in flight
		cancel()
		db.probe = nil
	}
	db.mu.Unlock()
	db.Engine.Close()
	db.App.Close()
}

// Pool opens a pool of connections in a role. settings are additional run-time parameters of Postgres.
func (db *DB) Pool(ctx context.Context, role string, conns int32, settings ...map[string]string) (*pgxpool.Pool, error) {
	config, err := poolConfig(db.config.URL, role)
	if err != nil {
		return nil, err
	}
	config.MaxConns = conns
	for _, s := range settings {
		maps.Copy(config.ConnConfig.RuntimeParams, s)
	}
	if role == AppRole {
		config.AfterConnect = readIncarnation
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// Acquire takes a connection from a pool. The error is protocol.CodeUnavailable, within acquireTimeout.
func Acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, Unavailable(fmt.Errorf("acquiring a connection: %w", err))
	}
	return conn, nil
}

// Ready checks that the server responds, over a separate connection.
func (db *DB) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.probe == nil || db.probe.IsClosed() {
		conn, err := pgx.ConnectConfig(ctx, db.App.Config().ConnConfig)
		if err != nil {
			return Unavailable(err)
		}
		db.probe = conn
	}
	if _, err := db.probe.Exec(ctx, "select 1"); err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), ProbeTimeout)
		defer cancel()
		_ = db.probe.Close(closing) // the next probe dials again
		return Unavailable(err)
	}
	return nil
}

// PoolStats holds the figures of a pool that the metrics show.
type PoolStats struct {
	Name                    string
	Max, Total, Idle, InUse int32
	Waited                  int64 // acquisitions that had to wait
	WaitTime                time.Duration
}

// Stats returns the figures of both pools.
func (db *DB) Stats() []PoolStats {
	stats := make([]PoolStats, 0, 2)
	for _, p := range []struct {
		name string
		pool *pgxpool.Pool
	}{{"app", db.App}, {"engine", db.Engine}} {
		s := p.pool.Stat()
		stats = append(stats, PoolStats{p.name, s.MaxConns(), s.TotalConns(), s.IdleConns(), s.AcquiredConns(), s.EmptyAcquireCount(), s.EmptyAcquireWaitTime()})
	}
	return stats
}

// NoAccount is the account of statements that run before the account is known. They see only tables without row-level
// security.
var NoAccount protocol.AccountID

const (
	// SetAccountSQL sets the account of a transaction for row-level security.
	SetAccountSQL = `select set_config('turnstone.account_id', $1, true)`
	// GenericPlans makes a transaction reuse its plans. Shared round trips use statements of one shape, and plans for
	// their actual values are not better. By default Postgres would plan them each time, because it estimates a lower
	// cost for the actual arrays, which are shorter than its default.
	GenericPlans = `set_config('plan_cache_mode', 'force_generic_plan', true)`
	// GenericPlansSQL is GenericPlans as a statement of its own.
	GenericPlansSQL = `select ` + GenericPlans
	// SetAccountsSQL sets the accounts of a round trip that several accounts share; see migrations/004_shared_trips.sql.
	SetAccountsSQL = `select set_config('turnstone.account_ids', $1, true), ` + GenericPlans
)

// Send runs a batch for an account in one round trip, as one implicit transaction: either all of it is stored or
// nothing, and the account is set for exactly that transaction. A failed callback does not roll anything back. If the
// result of a statement decides whether the others take effect, use InTx.
func (db *DB) Send(ctx context.Context, account protocol.AccountID, batch *pgx.Batch) error {
	return Classify(db.SendOn(ctx, db.App, account, batch))
}

// SendOn is Send on another pool, without the classification of the error.
func (db *DB) SendOn(ctx context.Context, pool *pgxpool.Pool, account protocol.AccountID, batch *pgx.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	conn, err := Acquire(ctx, pool)
	if err != nil {
		return err
	}
	defer conn.Release()
	whole := &pgx.Batch{}
	if account != NoAccount {
		whole.Queue(SetAccountSQL, UUIDText(account))
	}
	whole.QueuedQueries = append(whole.QueuedQueries, batch.QueuedQueries...)
	return MarkLost(conn.Conn(), conn.SendBatch(ctx, whole).Close())
}

// Rows runs one reading statement for an account. If there are no rows, the result is an empty slice.
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

// Row is Rows for at most one row; the error is protocol.CodeNotFound if there is none.
func Row[T any](ctx context.Context, db *DB, account protocol.AccountID, to pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	found, err := Rows(ctx, db, account, to, sql, args...)
	if err == nil && len(found) == 0 {
		err = NotFound()
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}

// Exec runs one writing statement for an account and returns the number of rows that it changed. It is for statements
// that are harmless to repeat: if the reply is lost, the outcome stays unknown.
func (db *DB) Exec(ctx context.Context, account protocol.AccountID, sql string, args ...any) (int64, error) {
	var tag pgconn.CommandTag
	batch := &pgx.Batch{}
	batch.Queue(sql, args...).Exec(func(t pgconn.CommandTag) error {
		tag = t
		return nil
	})
	err := db.SendOn(ctx, db.App, account, batch)
	if err != nil && !refusedByServer(err) && protocol.CodeOf(err) == protocol.CodeInternal && isTransportError(err) {
		return 0, UnknownOutcome(err)
	}
	return tag.RowsAffected(), Classify(err)
}

const expireRows = 1000 // rows that DeleteExpired deletes in one transaction

// DeleteExpired deletes rows as the engine, a bounded number at a time. Each statement deletes at most $1 rows.
func (db *DB) DeleteExpired(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		for removed := int64(expireRows); removed == expireRows; {
			tag, err := db.Engine.Exec(ctx, sql, expireRows)
			if err != nil {
				return fmt.Errorf("removing expired rows: %w", Classify(err))
			}
			removed = tag.RowsAffected()
		}
	}
	return nil
}

// UUIDText returns an identifier as text of the type uuid.
func UUIDText[T ~[16]byte](id T) string { return protocol.NodeID(id).String() }

// AccountArray returns the array literal of accounts that SetAccountsSQL takes.
func AccountArray(accounts []protocol.AccountID) string {
	text := make([]byte, 0, len(accounts)*37+2)
	text = append(text, '{')
	for i, account := range accounts {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, UUIDText(account)...)
	}
	return string(append(text, '}'))
}
