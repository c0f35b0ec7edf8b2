package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"turnstone/persistence"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

var hostedCount atomic.Int64

// hosted is what serve is given from outside: a database, a Redis, a secret and a folder.
type hosted struct {
	*development
	owner string // DSN of the owner of the database
}

// newHosted has a database with roles and, as yet, no schema.
func newHosted(t *testing.T) *hosted {
	t.Helper()
	postgres, redis := embeddedtest.Postgres(t), embeddedtest.Redis(t)
	name := "serve_" + string(rune('a'+hostedCount.Add(1)))
	err := persistence.Provision(t.Context(), postgres.DSN(embedded.Superuser, "postgres"), name, privateOwner, privateLogin)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(goodSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	i := &hosted{owner: postgres.DSN(privateOwner, name)}
	i.development = newDevelopment(t, "DATABASE_URL="+postgres.DSN(privateLogin, name), "REDIS_URL="+redis.URL(), "TURNSTONE_SECRET_FILE="+secret)
	return i
}

func (i *hosted) migrate(t *testing.T) {
	t.Helper()
	code, printed, complaint := finish(t, append(i.environment, "TURNSTONE_MIGRATE_DATABASE_URL="+i.owner), "migrate")
	if code != 0 || !strings.Contains(printed, "version") {
		t.Fatalf("migrate: %d %q %q", code, printed, complaint)
	}
}

// serve starts the service and waits until it is ready.
func (i *hosted) serve(t *testing.T, more ...string) *process {
	t.Helper()
	p := start(t, append(i.environment, more...), "serve")
	p.untilLogged("turnstone serves")
	return p
}

func TestServeRunsOnWhatItIsGivenAfterMigrate(t *testing.T) {
	i := newHosted(t)
	if code, _, complaint := finish(t, i.environment, "serve"); code != 1 || !strings.Contains(complaint, "run `turnstone migrate`") {
		t.Fatalf("without a schema: %d %s", code, complaint)
	}
	i.migrate(t)
	i.migrate(t)
	p := i.serve(t)
	if status, body, err := fetch(t, http.MethodGet, "http://"+i.internal+"/ready", ""); status != http.StatusOK || err != nil {
		t.Errorf("ready: %d %s %v", status, body, err)
	}
	if code, _, complaint := finish(t, i.environment, "doctor"); code != 0 {
		t.Errorf("doctor: %d %s", code, complaint)
	}
	if status, body, err := fetch(t, http.MethodGet, "http://"+i.internal+"/metrics", ""); status != http.StatusOK || err != nil ||
		!strings.Contains(body, "turnstone_turns_live 0") || !strings.Contains(body, "turnstone_database_connections") {
		t.Errorf("metrics: %d %v\n%s", status, err, body)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	if strings.Contains(p.complaints(), goodSecret) {
		t.Error("the secret is in the log")
	}
}

// SIGTERM: a turn that ends within the grace ends here, for its reader too; nothing new begins meanwhile.
func TestSIGTERMLetsLiveTurnsEnd(t *testing.T) {
	i := newHosted(t)
	i.migrate(t)
	p := i.serve(t)
	c := i.signedUp(t)
	_, stream := c.chat("[[script tokens=40 ttft=10ms interval=25ms]]")
	awaitEvent(t, stream, "answer.delta")
	p.signal(syscall.SIGTERM)
	p.untilLogged("draining")
	if status, body, _ := fetch(t, http.MethodGet, "http://"+i.internal+"/ready", ""); status != http.StatusServiceUnavailable {
		t.Errorf("ready while draining: %d %s", status, body)
	}
	awaitEvent(t, stream, "turn.finished")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// What does not end within the grace is handed on: the next process goes on with it.
func TestALongTurnOutlivesADrain(t *testing.T) {
	i := newHosted(t)
	i.migrate(t)
	p := i.serve(t, "TURNSTONE_DRAIN_GRACE=100ms")
	c := i.signedUp(t)
	turn, stream := c.chat("[[script tokens=150 ttft=10ms interval=20ms]]")
	awaitEvent(t, stream, "answer.delta")
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	i.serve(t)
	code, events, complaint := finish(t, i.environment, "turn", "events", turn, "--follow")
	if code != 0 || !strings.Contains(events, `"turn.finished"`) || !strings.Contains(events, `"turn.recovering"`) {
		t.Errorf("%d %s\n%s", code, complaint, events)
	}
}

// signedUp is a new account of the installation.
func (i *hosted) signedUp(t *testing.T) *client {
	t.Helper()
	const email = "grace@example.org"
	code, printed, complaint := finish(t, i.environment, "user", "add", email)
	if code != 0 {
		t.Fatalf("user add: %d %s", code, complaint)
	}
	c := newClient(t, "http://"+i.public)
	if status := c.signIn(email, lastWord(printed)); status != http.StatusOK {
		t.Fatalf("sign-in: %d", status)
	}
	return c
}
