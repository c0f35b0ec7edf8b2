package persistence

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
	"turnstone/protocol/failpoint"
)

const (
	maxRetries      = 3
	retryLeast      = 5 * time.Millisecond
	retryMost       = 50 * time.Millisecond
	rollbackTimeout = time.Second
	resolveTimeout  = 2 * time.Second
	resolvePause    = 20 * time.Millisecond
)

// Tx is an explicit transaction of one account. It is a pgx.Tx without nesting, so that river inserts its jobs through it.
// Only the goroutine that InTx called uses it.
type Tx struct {
	conn   *pgxpool.Conn
	xid    string // names this transaction to pg_xact_status when the answer to its COMMIT is lost
	closed bool
}

var _ pgx.Tx = (*Tx)(nil)

// Exec runs one statement.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return tx.conn.Exec(ctx, sql, args...)
}

// Query runs one statement.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return tx.conn.Query(ctx, sql, args...)
}

// QueryRow runs one statement.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return tx.conn.QueryRow(ctx, sql, args...)
}

// SendBatch runs statements in one round trip.
func (tx *Tx) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	return tx.conn.SendBatch(ctx, batch)
}

// Conn is the connection underneath.
func (tx *Tx) Conn() *pgx.Conn { return tx.conn.Conn() }

// CopyFrom copies rows in.
func (tx *Tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error) {
	return tx.conn.CopyFrom(ctx, table, columns, source)
}

// Prepare prepares a statement.
func (tx *Tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return tx.conn.Conn().Prepare(ctx, name, sql)
}

// LargeObjects are not used by Turnstone.
func (tx *Tx) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

var errNotHere = errors.New("a transaction of persistence.InTx neither nests nor ends by itself")

// Begin is refused: there is no nesting.
func (tx *Tx) Begin(context.Context) (pgx.Tx, error) { return nil, errNotHere }

// Commit is refused: InTx commits when its function returns nil.
func (tx *Tx) Commit(context.Context) error { return errNotHere }

// Rollback is refused: InTx rolls back when its function returns an error.
func (tx *Tx) Rollback(context.Context) error { return errNotHere }

// Run sends a batch and calls its callbacks; the first failure, of a statement or a callback, is returned.
func (tx *Tx) Run(ctx context.Context, batch *pgx.Batch) error {
	return lost(tx.conn.Conn(), tx.conn.SendBatch(ctx, batch).Close())
}

// CommitWith sends a last batch and the COMMIT in one round trip. When a statement fails nothing is committed. Its
// statements have no callbacks: at this point nothing that they find can change the decision any more. What work answers
// with is set before the call: when the answer is lost InTx may still find out that all of it was committed.
func (tx *Tx) CommitWith(ctx context.Context, batch *pgx.Batch) error {
	if err := failpoint.Before(failpoint.TxBeforeCommit); err != nil {
		return err
	}
	batch.Queue("commit")
	tx.closed = true
	err := failpoint.After(failpoint.TxBeforeCommit, tx.Run(ctx, batch))
	if err != nil && refused(err) {
		tx.closed = false // the server stands in the failed transaction
		return err
	}
	if err != nil {
		return &commitError{xid: tx.xid, life: lifeOf(tx.conn.Conn()), cause: err}
	}
	return nil
}

func (tx *Tx) commit(ctx context.Context) error {
	if err := failpoint.Before(failpoint.TxBeforeCommit); err != nil {
		return err
	}
	tag, err := tx.conn.Exec(ctx, "commit")
	err = failpoint.After(failpoint.TxBeforeCommit, lost(tx.conn.Conn(), err))
	switch {
	case err != nil && refused(err):
		return err
	case err != nil:
		return &commitError{xid: tx.xid, life: lifeOf(tx.conn.Conn()), cause: err}
	case tag.String() != "COMMIT": // a failed statement whose error was swallowed
		return pgx.ErrTxCommitRollback
	default:
		return nil
	}
}

// commitError is a COMMIT whose answer was lost.
type commitError struct {
	xid   string
	life  uuid.UUID // of the server
	cause error
}

func (e *commitError) Error() string { return "the answer to COMMIT was lost: " + e.cause.Error() }
func (e *commitError) Unwrap() error { return e.cause }

// InTx runs work in a transaction of an account: committed when work returns nil, rolled back otherwise. Deadlocks and
// serialization failures run it again, so work must not keep what an earlier attempt left in its variables. A COMMIT
// whose answer was lost is looked up; nil means that it was committed.
func (db *DB) InTx(ctx context.Context, account protocol.AccountID, work func(ctx context.Context, tx *Tx) error) error {
	return db.inTxAfter(ctx, account, func(*pgx.Batch) {}, work)
}

// inTxAfter is InTx whose first statements travel with its BEGIN. open queues them anew in each attempt; work is called
// when all of them were done.
func (db *DB) inTxAfter(ctx context.Context, account protocol.AccountID, open func(*pgx.Batch), work func(ctx context.Context, tx *Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := db.attempt(ctx, account, open, work)
		if err == nil {
			return nil
		}
		if attempt > maxRetries || !isState(err, stateSerialization, stateDeadlock) || !pause(ctx, retryDelay()) {
			return classify(err)
		}
	}
}

func retryDelay() time.Duration { return retryLeast + rand.N(retryMost-retryLeast) }

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (db *DB) attempt(ctx context.Context, account protocol.AccountID, open func(*pgx.Batch), work func(ctx context.Context, tx *Tx) error) error {
	conn, err := acquire(ctx, db.app)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx := &Tx{conn: conn}
	if err := tx.begin(ctx, account, open); err != nil {
		tx.rollback(ctx)
		return err
	}
	err = tx.finish(ctx, work)
	var unanswered *commitError
	if errors.As(err, &unanswered) {
		return db.resolve(ctx, unanswered)
	}
	return err
}

// finish runs work and ends the transaction one way or the other, also when work panics.
func (tx *Tx) finish(ctx context.Context, work func(ctx context.Context, tx *Tx) error) (err error) {
	settled := false
	defer func() {
		if !settled {
			tx.rollback(ctx)
		}
	}()
	if err = work(ctx, tx); err != nil {
		return lost(tx.conn.Conn(), err)
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

func (tx *Tx) begin(ctx context.Context, account protocol.AccountID, open func(*pgx.Batch)) error {
	var text, ignored string
	if account != Nobody {
		text = uuidText(account)
	}
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue(beginSQL, text).QueryRow(func(row pgx.Row) error { return row.Scan(&ignored, &tx.xid) })
	open(batch)
	return tx.Run(ctx, batch)
}

// rollback leaves a clean connection or a closed one, which the pool throws away. Nothing is owed to its outcome.
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
	xactAmbiguous = "committed after a crash" // by this transaction, or by another one that got its identifier
)

// resolve finds out, over new connections, what became of a transaction. The client may be gone by now; the answer
// still matters to whoever waits behind it.
func (db *DB) resolve(ctx context.Context, unanswered *commitError) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	status := "unreachable"
	for delay := resolvePause; status != xactAmbiguous; delay *= 2 {
		if found, err := db.transactionStatus(ctx, unanswered); err == nil {
			status = found
		}
		if status == xactCommitted || status == xactAborted {
			db.log.Info("the outcome of a commit was found out", zap.String("xid", unanswered.xid), zap.String("status", status))
			if status == xactAborted {
				return unavailable(unanswered)
			}
			return nil
		}
		if !pause(ctx, min(delay, retryMost*4)) {
			break
		}
	}
	db.log.Warn("outcome of a commit unknown", zap.String("xid", unanswered.xid), zap.String("status", status), zap.Error(unanswered.cause))
	return outcomeUnknown(unanswered)
}

// transactionStatus asks for the status of a transaction. After a crash of the server an aborted one is surely ours or
// nobody's, since what had been committed keeps its identifier, and so is one that the server has not come to yet.
func (db *DB) transactionStatus(ctx context.Context, unanswered *commitError) (string, error) {
	conn, err := pgx.ConnectConfig(ctx, db.app.Config().ConnConfig)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }() // its answer is all that was wanted
	var status string
	var sameLife bool
	err = conn.QueryRow(ctx, statusSQL, unanswered.xid, unanswered.life).Scan(&status, &sameLife)
	switch {
	case isState(err, stateInvalidParameter): // it is in the future
		return xactAborted, nil
	case err != nil:
		return "", fmt.Errorf("asking for the status of a transaction: %w", err)
	case status == xactCommitted && !sameLife:
		return xactAmbiguous, nil
	}
	return status, nil
}
