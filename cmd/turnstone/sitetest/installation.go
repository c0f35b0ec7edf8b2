package sitetest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"turnstone/persistence"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

const (
	databaseOwner = "turnstone_owner"
	databaseLogin = "turnstone"
	// GivenSecret is the installation's own.
	GivenSecret = "vG3x0fQ9l2Zt7bYc5RkMw8aJpH4nUeSd"
)

// Development is a dev installation of its own: a data folder and two addresses.
type Development struct {
	Folder, Public, Internal string
	Environment              []string
	Build                    *Build // what Up runs; Race if nobody says otherwise
}

// NewDevelopment does not run yet.
func NewDevelopment(t *testing.T, more ...string) *Development {
	t.Helper()
	folder, err := os.MkdirTemp("", "turnstone-dev-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o711); err != nil { // the servers' accounts pass through
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	d := &Development{Build: Race, Folder: filepath.Join(folder, "data"), Public: FreeAddress(t), Internal: FreeAddress(t)}
	d.Environment = append([]string{
		"TURNSTONE_DATA_DIR=" + d.Folder, "TURNSTONE_LISTEN=" + d.Public, "TURNSTONE_INTERNAL_LISTEN=" + d.Internal,
	}, more...)
	return d
}

// Up starts dev and waits until it serves.
func (d *Development) Up(t *testing.T) *Process {
	t.Helper()
	p := d.Build.Start(t, d.Environment, "dev")
	p.Until("Ctrl-C stops all of it")
	if _, checks := Readiness(t, d.Internal); checks["disk"] == "down" {
		t.Fatal("the disk of this machine is nearly full: the service begins no turn (docs/errors.md says how much it needs)")
	}
	return p
}

var hostedCount atomic.Int64

// Hosted is what serve is given from outside: a database, a Redis, a secret and a folder.
type Hosted struct {
	*Development
	Owner string // DSN of the owner of the database
	Login string // DSN that the service is given
}

// NewHosted has a database with roles and, as yet, no schema.
func NewHosted(t *testing.T) *Hosted {
	t.Helper()
	return NewHostedOn(t, embeddedtest.Postgres(t))
}

// NewHostedOn is NewHosted with its database on a server that the test may break.
func NewHostedOn(t *testing.T, postgres *embedded.Postgres) *Hosted {
	t.Helper()
	redis := embeddedtest.Redis(t)
	name := "serve_" + strconv.FormatInt(hostedCount.Add(1), 10)
	err := persistence.Provision(t.Context(), postgres.DSN(embedded.Superuser, "postgres"), name, databaseOwner, databaseLogin)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(GivenSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	i := &Hosted{Owner: postgres.DSN(databaseOwner, name), Login: postgres.DSN(databaseLogin, name)}
	i.Development = NewDevelopment(t, "DATABASE_URL="+i.Login, "REDIS_URL="+redis.URL(), "TURNSTONE_SECRET_FILE="+secret)
	return i
}

// Migrate brings the schema up, as an operator does.
func (i *Hosted) Migrate(t *testing.T) {
	t.Helper()
	code, printed, complaint := Finish(t, append(i.Environment, "TURNSTONE_MIGRATE_DATABASE_URL="+i.Owner), "migrate")
	if code != 0 || !strings.Contains(printed, "version") {
		t.Fatalf("migrate: %d %q %q", code, printed, complaint)
	}
}

// Serve starts the service and waits until it is ready.
func (i *Hosted) Serve(t *testing.T, more ...string) *Process {
	t.Helper()
	p := i.Build.Start(t, append(i.Environment, more...), "serve")
	p.UntilLogged("turnstone serves")
	return p
}
