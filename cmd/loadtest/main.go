// Command loadtest measures Turnstone from outside: it drives live turns against a running service (run), and against a
// service, a Postgres and a Redis of its own beside the baselines that the goals are held against (bench).
//
// What it knows of the service is what clients and operators know: HTTP, the process table and the database. The
// baselines and the stand-in for a model are the same binary started again, each as a process of its own, so that the
// time of each is its own.
//
// Load is open-loop: what is due begins when it is due, whether or not the service kept up, and a delay counts from when
// the token was due, not from when somebody came round to sending it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// program is what every command gets.
type program struct {
	stdout, stderr io.Writer
}

// say tells whoever waits what is being done.
func (p *program) say(format string, args ...any) { fmt.Fprintf(p.stderr, format+"\n", args...) }

// cli is the command line.
type cli struct {
	Run      runCommand      `cmd:"" help:"Drive live turns against a running service and print what was seen."`
	Bench    benchCommand    `cmd:"" help:"Measure the goals, each beside its baseline, and write docs/benchmarks.md."`
	Soak     soakCommand     `cmd:"" help:"Keep a share of the measured capacity alive for long, with a fault every half minute, and write docs/soak.md."`
	Upstream upstreamCommand `cmd:"" hidden:"" help:"The model: an OpenAI-style server that streams at a fixed pace."`
	Baseline struct {
		Proxy proxyCommand `cmd:"" help:"A bare httputil.ReverseProxy."`
		SSE   sseCommand   `cmd:"" name:"sse" help:"A bare net/http server of server-sent events."`
	} `cmd:"" hidden:"" help:"What the service is held against."`
}

// run does what the arguments say and answers the exit code.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	ended := false // by --help
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
	if err := command.Run(&program{stdout: stdout, stderr: stderr}); err != nil {
		fmt.Fprintln(stderr, "loadtest:", err)
		return 1
	}
	return 0
}
