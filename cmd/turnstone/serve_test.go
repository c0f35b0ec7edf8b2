package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/providers/model/modeltest"
)

func TestServeRunsOnWhatItIsGivenAfterMigrate(t *testing.T) {
	i := sitetest.NewHosted(t)
	if code, _, complaint := sitetest.Finish(t, i.Environment, "serve"); code != 1 || !strings.Contains(complaint, "run `turnstone migrate`") {
		t.Fatalf("without a schema: %d %s", code, complaint)
	}
	i.Migrate(t)
	i.Migrate(t)
	p := i.Serve(t)
	if status, body, err := sitetest.Fetch(t, http.MethodGet, "http://"+i.Internal+"/ready", ""); status != http.StatusOK || err != nil {
		t.Errorf("ready: %d %s %v", status, body, err)
	}
	if code, _, complaint := sitetest.Finish(t, i.Environment, "doctor"); code != 0 {
		t.Errorf("doctor: %d %s", code, complaint)
	}
	if status, body, err := sitetest.Fetch(t, http.MethodGet, "http://"+i.Internal+"/metrics", ""); status != http.StatusOK || err != nil ||
		!strings.Contains(body, "turnstone_turns_live 0") || !strings.Contains(body, "turnstone_database_connections") {
		t.Errorf("metrics: %d %v\n%s", status, err, body)
	}
	for _, address := range []string{i.Public, i.Internal} { // a page whose name resolves to our address (DNS rebinding)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "attacker.example"
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s for another host: %s", address, response.Status)
		}
	}
	p.Signal(syscall.SIGTERM)
	if code := p.Exit(); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	if strings.Contains(p.Complaints(), sitetest.GivenSecret) {
		t.Error("the secret is in the log")
	}
}

// TestDoctorAndMigratePrintTheSQLThatHelps has a login role that does not exist, and an owner that may create none.
func TestDoctorAndMigratePrintTheSQLThatHelps(t *testing.T) {
	i := sitetest.NewHosted(t)
	login, err := url.Parse(i.Login)
	if err != nil {
		t.Fatal(err)
	}
	login.User = url.User("nobody_yet")
	environment := append(i.Environment, "DATABASE_URL="+login.String(), "TURNSTONE_MIGRATE_DATABASE_URL="+i.Owner)
	const remedy = `create role "nobody_yet" login noinherit nobypassrls password '<password>';`
	for _, command := range []string{"doctor", "migrate"} {
		code, printed, complaint := sitetest.Finish(t, environment, command)
		if code != 1 || !strings.Contains(printed, "psql") || !strings.Contains(printed, remedy) || !strings.Contains(printed+complaint, "the login role nobody_yet of DATABASE_URL does not exist") {
			t.Errorf("%s: %d\n%s\n%s", command, code, printed, complaint)
		}
	}
	code, printed, _ := sitetest.Finish(t, append(i.Environment, "TURNSTONE_MIGRATE_DATABASE_URL="+i.Owner), "doctor")
	if code != 1 || !strings.Contains(printed, "ok    owner of the schema") || !strings.Contains(printed, "WRONG Postgres") || !strings.Contains(printed, " turnstone migrate\n") {
		t.Errorf("doctor before the first migration: %d\n%s", code, printed)
	}
}

// A database that is there, and busy for longer than a request waits for it, does not end a start.
func TestAStartOutwaitsABusyDatabase(t *testing.T) {
	i := sitetest.NewHosted(t)
	i.Migrate(t)
	ctx := sitetest.Within(t, sitetest.Patience)
	conn, err := pgx.Connect(ctx, i.Owner)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	lock, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(ctx, `lock table nodes in exclusive mode`); err != nil {
		t.Fatal(err)
	}
	p := sitetest.Start(t, i.Environment, "serve")
	p.UntilLogged("the node is not registered yet")
	if err := lock.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	p.UntilLogged("turnstone serves")
}

// SIGTERM: a turn that ends within the grace ends here, for its reader too; nothing new begins meanwhile. The turn ends
// when it was looked at, however long that took.
func TestSIGTERMLetsLiveTurnsEnd(t *testing.T) {
	looked := make(chan struct{})
	model := modeltest.NewServer(modeltest.Chat, modeltest.Script{Steps: []modeltest.Step{{Text: []string{"One, ", "two."}, Gate: looked}}})
	t.Cleanup(model.Close)
	i := sitetest.NewHosted(t)
	i.Migrate(t)
	p := i.Serve(t, "TURNSTONE_DRAIN_GRACE=60s",
		"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+model.URL, "TURNSTONE_MODEL_BALANCED=some-model")
	c := signedUp(t, i)
	_, stream := c.chat("Count.")
	awaitEvent(t, stream, "answer.delta")
	p.Signal(syscall.SIGTERM)
	p.UntilLogged("draining")
	if status, body, _ := sitetest.Fetch(t, http.MethodGet, "http://"+i.Internal+"/ready", ""); status != http.StatusServiceUnavailable {
		t.Errorf("ready while draining: %d %s", status, body)
	}
	close(looked)
	awaitEvent(t, stream, "turn.finished")
	if code := p.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// What does not end within the grace is handed on: the next process goes on with it.
func TestALongTurnOutlivesADrain(t *testing.T) {
	i := sitetest.NewHosted(t)
	i.Migrate(t)
	p := i.Serve(t, "TURNSTONE_DRAIN_GRACE=100ms")
	c := signedUp(t, i)
	turn, stream := c.chat("[[script tokens=150 ttft=10ms interval=20ms]]")
	awaitEvent(t, stream, "answer.delta")
	p.Signal(syscall.SIGTERM)
	if code := p.Exit(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	i.Serve(t)
	code, events, complaint := sitetest.Finish(t, i.Environment, "turn", "events", turn, "--follow")
	if code != 0 || !strings.Contains(events, `"turn.finished"`) || !strings.Contains(events, `"turn.recovering"`) {
		t.Errorf("%d %s\n%s", code, complaint, events)
	}
}
