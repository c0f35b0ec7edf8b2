package persistence

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"turnstone/protocol"
)

// OutcomeUnknown is the detail of a CodeUnavailable whose effect may or may not have been stored: the client reconciles
// by reading, or repeats with the same Idempotency-Key.
const OutcomeUnknown = "outcome_unknown"

const (
	notFoundDetail    = "there is nothing of that name"
	unavailableDetail = "the database is not available"
	retrySeconds      = 1
)

// The SQLSTATEs that the code speaks of.
const (
	stateSerialization  = "40001"
	stateDeadlock       = "40P01"
	stateLockTimeout    = "55P03"
	stateUnique         = "23505"
	stateForeignKey     = "23503"
	stateUndefinedTable = "42P01"

	stateInvalidParameter = "22023"
)

// sqlStates is the one table from SQLSTATE to meaning: the whole state first, then its class. What is not here is a defect.
var sqlStates = map[string]protocol.Code{
	"08":               protocol.CodeUnavailable, // connection exceptions
	"25006":            protocol.CodeUnavailable, // read-only: a standby during a failover
	"25P03":            protocol.CodeUnavailable, // idle_in_transaction_session_timeout: we were too slow; rolled back
	"53":               protocol.CodeUnavailable, // insufficient resources: disk full, out of memory, too many connections
	"57":               protocol.CodeUnavailable, // operator intervention: cancelled, shutting down, starting up
	"58":               protocol.CodeUnavailable, // system errors: I/O
	stateSerialization: protocol.CodeUnavailable, // after the retries
	stateDeadlock:      protocol.CodeUnavailable, // after the retries
	stateLockTimeout:   protocol.CodeUnavailable,
	"22021":            protocol.CodeInvalid, // text that Postgres cannot store, as NUL
	"22P05":            protocol.CodeInvalid,
	"22001":            protocol.CodeInvalid, // too long
	stateUnique:        protocol.CodeConflict,
	stateForeignKey:    protocol.CodeNotFound, // names a row that this account does not have
}

// classify gives an error of pgx its meaning. Errors that have one already, and defects, pass unchanged.
func classify(err error) error {
	var known *protocol.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, protocol.ErrFenced) {
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return &protocol.Error{Code: protocol.CodeNotFound, Detail: notFoundDetail, Err: err}
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return classifyState(pg, err)
	}
	if transport(err) {
		return unavailable(err)
	}
	return err
}

func classifyState(pg *pgconn.PgError, err error) error {
	code, ok := sqlStates[pg.Code]
	if !ok && len(pg.Code) == 5 {
		code, ok = sqlStates[pg.Code[:2]]
	}
	switch {
	case !ok:
		return err
	case code == protocol.CodeUnavailable:
		return unavailable(err)
	case code == protocol.CodeNotFound:
		return &protocol.Error{Code: code, Detail: notFoundDetail, Err: err}
	default:
		return &protocol.Error{Code: code, Detail: "the database refuses the value", Err: err}
	}
}

func unavailable(cause error) error {
	return &protocol.Error{Code: protocol.CodeUnavailable, Detail: unavailableDetail, RetryAfter: retrySeconds, Err: cause}
}

func outcomeUnknown(cause error) error {
	return &protocol.Error{Code: protocol.CodeUnavailable, Detail: OutcomeUnknown, RetryAfter: retrySeconds, Err: cause}
}

// isOutage says whether a trip failed because the server cannot be reached or cannot work, so that its repetition would
// fail too. Any other failure may be the fault of one of the requests that shared the trip: waiting for a lock, and a
// connection that broke, which another one may replace.
func isOutage(err error) bool {
	return protocol.CodeOf(err) == protocol.CodeUnavailable && !isBroken(err) &&
		!isState(err, stateSerialization, stateDeadlock, stateLockTimeout)
}

// isBroken says whether a connection broke in the middle of a trip, not because its time was over.
func isBroken(err error) bool { return errors.Is(err, errConnectionLost) && !pgconn.Timeout(err) }

// transient reports whether an error may go away by itself: an outage, a conflict with another transaction, a server that
// is out of resources or stops.
func transient(err error) bool { return protocol.CodeOf(classify(err)) == protocol.CodeUnavailable }

// transport says whether an error came from the way to the server rather than from the server.
func transport(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect) || pgconn.Timeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, errConnectionLost)
}

// errConnectionLost marks errors after which the connection was closed: pgx's own ("conn closed") carry no type.
var errConnectionLost = errors.New("the connection was lost")

// lost marks err when it took its connection with it.
func lost(conn *pgx.Conn, err error) error {
	var pg *pgconn.PgError
	if err == nil || !conn.IsClosed() || errors.As(err, &pg) {
		return err
	}
	return &lostError{err}
}

type lostError struct{ error }

func (e *lostError) Unwrap() []error { return []error{e.error, errConnectionLost} }

// refused says whether the server itself answered that it did not do it. After anything else the outcome is unknown; a
// FATAL answer too, since it may have come between the commit and its confirmation.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Severity != "FATAL" && pg.Severity != "PANIC"
}

func isState(err error, states ...string) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	for _, state := range states {
		if pg.Code == state {
			return true
		}
	}
	return false
}

// Violates says whether err is the named unique or foreign key constraint refusing a row.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == stateUnique || pg.Code == stateForeignKey) && pg.ConstraintName == constraint
}

func isClass(err error, class string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && len(pg.Code) == 5 && pg.Code[:2] == class
}
