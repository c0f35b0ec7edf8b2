// Command loadtest measures Turnstone from outside. The command run drives live turns against a running service. bench
// starts a service, a Postgres and a Redis of its own and measures the performance goals against baselines. compare
// measures some of them for two versions of the program. soak runs a load for a long time while it injects faults.
//
// It observes the service as clients and operators do: through HTTP, the process table and the database. There are two
// exceptions: P5 runs a Go benchmark of package persistence, and P14 reads replays through that package. The baselines
// and the model stand-in are further processes of the same binary, so that the CPU time of each can be measured
// separately.
//
// Load is open-loop, except where a measurement keeps a fixed number of requests in flight: a request starts when it is
// due, whether or not the service keeps up. The delay of a token counts from when it was due, not from when it was
// sent.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"turnstone/cmd/loadtest/bench"
	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/server"
	"turnstone/cmd/loadtest/soak"

	"github.com/alecthomas/kong"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process immediately
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// cli is the command line.
type cli struct {
	Run      runCommand      `cmd:"" help:"Drive live turns against a running service and print the measurements."`
	Bench    bench.Command   `cmd:"" help:"Measure the performance goals against their baselines and write docs/benchmarks.md."`
	Compare  bench.Compare   `cmd:"" help:"Measure two programs in alternating rounds, and compare what they cost."`
	Soak     soak.Command    `cmd:"" help:"Run a share of the measured capacity for a long time while faults are injected, and report lost data and leaks."`
	Upstream server.Upstream `cmd:"" hidden:"" help:"The model stand-in: an OpenAI-style server that streams at a fixed pace."`
	Baseline struct {
		Proxy server.Proxy `cmd:"" help:"A bare httputil.ReverseProxy."`
		File  server.File  `cmd:"" help:"A bare net/http server that stores the body of a request."`
		SSE   server.SSE   `cmd:"" name:"sse" help:"A bare net/http server of server-sent events."`
	} `cmd:"" hidden:"" help:"The servers that the service is compared with."`
}

// run executes the command line. It returns the exit code: 0 for success, 1 if the command failed, 2 if the arguments
// are invalid.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	ended := false // set by --help
	parser, err := kong.New(&cli{}, kong.Name("loadtest"), kong.UsageOnError(), kong.Writers(stdout, stderr),
		kong.Description("Load and measurements for Turnstone."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Exit(func(int) { ended = true }))
	if err != nil {
		fmt.Fprintln(stderr, "loadtest:", err)
		return 1
	}
	command, err := parser.Parse(arguments)
	if ended {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "loadtest:", err)
		return 2
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(&console.Console{Stdout: stdout, Stderr: stderr}); err != nil {
		fmt.Fprintln(stderr, "loadtest:", err)
		return 1
	}
	return 0
}
