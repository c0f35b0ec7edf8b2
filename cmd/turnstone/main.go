// Command turnstone is the whole service in one binary: the server (serve), the server together with everything it
// needs on one host computer (dev), and the tools of administrators. This package reads the environment, derives the
// options of the other packages from it, and wires those packages together. It contains no product rules.
//
// main only calls run. Tests of the whole program run the built binary as a separate process.
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
	"go.uber.org/zap"

	"turnstone/cmd/turnstone/dev"
	"turnstone/cmd/turnstone/doctor"
	"turnstone/cmd/turnstone/folder"
	"turnstone/cmd/turnstone/operate"
	"turnstone/cmd/turnstone/settings"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Environ()))
}

// program holds the standard streams and the environment that every command receives.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environment    map[string]string
}

// operate returns what the commands of package operate receive.
func (p *program) operate() *operate.Program {
	return &operate.Program{Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr, Environment: p.environment, Version: versionLine(), WithDatabase: p.withDatabase}
}

// dev returns what the command dev receives.
func (p *program) dev() *dev.Program {
	return &dev.Program{Program: p.operate(), StartService: func(ctx context.Context, config *settings.Config, in *folder.Folder, log *zap.Logger) (dev.Service, error) {
		return startService(ctx, config, in, p.environment, log)
	}}
}

// cli is the command line.
type cli struct {
	Dev     dev.Command     `cmd:"" help:"Run everything on this host computer: private Postgres and Redis, a scripted model, a seeded account."`
	Serve   serveCommand    `cmd:"" help:"Run the service, configured by the environment."`
	Migrate migrateCommand  `cmd:"" help:"Migrate the database schema to this version, as the owner of the schema."`
	Doctor  doctor.Command  `cmd:"" help:"Check this installation and print how to fix what is wrong."`
	Config  configCommand   `cmd:"" help:"Check, print or document the configuration."`
	User    operate.User    `cmd:"" help:"List, create, change and erase accounts."`
	Turn    operate.Turn    `cmd:"" help:"Inspect or cancel a turn on the running service."`
	Node    operate.Node    `cmd:"" help:"List the nodes of the running service, or drain one."`
	Cluster operate.Cluster `cmd:"" help:"Create the certificates of the nodes of a cluster."`
	OpenAPI openAPICommand  `cmd:"" name:"openapi" help:"Print the OpenAPI document of the service."`
	Version versionCommand  `cmd:"" help:"Print the version."`
	Extract extractCommand  `cmd:"" hidden:""`
	Execute codeCommand     `cmd:"" hidden:""`
}

// run executes the command that the arguments name and returns the exit code. It prints every failure as one line on
// stderr.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer, environment []string) int {
	p := &program{stdin: os.Stdin, stdout: stdout, stderr: stderr, environment: settings.ParseEnvironment(environment)}
	ended := false // set by --help, which prints the help and requests an exit
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
	if err := command.Run(p, p.operate(), p.dev()); err != nil {
		return fail(stderr, err, exitFailed)
	}
	return 0
}

// fail prints err as one line, even if it joins several errors, and returns code.
func fail(stderr io.Writer, err error, code int) int {
	line := strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
	fmt.Fprintln(stderr, "turnstone: "+line)
	return code
}
