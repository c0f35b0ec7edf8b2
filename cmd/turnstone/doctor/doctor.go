// Package doctor checks an installation and prints how to fix what is wrong, for the command of that name. It changes nothing.
package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/connect"
	"turnstone/cmd/turnstone/diskspace"
	"turnstone/cmd/turnstone/folder"
	"turnstone/cmd/turnstone/operate"
	"turnstone/cmd/turnstone/private"
	"turnstone/cmd/turnstone/settings"
	"turnstone/persistence"
	"turnstone/persistence/nodes"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/providers/embedded"
)

// checkTimeout bounds each check.
const checkTimeout = 10 * time.Second

// Command is the command doctor.
type Command struct {
	Bundle string `placeholder:"FILE" help:"Also write a support bundle (.tar.gz) to this new file: the findings, the version, the configuration, the nodes, metrics, goroutines, and the settings and table sizes of Postgres. It has no secrets and nothing that users wrote."`
}

// installation has the inputs of the checks, which are its methods.
type installation struct {
	config *settings.Config
	log    *zap.Logger

	leases    map[protocol.NodeID]ownership.Lease // set by database; nil: it cannot be used
	isRunning bool                                // set by running: something that responds like the service runs
}

// finding is the result of one check: what was checked and, if it failed, the error and the remedy. Notes do not make a
// check fail.
type finding struct {
	what   string
	err    error
	remedy string
	notes  []string
}

// Run performs every check, even if an earlier one failed. It returns an error if any check failed.
func (c *Command) Run(ctx context.Context, p *operate.Program) error {
	findings := &bytes.Buffer{}
	to := io.MultiWriter(p.Stdout, findings)
	config, warnings, err := settings.Load(p.Environment)
	if err == nil {
		err = config.Check()
	}
	bundle := &operate.Bundle{Version: p.Version, Config: &config}
	if err != nil {
		report(to, finding{what: "configuration", err: err, remedy: "see turnstone config doc"})
		bundle.Config = nil
		err = errors.New("the configuration cannot be used")
	} else {
		report(to, finding{what: "configuration", notes: append(warnings, config.Notes()...)})
		err = run(ctx, &config, to)
	}
	if c.Bundle == "" {
		return err
	}
	bundle.Findings = findings.Bytes()
	if failed := p.WriteBundle(ctx, c.Bundle, bundle); failed != nil {
		return errors.Join(err, failed)
	}
	fmt.Fprintln(p.Stdout, "The support bundle is "+c.Bundle+".")
	return err
}

func run(ctx context.Context, config *settings.Config, to io.Writer) error {
	all := &installation{config: config, log: zap.NewNop()}
	failed := 0
	for _, check := range []func(context.Context) finding{
		all.folder, all.space, all.owner, all.database, all.nodes, all.redis, all.objects, all.scanner, all.readers, all.model, all.mail,
		all.certificates, all.running, all.advertised,
	} {
		checkCtx, cancel := context.WithTimeout(ctx, checkTimeout)
		found := check(checkCtx)
		cancel()
		if found.what == "" { // this check does not apply
			continue
		}
		report(to, found)
		if found.err != nil {
			failed++
		}
	}
	for _, found := range all.routes(ctx) {
		report(to, found)
		if found.err != nil {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of the checks above failed", failed)
	}
	return nil
}

func report(to io.Writer, f finding) {
	if f.err == nil {
		fmt.Fprintf(to, "ok    %s\n", f.what)
		for _, note := range f.notes {
			fmt.Fprintf(to, "note  %s\n", note)
		}
		return
	}
	reason := strings.ReplaceAll(f.err.Error(), "\n", "; ")
	fmt.Fprintf(to, "WRONG %s: %s\n", f.what, reason)
	if !PrintRemedies(to, f.err) {
		fmt.Fprintf(to, "      → %s\n", f.remedy)
	}
}

// PrintRemedies prints the SQL and the commands that fix the setup of a server. It returns false if err contains none.
func PrintRemedies(to io.Writer, err error) bool {
	found := pg.SetupErrors(err)
	for _, one := range found {
		if len(one.SQL) > 0 {
			fmt.Fprintln(to, "      → as a superuser of the server, in this database (psql):")
			for _, statement := range one.SQL {
				fmt.Fprintln(to, "          "+strings.ReplaceAll(statement, "\n", "\n          "))
			}
		}
		if one.Command != "" {
			fmt.Fprintln(to, "      → then in a shell:\n          "+one.Command)
		}
	}
	return len(found) > 0
}

func (p *installation) folder(context.Context) finding {
	f := finding{what: "data folder " + p.config.Service.DataDir, remedy: "give the account that runs turnstone this folder, or set TURNSTONE_DATA_DIR"}
	if f.err = os.MkdirAll(p.config.Service.DataDir, folder.Mode); f.err != nil {
		return f
	}
	probe := filepath.Join(p.config.Service.DataDir, "doctor-probe")
	if f.err = folder.WriteFile(probe, "probe\n"); f.err == nil {
		f.err = os.Remove(probe)
	}
	return f
}

func (p *installation) space(context.Context) finding {
	f := finding{what: "space on the disk of the data folder", remedy: "free some space, or move the data folder (TURNSTONE_DATA_DIR)"}
	found, err := diskspace.Read(p.config.Service.DataDir)
	if f.err = err; err == nil {
		f.err = found.Check()
	}
	if p.config.Stores.DatabaseURL == "" {
		f.remedy += "; until then dev starts no turns"
	}
	return f
}

// owner checks the role that migrates, if its URL is configured.
func (p *installation) owner(ctx context.Context) finding {
	url := p.config.Stores.MigrateDatabaseURL
	if url == "" {
		return finding{}
	}
	return finding{
		what: "owner of the schema", remedy: "check TURNSTONE_MIGRATE_DATABASE_URL and that the server runs",
		err: pg.CheckOwner(ctx, url, connect.Login(p.config)),
	}
}

func (p *installation) database(ctx context.Context) finding {
	f := finding{what: "Postgres", remedy: "check DATABASE_URL, that the server runs, and run turnstone migrate"}
	url, done, err := private.DatabaseURL(ctx, p.config)
	if err != nil {
		return finding{what: "private Postgres", err: err, remedy: "turnstone dev installs and starts it: make run"}
	}
	defer done()
	db, err := persistence.Open(ctx, persistence.Config{URL: url, Logger: p.log})
	if err != nil {
		f.err = err
		return f
	}
	defer db.Close()
	if f.err = db.Ready(ctx); f.err == nil {
		p.leases, f.err = nodes.NewDirectory(db.DB).Leases(ctx)
	}
	return f
}

func (p *installation) redis(ctx context.Context) finding {
	if p.config.Stores.RedisURL == "" {
		return finding{what: "private Redis", err: embedded.RedisInstalled(), remedy: "apt-get install redis-server, or set REDIS_URL"}
	}
	f := finding{what: "Redis", remedy: "check REDIS_URL and that the server runs"}
	f.err = connect.ProbeRedis(ctx, p.config)
	return f
}

func (p *installation) objects(ctx context.Context) finding {
	f := finding{what: "object store", remedy: "check TURNSTONE_S3_*, the AWS_* credentials and that the bucket exists"}
	store, done, err := connect.Objects(ctx, p.config)
	if err != nil {
		f.err = err
		return f
	}
	f.err = errors.Join(store.Ready(ctx), done())
	return f
}

func (p *installation) scanner(ctx context.Context) finding {
	scanner, err := connect.Scanner(p.config)
	if err != nil {
		return finding{what: "malware scanner", err: err, remedy: "check TURNSTONE_CLAMD_ADDRESS"}
	}
	return finding{
		what: "malware scanner (" + scanner.Engine() + ")", err: scanner.Ready(ctx),
		remedy: "check TURNSTONE_CLAMD_ADDRESS, that clamd runs, and that freshclam updates its signatures",
	}
}

func (p *installation) model(ctx context.Context) finding {
	f := finding{
		what:   "model",
		remedy: "check TURNSTONE_MODEL_BASE_URL and TURNSTONE_MODEL_API_KEY, or the file of TURNSTONE_MODEL_CONFIG, and that the provider can be reached from here",
	}
	_, model, err := connect.Models(p.config, zap.NewNop())
	if err != nil {
		f.err = err
		return f
	}
	f.what = "model (" + model.Family() + ")"
	f.err = model.Ready(ctx)
	return f
}

// mail connects to the mail server and signs in. It sends no mail.
func (p *installation) mail(ctx context.Context) finding {
	f := finding{what: "mail server", remedy: "check TURNSTONE_SMTP_URL with its user and password, TURNSTONE_SMTP_CA_FILE, and that the server can be reached from here"}
	client, err := connect.Mail(p.config)
	if err == nil && client == nil {
		return finding{}
	}
	if f.err = err; err == nil {
		f.err = client.Ready(ctx)
	}
	return f
}

// running checks that the internal address is free, or that the turnstone on it is ready.
func (p *installation) running(ctx context.Context) finding {
	address := p.config.Service.InternalListen
	f := finding{what: "service at " + address, remedy: "see the checks in the response of /ready on that address"}
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp", address)
	if err == nil {
		f.what, f.err = "service: not running, and "+address+" is free", socket.Close()
		return f
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ready", nil)
	if err != nil {
		f.err = err
		return f
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		f.err = fmt.Errorf("the address is in use by something that does not respond like turnstone: %w", err)
		f.remedy = "set TURNSTONE_INTERNAL_LISTEN to a free address"
		return f
	}
	defer func() { _ = response.Body.Close() }()
	p.isRunning = true
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // whatever was read is shown
		f.err = fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	return f
}
