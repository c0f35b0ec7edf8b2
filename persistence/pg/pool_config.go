package pg

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"
)

// poolConfig parses a URL. The parser's error may contain the password, so it is not returned.
func poolConfig(url, role string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("invalid database URL (want for example postgres://user@host:5432/turnstone)")
	}
	config.PingTimeout = acquireTimeout
	config.MaxConnIdleTime, config.HealthCheckPeriod = keepIdle, idleCheck
	config.PrepareConn = socketIdle
	config.BeforeConnect = neverCancel
	config.ConnConfig.BuildFrontend = frontend
	config.ConnConfig.ConnectTimeout = connectTimeout
	config.ConnConfig.DialFunc = dialer(config.ConnConfig).DialContext
	maps.Copy(config.ConnConfig.RuntimeParams, sessionSettings)
	if role != "" {
		config.ConnConfig.RuntimeParams["role"] = role
	}
	return config, nil
}

var errNoCancel = errors.New("cancel requests are not sent")

// neverCancel prevents the cancel request that pgx sends when the context of a statement ends: it refuses to dial again once the
// connection is established. A COMMIT that is cancelled while it waits for a synchronous standby becomes visible, and pg_xact_status
// calls it committed, although only the primary has it. An abandoned statement runs to its end or its time limit, and its connection
// counts as used meanwhile, for at most 15 s.
func neverCancel(_ context.Context, config *pgx.ConnConfig) error {
	var established atomic.Bool
	dial, validate := config.DialFunc, config.ValidateConnect
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if established.Load() {
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if validate != nil {
			if err := validate(ctx, conn); err != nil {
				return err
			}
		}
		established.Store(true)
		return nil
	}
	return nil
}

// frontend limits the length of a protocol message that is read. A message starts with its length; in bytes that are
// not a reply of Postgres, that length could be gigabytes, which pgx would allocate and wait for.
func frontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	f := pgproto3.NewFrontend(r, w)
	f.SetMaxBodyLen(maxMessage)
	return f
}

func dialer(config *pgx.ConnConfig) *net.Dialer {
	timeout := connectTimeout
	if slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != config.Host || f.Port != config.Port }) {
		timeout = hostTimeout
	}
	return &net.Dialer{
		Timeout: timeout,
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

// ownerConfig omits the short timeouts of other sessions, because creating an index may take long. With row_security =
// off, a statement whose rows the policies would silently filter fails instead.
func ownerConfig(url string) (*pgxpool.Config, error) {
	config, err := poolConfig(url, "")
	if err != nil {
		return nil, err
	}
	config.MaxConns = 2
	config.ConnConfig.RuntimeParams = map[string]string{
		"application_name": "turnstone migrate", "search_path": "public", "timezone": "UTC", "row_security": "off",
		"client_min_messages": "warning",
	}
	return config, nil
}
