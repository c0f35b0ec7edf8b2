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

// The ports of programs that tests start lie below those that the kernel gives to sockets that name none: between the
// choice of a port and the program's start nobody else gets it by chance.
const (
	firstPort  = 20_000
	portCount  = 12_000
	portTries  = 1_000
	portsFile  = "turnstone-test-ports" // each byte stands for a port; who has locked it has the port
	ofdSetLock = 37                     // F_OFD_SETLK: a lock of the open file, which ends with it
)

// FreeAddress is an address that nobody listens on, and that no other test on this machine gets until t has ended.
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
			continue // another test has it
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue // a program that is no test's
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return listener.Addr().String()
	}
	t.Fatal("no port is free")
	return ""
}
