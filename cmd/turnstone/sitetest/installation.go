package sitetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

const (
	databaseOwner = pgtest.Owner
	databaseLogin = pgtest.Login
	// GivenSecret is the secret of the installation.
	GivenSecret = "vG3x0fQ9l2Zt7bYc5RkMw8aJpH4nUeSd"
)

// DevInstallation is an installation for dev with a data folder and two addresses of its own.
type DevInstallation struct {
	Folder, Public, Internal, Content string
	Environment                       []string
	Build                             *Build // the variant that Start, Migrate and Serve run; Standard unless a test changes it
}

// NewDevelopment creates the installation without starting it. more are additional settings.
func NewDevelopment(t *testing.T, more ...string) *DevInstallation {
	t.Helper()
	folder, err := os.MkdirTemp("", "turnstone-dev-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o711); err != nil { // the accounts of the private servers must be able to enter the folder
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	d := &DevInstallation{Build: Standard, Folder: filepath.Join(folder, "data"), Public: FreeAddress(t), Internal: FreeAddress(t), Content: FreeAddress(t)}
	d.Environment = append([]string{
		"TURNSTONE_DATA_DIR=" + d.Folder, "TURNSTONE_LISTEN=" + d.Public, "TURNSTONE_INTERNAL_LISTEN=" + d.Internal, "TURNSTONE_CONTENT_LISTEN=" + d.Content,
		"TURNSTONE_DOCS_LISTEN=off",
	}, more...)
	return d
}

// Start starts dev and waits until it serves.
func (d *DevInstallation) Start(t *testing.T) *Process {
	t.Helper()
	p := d.Build.Start(t, d.Environment, "dev")
	p.AwaitStdout("Ctrl-C stops all of it")
	if _, checks := Readiness(t, d.Internal); checks["disk"] == "down" {
		t.Fatal("the disk of this host computer is nearly full: the service starts no turns (docs/errors.md says how much space it needs)")
	}
	return p
}

var hostedCount, redisCount atomic.Int64

// ServeInstallation is an installation for serve: a database, a Redis, a secret and a folder.
type ServeInstallation struct {
	*DevInstallation
	Owner string // DSN of the owner of the database
	Login string // DSN of the role that the service uses
}

// NewHosted creates an installation whose database has roles but no schema yet.
func NewHosted(t *testing.T) *ServeInstallation {
	t.Helper()
	return NewHostedOn(t, embeddedtest.Postgres(t))
}

// NewHostedOn is NewHosted with the database on a server that the test may break.
func NewHostedOn(t *testing.T, postgres *embedded.Postgres) *ServeInstallation {
	t.Helper()
	name := "serve_" + strconv.FormatInt(hostedCount.Add(1), 10)
	err := pg.Provision(t.Context(), postgres.DSN(embedded.Superuser, "postgres"), name, databaseOwner, databaseLogin)
	if err != nil {
		t.Fatal(err)
	}
	return newHosted(t, postgres.DSN(databaseOwner, name), postgres.DSN(databaseLogin, name))
}

func newHosted(t *testing.T, owner, login string) *ServeInstallation {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(GivenSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	i := &ServeInstallation{Owner: owner, Login: login}
	// Each installation counts in a database of its own: addresses have the same keys, but the limits may differ.
	redis := fmt.Sprintf("%s?db=%d", embeddedtest.Redis(t).URL(), redisCount.Add(1))
	i.DevInstallation = NewDevelopment(t, "DATABASE_URL="+i.Login, "REDIS_URL="+redis, "TURNSTONE_SECRET_FILE="+secret)
	return i
}

// Migrate runs migrate, as an operator does.
func (i *ServeInstallation) Migrate(t *testing.T) {
	t.Helper()
	code, stdout, stderr := i.Build.Finish(t, append(i.Environment, "TURNSTONE_MIGRATE_DATABASE_URL="+i.Owner), "migrate")
	if code != 0 || !strings.Contains(stdout, "version") {
		t.Fatalf("migrate: %d %q %q", code, stdout, stderr)
	}
}

// Serve starts the service and waits until it is ready.
func (i *ServeInstallation) Serve(t *testing.T, more ...string) *Process {
	t.Helper()
	p := i.Build.Start(t, append(i.Environment, more...), "serve")
	p.AwaitLog("turnstone serves")
	return p
}
