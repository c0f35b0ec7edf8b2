package persistence

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

// quiet decides whether a pooled connection may be used: it looks at the socket, without waiting and without taking
// anything out. A server that says something unasked says goodbye (its restart, a terminated session), and a closed
// socket is readable too. Nothing was sent yet, so another connection may take the request whatever it is: after a
// restart of Postgres no request fails for a connection that was lying in the pool.
//
// It looks by Control, not by Read: pgx's background reader, which a slow write starts, may wait in a read of this very
// socket until the next answer comes, and Read would wait for it without end.
//
// A peer that vanished without a word looks quiet; such connections fall to the pool's ping and to the deadlines.
func quiet(_ context.Context, conn *pgx.Conn) (bool, error) {
	socket, known := rawSocket(conn.PgConn().Conn())
	if !known {
		return true, nil
	}
	silent := false
	err := socket.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		silent = errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
	})
	return err == nil && silent, nil
}

// rawSocket finds the socket under a connection, with TLS or without.
func rawSocket(conn net.Conn) (syscall.RawConn, bool) {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil, false
	}
	raw, err := socket.SyscallConn()
	return raw, err == nil
}
