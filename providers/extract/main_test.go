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
	"golang.org/x/sys/unix"

	"turnstone/providers/extract"
)

// TestMain runs the tests, or a child process: the test binary with "child" as its first argument.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2], extract.Task(os.Args[3]), os.Args[4], os.Args[5]))
	}
	goleak.VerifyTestMain(m)
}

// watchSpace ends this process as soon as its address space is limited: its runtime might need more at that moment.
func watchSpace() {
	for {
		var space unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_AS, &space); err != nil || space.Cur != unix.RLIM_INFINITY {
			os.Exit(2)
		}
	}
}

var allocated [][]byte // keeps what a child allocates

// child behaves as its first argument says.
func child(behaviour string, task extract.Task, mediaType, reader string) int {
	switch behaviour {
	case "watch":
		go watchSpace()
		fallthrough
	case "read":
		if err := extract.Child(os.Stdin, os.Stdout, task, mediaType, reader); err != nil {
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
