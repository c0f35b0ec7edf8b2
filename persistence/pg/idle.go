package pg

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

// socketIdle reports whether a pooled connection may be used; it is the PrepareConn of the pools. It peeks at the
// socket, without waiting and without consuming a byte. An idle server sends data only when it closes the connection (a
// restart, a terminated session), and a closed socket is readable too. Nothing was sent yet, so another connection can
// take any request: after a restart of Postgres, no request fails because its pooled connection was lost.
//
// It uses Control, not Read: the background reader of pgx, which a slow write starts, may be waiting in a read of the
// same socket until the next reply arrives, and Read would wait for it indefinitely.
//
// A peer that vanished without closing the connection looks quiet. The pool's ping and the deadlines detect such
// connections.
func socketIdle(_ context.Context, conn *pgx.Conn) (bool, error) {
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

// rawSocket returns the socket under a connection, with TLS or without.
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
