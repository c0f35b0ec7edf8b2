package sse

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// disconnects detects which clients have closed their side of a connection from which nothing is read. It uses one
// epoll set for all connections, so that it needs no goroutine and no memory for each connection.
type disconnects struct {
	fd   int
	file *os.File // of fd
	raw  syscall.RawConn
}

const (
	epollPeerClosed = 0x2000 // EPOLLRDHUP, whose type in syscall depends on the architecture
	// unacknowledged limits the time, in milliseconds, for which sent bytes may stay without a TCP acknowledgement. A
	// heartbeat is sent after ten seconds without output, so a client that disappears without closing the connection is
	// detected within 25 seconds.
	unacknowledged    = int(13 * time.Second / time.Millisecond)
	tcpUserTimeout    = 0x12 // TCP_USER_TIMEOUT, which syscall does not define
	disconnectsAtOnce = 128
)

// newDisconnects starts a goroutine that calls gone for every client that closes its side, until close.
func newDisconnects(gone func(streamSlot)) (*disconnects, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating an epoll set: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // so that the poller of the runtime can wait for it
		return nil, errors.Join(fmt.Errorf("preparing an epoll set: %w", err), syscall.Close(fd))
	}
	h := &disconnects{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	if h.raw, err = h.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing an epoll set: %w", err), h.file.Close())
	}
	go h.wait(gone)
	return h, nil
}

func (h *disconnects) wait(gone func(streamSlot)) {
	var events [disconnectsAtOnce]syscall.EpollEvent
	for {
		var n int
		if err := h.raw.Read(func(fd uintptr) bool {
			n, _ = syscall.EpollWait(int(fd), events[:], 0) // on EINTR n is -1; Read waits and calls again
			return n > 0
		}); err != nil {
			return // closed
		}
		for _, event := range events[:n] {
			gone(streamSlot{event.Fd, event.Pad})
		}
	}
}

// add watches a connection until it is closed.
func (h *disconnects) add(conn net.Conn, slot streamSlot) error {
	if h == nil {
		return nil
	}
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	file, ok := conn.(syscall.Conn)
	if !ok {
		return fmt.Errorf("a %T has no file descriptor", conn)
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return fmt.Errorf("getting the file descriptor of a connection: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, unacknowledged) // only TCP has this option
		failed = syscall.EpollCtl(h.fd, syscall.EPOLL_CTL_ADD, int(fd), &syscall.EpollEvent{
			Events: epollPeerClosed | syscall.EPOLLONESHOT, Fd: slot.index, Pad: slot.generation,
		})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("watching a connection: %w", err)
	}
	return nil
}

func (h *disconnects) close() {
	if h != nil {
		_ = h.file.Close() // nothing was written, so no error matters
	}
}
