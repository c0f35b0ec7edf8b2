package extract_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/providers/extract"
)

// TestMain runs the tests, or a child process: the test binary with "child" as its first argument.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2], os.Args[3], os.Args[4]))
	}
	goleak.VerifyTestMain(m)
}

var allocated [][]byte // keeps what a child allocates

// child behaves as its first argument says.
func child(behaviour, mediaType, reader string) int {
	switch behaviour {
	case "read":
		if err := extract.Child(os.Stdin, os.Stdout, mediaType, reader); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "loop":
		for {
			_ = time.Now()
		}
	case "allocate":
		for {
			piece := make([]byte, 16<<20)
			for i := 0; i < len(piece); i += 4096 {
				piece[i] = 1
			}
			allocated = append(allocated, piece)
		}
	case "crash":
		panic("a bug in a reader")
	case "signal":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		select {}
	case "garbage":
		fmt.Println(`{"state": "done", "text": [`)
	case "flood":
		for {
			if _, err := fmt.Print("                                                                "); err != nil {
				return 1
			}
		}
	case "dial":
		address, err := io.ReadAll(os.Stdin)
		if err == nil {
			var conn net.Conn
			if conn, err = net.DialTimeout("tcp", string(address), 5*time.Second); err == nil {
				_ = conn.Close()
			}
		}
		fmt.Printf(`{"state": "done", "text": %q}`, fmt.Sprint(err))
	case "environment":
		fmt.Printf(`{"state": "done", "text": %q}`, fmt.Sprint(os.Environ()))
	default: // a result
		fmt.Print(behaviour)
	}
	return 0
}
