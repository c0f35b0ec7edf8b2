package pg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/timelimit"
)

const (
	maxRetries = 3
	retryLeast = 5 * time.Millisecond
	retryMost  = 50 * time.Millisecond
	// ResolvePause is the time between two lookups of the outcome of a commit.
	ResolvePause = 20 * time.Millisecond
)

var (
	rollbackTimeout = timelimit.Of(time.Second)
	resolveTimeout  = timelimit.Of(2 * time.Second)
)

// Tx is an explicit transaction of one account. It is a pgx.Tx without nesting, so that River can insert jobs through
// it. It may be used only by the goroutine on which InTx calls its function.
//
// BEGIN is sent with the first statements: those of Run need no round trip of their own for it.
type Tx struct {
	conn    *pgxpool.Conn
	account protocol.AccountID
	begun   bool   // BEGIN was sent
	failed  error  // of BEGIN
	xid     string // identifies this transaction to pg_xact_status if the reply to its COMMIT is lost
	closed  bool
}

var _ pgx.Tx = (*Tx)(nil)

// Exec runs one statement.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := tx.begin(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return tx.conn.Exec(ctx, sql, args...)
}

// Query runs one statement.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := tx.begin(ctx); err != nil {
		return nil, err
	}
	return tx.conn.Query(ctx, sql, args...)
}

// QueryRow runs one statement.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := tx.begin(ctx); err != nil {
		return failedResults{err}
	}
	return tx.conn.QueryRow(ctx, sql, args...)
}

// SendBatch runs statements in one round trip.
func (tx *Tx) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	if err := tx.begin(ctx); err != nil {
		return failedResults{err}
	}
	return tx.conn.SendBatch(ctx, batch)
}

// Conn returns the underlying connection.
func (tx *Tx) Conn() *pgx.Conn { return tx.conn.Conn() }

// CopyFrom copies rows into a table.
func (tx *Tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error) {
	if err := tx.begin(ctx); err != nil {
		return 0, err
	}
	return tx.conn.CopyFrom(ctx, table, columns, source)
}

// Prepare prepares a statement.
func (tx *Tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := tx.begin(ctx); err != nil {
		return nil, err
	}
	return tx.conn.Conn().Prepare(ctx, name, sql)
}

// LargeObjects are not used by Turnstone.
func (tx *Tx) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

var errManagedTx = errors.New("a transaction of InTx cannot be nested, committed or rolled back directly")

// Begin returns an error: there is no nesting.
func (tx *Tx) Begin(context.Context) (pgx.Tx, error) { return nil, errManagedTx }

// Commit returns an error: InTx commits when its function returns nil.
func (tx *Tx) Commit(context.Context) error { return errManagedTx }

// Rollback returns an error: InTx rolls back when its function returns an error.
func (tx *Tx) Rollback(context.Context) error { return errManagedTx }

// Run sends a batch, with BEGIN if it is the first one, and calls its callbacks. It returns the first error, of a statement
// or a callback.
func (tx *Tx) Run(ctx context.Context, batch *pgx.Batch) error {
	switch {
	case tx.failed != nil: // without BEGIN, each statement would be a transaction of its own
		return tx.failed
	case tx.begun:
		return tx.send(ctx, batch)
	}
	tx.begun = true
	var text, ignored string
	if tx.account != NoAccount {
		text = UUIDText(tx.account)
	}
	whole := &pgx.Batch{}
	whole.Queue("begin")
	whole.Queue(beginSQL, text).QueryRow(func(row pgx.Row) error { return row.Scan(&ignored, &tx.xid) })
	whole.QueuedQueries = append(whole.QueuedQueries, batch.QueuedQueries...)
	err := tx.send(ctx, whole)
	if tx.xid == "" {
		tx.failed = err
	}
	return err
}

func (tx *Tx) send(ctx context.Context, batch *pgx.Batch) error {
	return MarkLost(tx.conn.Conn(), tx.conn.SendBatch(ctx, batch).Close())
}

// begin sends BEGIN alone, before the first statement that is not sent by Run.
func (tx *Tx) begin(ctx context.Context) error {
	if tx.begun {
		return tx.failed
	}
	return tx.Run(ctx, &pgx.Batch{})
}

// failedResults are those of statements that were not sent.
type failedResults struct{ err error }

func (f failedResults) Scan(...any) error                { return f.err }
func (f failedResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, f.err }
func (f failedResults) Query() (pgx.Rows, error)         { return nil, f.err }
func (f failedResults) QueryRow() pgx.Row                { return f }
func (f failedResults) Close() error                     { return f.err }
func (f failedResults) Tx() pgx.Tx                       { return nil }

// CommitWith sends a last batch and the COMMIT in one round trip. If a statement fails, nothing is committed. The
// statements have no callbacks, because their results can no longer change the decision. The function that InTx runs
// sets its results before the call: if the reply is lost, InTx may still determine that everything was committed.
func (tx *Tx) CommitWith(ctx context.Context, batch *pgx.Batch) error {
	if err := failpoint.Before(failpoint.TxBeforeCommit); err != nil {
		return err
	}
	if err := tx.begin(ctx); err != nil { // its outcome could not be looked up without the identifier
		return err
	}
	batch.Queue("commit")
	tx.closed = true
	err := failpoint.After(failpoint.TxBeforeCommit, tx.Run(ctx, batch))
	if err != nil && refusedByServer(err) {
		tx.closed = false // the failed transaction is still open on the server
		return err
	}
	if err != nil {
		return &CommitError{xid: tx.xid, incarnation: incarnationOf(tx.conn.Conn()), cause: err}
	}
	return nil
}

func (tx *Tx) commit(ctx context.Context) error {
	if !tx.begun || tx.failed != nil {
		return tx.failed
	}
	if err := failpoint.Before(failpoint.TxBeforeCommit); err != nil {
		return err
	}
	tag, err := tx.conn.Exec(ctx, "commit")
	err = failpoint.After(failpoint.TxBeforeCommit, MarkLost(tx.conn.Conn(), err))
	switch {
	case err != nil && refusedByServer(err):
		return err
	case err != nil:
		return &CommitError{xid: tx.xid, incarnation: incarnationOf(tx.conn.Conn()), cause: err}
	case tag.String() != "COMMIT": // the error of an earlier statement was ignored
		return pgx.ErrTxCommitRollback
	default:
		return nil
	}
}

// CommitError is a COMMIT whose reply was lost.
type CommitError struct {
	xid         string
	incarnation uuid.UUID // incarnation of the server
	cause       error
}

func (e *CommitError) Error() string { return "the reply to COMMIT was lost: " + e.cause.Error() }
func (e *CommitError) Unwrap() error { return e.cause }

// InTx runs work in a transaction of an account. It commits if work returns nil, and rolls back otherwise. After a
// deadlock, a serialization failure or a lock timeout, or if the connection broke before the COMMIT (this process may have been
// so slow that Postgres has ended the session), it runs work again, so work must not keep values of an earlier attempt in its
// variables. If the reply to the COMMIT is lost, InTx looks up the outcome; nil means that the transaction was committed.
func (db *DB) InTx(ctx context.Context, account protocol.AccountID, work func(ctx context.Context, tx *Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := db.attempt(ctx, account, work)
		if err == nil {
			return nil
		}
		if attempt > retriesAfter(err) || clock.Sleep(ctx, retryDelay()) != nil {
			return Classify(err)
		}
	}
}

// retriesAfter returns how often a transaction that failed so is tried again.
func retriesAfter(err error) int {
	var unanswered *CommitError
	switch {
	case errors.As(err, &unanswered):
		return 0
	case isState(err, stateSerialization, stateDeadlock):
		return maxRetries
	case isState(err, stateLockTimeout):
		return lockRetries
	case isState(err, stateIdle), isBroken(err):
		return 1
	default:
		return 0
	}
}

func retryDelay() time.Duration { return retryLeast + rand.N(retryMost-retryLeast) }

// attempt runs a transaction once.
func (db *DB) attempt(ctx context.Context, account protocol.AccountID, work func(ctx context.Context, tx *Tx) error) error {
	conn, err := Acquire(ctx, db.App)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx := &Tx{conn: conn, account: account}
	err = tx.finish(ctx, work)
	var unanswered *CommitError
	if errors.As(err, &unanswered) {
		return db.resolve(ctx, unanswered)
	}
	return err
}

// finish runs work and commits or rolls back, also if work panics.
func (tx *Tx) finish(ctx context.Context, work func(ctx context.Context, tx *Tx) error) (err error) {
	settled := false
	defer func() {
		if !settled {
			tx.rollback(ctx)
		}
	}()
	if err = work(ctx, tx); err != nil {
		return MarkLost(tx.conn.Conn(), err)
	}
	if !tx.closed {
		if err = tx.commit(ctx); err != nil {
			return err
		}
	}
	settled = true
	return nil
}

const beginSQL = `select set_config('turnstone.account_id', $1, true), pg_current_xact_id()::text`

// rollback leaves a clean connection, or a closed one, which the pool discards. Its result does not matter.
func (tx *Tx) rollback(ctx context.Context) {
	conn := tx.conn.Conn()
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "rollback"); err != nil {
		_ = conn.Close(ctx)
	}
}

const statusSQL = `
select coalesce(pg_xact_status($1::text::xid8), 'forgotten'), exists (select from server_life where life = $2)`

const (
	xactCommitted = "committed"
	xactAborted   = "aborted"
	xactAmbiguous = "committed after a crash" // this transaction, or another one that got the same identifier
)

// resolve determines the outcome of a transaction over new connections. It continues after ctx has ended: the client
// may be gone, but others may wait for this request and need the outcome.
func (db *DB) resolve(ctx context.Context, unanswered *CommitError) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	status := "unreachable"
	for delay := ResolvePause; status != xactAmbiguous; delay *= 2 {
		if found, err := db.transactionStatus(ctx, unanswered); err == nil {
			status = found
		}
		if status == xactCommitted || status == xactAborted {
			db.Log.Info("the outcome of a commit was determined", zap.String("xid", unanswered.xid), zap.String("status", status))
			if status == xactAborted {
				return Unavailable(unanswered)
			}
			return nil
		}
		if clock.Sleep(ctx, min(delay, retryMost*4)) != nil {
			break
		}
	}
	db.Log.Warn("the outcome of a commit is unknown", zap.String("xid", unanswered.xid), zap.String("status", status), zap.Error(unanswered.cause))
	return UnknownOutcome(unanswered)
}

// transactionStatus returns the status of a transaction. If the server has crashed since, the status aborted is still
// conclusive, since a committed transaction keeps its identifier. The same holds for an identifier that the server has
// not assigned yet.
func (db *DB) transactionStatus(ctx context.Context, unanswered *CommitError) (string, error) {
	conn, err := pgx.ConnectConfig(ctx, db.App.Config().ConnConfig)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }() // the connection only reads
	var status string
	var sameIncarnation bool
	err = conn.QueryRow(ctx, statusSQL, unanswered.xid, unanswered.incarnation).Scan(&status, &sameIncarnation)
	switch {
	case isState(err, stateInvalidParameter): // the identifier is in the future
		return xactAborted, nil
	case err != nil:
		return "", fmt.Errorf("reading the status of a transaction: %w", err)
	case status == xactCommitted && !sameIncarnation:
		return xactAmbiguous, nil
	}
	return status, nil
}
