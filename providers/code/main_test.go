package code_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/providers/code"
)

// TestMain runs the tests, or a child process: the test binary with "child" as its first argument.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

// child behaves as its argument says.
func child(behaviour string) int {
	name, argument, _ := strings.Cut(behaviour, " ")
	switch name {
	case "run":
		if err := code.Child(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "hang": // with a process of its own
		sleeper := exec.Command("/bin/sleep", "600")
		if err := sleeper.Start(); err != nil {
			return 1
		}
		if err := os.WriteFile(argument, fmt.Append(nil, sleeper.Process.Pid), 0o600); err != nil {
			return 1
		}
		select {}
	case "crash":
		panic("a bug of the engine")
	case "flood":
		for {
			if _, err := fmt.Print(`                                                 `); err != nil {
				return 1
			}
		}
	case "dial":
		conn, err := net.DialTimeout("tcp", argument, 5*time.Second)
		if err == nil {
			_ = conn.Close()
		}
		fmt.Printf(`{"Output": %q}`, fmt.Sprint(err))
	default: // a report
		fmt.Print(behaviour)
	}
	return 0
}
