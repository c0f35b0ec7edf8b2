package http

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// hangups finds out which clients closed their side of a connection that nobody reads, with one epoll set for all: it
// costs a connection no goroutine and no memory of ours.
type hangups struct {
	fd   int
	file *os.File // of fd
	raw  syscall.RawConn
}

const (
	epollHangup = 0x2000 // EPOLLRDHUP, which is not the same type in all of syscall
	// unacknowledged is how long sent bytes may stay without an answer, in milliseconds. A heartbeat is sent after ten
	// seconds of silence, so a client that is gone without a word is found within twenty-five.
	unacknowledged = int(13 * time.Second / time.Millisecond)
	tcpUserTimeout = 0x12 // TCP_USER_TIMEOUT, which syscall does not name
	hangupsAtOnce  = 128
)

// newHangups calls gone from a goroutine of its own, until close.
func newHangups(gone func(place)) (*hangups, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an epoll set: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // the runtime waits for it together with its own
		return nil, errors.Join(fmt.Errorf("preparing an epoll set: %w", err), syscall.Close(fd))
	}
	h := &hangups{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	if h.raw, err = h.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing an epoll set: %w", err), h.file.Close())
	}
	go h.wait(gone)
	return h, nil
}

func (h *hangups) wait(gone func(place)) {
	var events [hangupsAtOnce]syscall.EpollEvent
	for {
		var n int
		if err := h.raw.Read(func(fd uintptr) bool {
			n, _ = syscall.EpollWait(int(fd), events[:], 0) // interrupted: asked again
			return n > 0
		}); err != nil {
			return // closed
		}
		for _, event := range events[:n] {
			gone(place{event.Fd, event.Pad})
		}
	}
}

// add watches a connection until it is closed.
func (h *hangups) add(conn net.Conn, p place) error {
	if h == nil {
		return nil
	}
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	file, ok := conn.(syscall.Conn)
	if !ok {
		return fmt.Errorf("a %T has no file", conn)
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return fmt.Errorf("finding the file of a connection: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, unacknowledged) // other sockets have none
		failed = syscall.EpollCtl(h.fd, syscall.EPOLL_CTL_ADD, int(fd), &syscall.EpollEvent{
			Events: epollHangup | syscall.EPOLLONESHOT, Fd: p.at, Pad: p.time,
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

func (h *hangups) close() {
	if h != nil {
		_ = h.file.Close() // nothing was written to it
	}
}
