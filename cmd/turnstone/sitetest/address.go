package sitetest

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Tests start programs on ports below the range from which the kernel assigns ephemeral ports. So no other socket gets
// such a port between its choice and the start of the program.
const (
	firstPort  = 20_000
	portCount  = 12_000
	portTries  = 1_000
	portsFile  = "turnstone-test-ports" // each byte represents a port; the process that has locked the byte owns the port
	ofdSetLock = 37                     // F_OFD_SETLK: a lock that belongs to the open file and is released when it is closed
)

// FreeAddress returns an address that no program listens on, and that no other test on this machine gets until t has
// ended.
func FreeAddress(t *testing.T) string {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(os.TempDir(), portsFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	for range portTries {
		port := firstPort + rand.IntN(portCount)
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1}
		if syscall.FcntlFlock(file.Fd(), ofdSetLock, &lock) != nil {
			continue // another test owns the port
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue // a program that was not started by a test uses it
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return listener.Addr().String()
	}
	t.Fatal("no port is free")
	return ""
}
