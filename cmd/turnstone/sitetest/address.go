package sitetest

import (
	"io"
	"math/rand/v2"
	"net"
	"net/url"
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

// FreeAddress returns an address that no program listens on, and that no other test on this host computer gets until t has
// ended.
func FreeAddress(t *testing.T) string {
	t.Helper()
	return FreeAddresses(t, 1)
}

// FreeAddresses returns the first of count addresses with consecutive ports, each of which is one of FreeAddress.
func FreeAddresses(t *testing.T, count int) string {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(os.TempDir(), portsFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	for range portTries {
		first := firstPort + rand.IntN(portCount-count)
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: int64(first), Len: int64(count)}
		if syscall.FcntlFlock(file.Fd(), ofdSetLock, &lock) != nil {
			continue // another test owns one of the ports
		}
		free := true
		for port := first; port < first+count; port++ {
			free = free && isFree(t, address(port))
		}
		if free {
			return address(first)
		}
	}
	t.Fatal("no port is free")
	return ""
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// isFree reports whether nothing listens on an address. A program that was not started by a test may.
func isFree(t *testing.T, address string) bool {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return true
}

// PostgresSocket returns the path of the Unix socket in a Postgres URL.
func PostgresSocket(t *testing.T, dsn string) string {
	t.Helper()
	server, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(server.Query().Get("host"), ".s.PGSQL."+server.Query().Get("port"))
}

// OverTCP returns the URL of the same database at a TCP address, for example that of a proxy.
func OverTCP(t *testing.T, dsn, address string) string {
	t.Helper()
	parsed, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Host, parsed.RawQuery = address, url.Values{"sslmode": {"disable"}}.Encode()
	return parsed.String()
}
