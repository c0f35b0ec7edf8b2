// Command turnstone is the whole service in one binary: the server, the same server with everything it needs (dev), and
// the operator's tools. This package reads the environment, makes of it the options of the other packages, and wires
// those together; it holds no rule of the product.
//
// main only calls run, which is what the tests of the whole program start too, as a process of its own.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Environ()))
}

// program is what every command gets.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environment    map[string]string
}

// cli is the command line.
type cli struct {
	Dev     devCommand     `cmd:"" help:"Run everything on this machine: private Postgres and Redis, a scripted model, a seeded account."`
	Serve   serveCommand   `cmd:"" help:"Run the service, configured by the environment."`
	Migrate migrateCommand `cmd:"" help:"Bring the database schema to this version, as its owner."`
	Doctor  doctorCommand  `cmd:"" help:"Say what is wrong with this installation, and what to do."`
	Config  configCommand  `cmd:"" help:"Check, print or document the configuration."`
	User    userCommand    `cmd:"" help:"Make and change accounts."`
	Turn    turnCommand    `cmd:"" help:"Look at a turn, or cancel it, on the running service."`
	OpenAPI openAPICommand `cmd:"" name:"openapi" help:"Print the OpenAPI document of the service."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// run does what the arguments say and answers the exit code. Every failure is one line on stderr.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer, environment []string) int {
	p := &program{stdin: os.Stdin, stdout: stdout, stderr: stderr, environment: environmentOf(environment)}
	ended := false // by --help, which prints and asks to exit
	parser, err := kong.New(&cli{}, kong.Name("turnstone"), kong.UsageOnError(), kong.Writers(stdout, stderr),
		kong.Description("Account-owned conversations whose answers are live, durable turns."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Exit(func(int) { ended = true }))
	if err != nil {
		return fail(stderr, err, exitFailed)
	}
	command, err := parser.Parse(arguments)
	if ended {
		return 0
	}
	if err != nil {
		return fail(stderr, fmt.Errorf("%w (turnstone --help)", err), exitUsage)
	}
	limitMemory(p.environment)
	if err := armFailpoints(p.environment); err != nil {
		return fail(stderr, err, exitFailed)
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(p); err != nil {
		return fail(stderr, err, exitFailed)
	}
	return 0
}

// fail prints one line, also of joined errors.
func fail(stderr io.Writer, err error, code int) int {
	line := strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
	fmt.Fprintln(stderr, "turnstone: "+line)
	return code
}
