package pg

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

const (
	// NotFoundDetail is the detail of every error with protocol.CodeNotFound.
	NotFoundDetail    = "the resource does not exist"
	unavailableDetail = "the database is not available"
	// RetrySeconds is the Retry-After of an error that a later attempt may not meet.
	RetrySeconds = 1
)

// SQLSTATEs that the code refers to.
const (
	stateSerialization  = "40001"
	stateDeadlock       = "40P01"
	stateLockTimeout    = "55P03"
	stateCancelled      = "57014" // also by statement_timeout
	stateIdle           = "25P03" // idle_in_transaction_session_timeout: this process was too slow; rolled back
	stateUnique         = "23505"
	stateForeignKey     = "23503"
	stateUndefinedTable = "42P01"

	stateInvalidParameter = "22023"
	stateUndefinedObject  = "42704"

	// Postgres refuses a connection.
	stateNoPassword  = "28P01"
	stateNoRole      = "28000"
	stateNoDatabase  = "3D000"
	stateNoPrivilege = "42501"

	// Another process has created the same in the meantime.
	stateDuplicateObject   = "42710"
	stateDuplicateDatabase = "42P04"
)

// sqlStates maps SQLSTATEs to error codes. The whole state is looked up first, then its class. A state that is not
// listed is a defect.
var sqlStates = map[string]protocol.Code{
	"08":               protocol.CodeUnavailable, // connection exceptions
	"25006":            protocol.CodeUnavailable, // read-only: a standby during a failover
	stateIdle:          protocol.CodeUnavailable, // after the retries
	"53":               protocol.CodeUnavailable, // insufficient resources: disk full, out of memory, too many connections
	"57":               protocol.CodeUnavailable, // operator intervention: cancelled, shutting down, starting up
	"58":               protocol.CodeUnavailable, // system errors: I/O
	stateSerialization: protocol.CodeUnavailable, // after the retries
	stateDeadlock:      protocol.CodeUnavailable, // after the retries
	stateLockTimeout:   protocol.CodeUnavailable, // after the retries
	"22021":            protocol.CodeInvalid,     // text that Postgres cannot store, for example with a NUL
	"22P05":            protocol.CodeInvalid,
	"22001":            protocol.CodeInvalid, // too long
	stateUnique:        protocol.CodeConflict,
	stateForeignKey:    protocol.CodeNotFound, // refers to a row that this account does not have
}

// Classify converts an error of pgx to a *protocol.Error. An error that already is one, ownership.ErrFenced and defects
// pass unchanged.
func Classify(err error) error {
	var known *protocol.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, ownership.ErrFenced) {
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return &protocol.Error{Code: protocol.CodeNotFound, Detail: NotFoundDetail, Err: err}
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return classifyState(pg, err)
	}
	if isTransportError(err) {
		return Unavailable(err)
	}
	return err
}

// NotFound returns the error of a statement that found no row, for a caller that reads several rows and misses one.
func NotFound() error { return Classify(pgx.ErrNoRows) }

func classifyState(pg *pgconn.PgError, err error) error {
	code, ok := sqlStates[pg.Code]
	if !ok {
		code, ok = sqlStates[classOf(pg)]
	}
	switch {
	case !ok:
		return err
	case code == protocol.CodeUnavailable:
		return Unavailable(err)
	case code == protocol.CodeNotFound:
		return &protocol.Error{Code: code, Detail: NotFoundDetail, Err: err}
	default:
		return &protocol.Error{Code: code, Detail: "the database rejected the value", Err: err}
	}
}

// Unavailable returns the error for a database that cannot be used now.
func Unavailable(cause error) error {
	return &protocol.Error{Code: protocol.CodeUnavailable, Detail: unavailableDetail, RetryAfter: RetrySeconds, Err: cause}
}

// UnknownOutcome returns the error of a write whose outcome is unknown: it may have been stored.
func UnknownOutcome(cause error) error {
	return &protocol.Error{Code: protocol.CodeUnavailable, Detail: protocol.OutcomeUnknown, RetryAfter: RetrySeconds, Err: cause}
}

// IsOutage reports whether a round trip failed because the server cannot be reached or cannot work, so that a retry
// would fail too. Any other failure may be caused by one of the requests that shared the round trip (for example a lock
// timeout), or may affect one connection only, which another one can replace.
func IsOutage(err error) bool {
	return protocol.CodeOf(err) == protocol.CodeUnavailable && !isBroken(err) &&
		!isState(err, stateSerialization, stateDeadlock, stateLockTimeout)
}

// isBroken reports whether a connection broke during a round trip, for a reason other than a timeout.
func isBroken(err error) bool { return errors.Is(err, errConnectionLost) && !pgconn.Timeout(err) }

// IsTransient reports whether an error may go away by itself: an outage, a conflict with another transaction, a server
// that is out of resources or stops.
func IsTransient(err error) bool { return protocol.CodeOf(Classify(err)) == protocol.CodeUnavailable }

// isTransportError reports whether an error occurred in the connection rather than in the server.
func isTransportError(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect) || pgconn.Timeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, errConnectionLost)
}

// errConnectionLost marks errors after which the connection was closed. The errors of pgx itself ("conn closed") have
// no type.
var errConnectionLost = errors.New("the connection was lost")

// MayHaveRun reports whether a statement may have been executed although its result is not known: its connection was lost.
func MayHaveRun(err error) bool { return errors.Is(err, errConnectionLost) }

// MarkLost marks err with errConnectionLost if the connection was closed with it.
func MarkLost(conn *pgx.Conn, err error) error {
	var pg *pgconn.PgError
	if err == nil || !conn.IsClosed() || errors.As(err, &pg) {
		return err
	}
	return &lostError{err}
}

type lostError struct{ error }

func (e *lostError) Unwrap() []error { return []error{e.error, errConnectionLost} }

// refusedByServer reports whether the server itself replied that it did not execute the statement. After any other
// error the outcome is unknown, also after a FATAL or PANIC reply, which may come between the commit and its
// confirmation.
func refusedByServer(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Severity != "FATAL" && pg.Severity != "PANIC"
}

// IsLockTimeout reports whether another transaction held a lock for longer than a statement may wait for it.
func IsLockTimeout(err error) bool { return isState(err, stateLockTimeout) }

// IsCancelled reports whether a statement was cancelled, also by its time limit.
func IsCancelled(err error) bool { return isState(err, stateCancelled) }

// RefersToMissing reports whether a row refers to a row that does not exist.
func RefersToMissing(err error) bool { return isState(err, stateForeignKey) }

// IsRefusedData reports whether Postgres refused the data itself: a data exception or an integrity violation.
func IsRefusedData(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (classOf(pg) == "22" || classOf(pg) == "23")
}

// classOf returns the first two characters of a SQLSTATE.
func classOf(err *pgconn.PgError) string { return err.Code[:min(2, len(err.Code))] }

// isState reports whether err has one of these SQLSTATEs.
func isState(err error, states ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains(states, pg.Code)
}

// Violates reports whether err is a violation of the named unique or foreign key constraint.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && isState(pg, stateUnique, stateForeignKey) && pg.ConstraintName == constraint
}
