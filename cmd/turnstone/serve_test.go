package main

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/providers/model/modeltest"
)

func TestServeRunsWithConfiguredServersAfterMigrate(t *testing.T) {
	t.Parallel()
	i := sitetest.NewHosted(t)
	if code, _, stderr := sitetest.Finish(t, i.Environment, "serve"); code != 1 || !strings.Contains(stderr, "run `turnstone migrate`") {
		t.Fatalf("without a schema: %d %s", code, stderr)
	}
	i.Migrate(t)
	i.Migrate(t)
	p := i.Serve(t)
	if status, body, err := sitetest.Fetch(t, http.MethodGet, "http://"+i.Internal+"/ready", ""); status != http.StatusOK || err != nil {
		t.Errorf("ready: %d %s %v", status, body, err)
	}
	deployment, err := os.ReadFile("../../deploy/kubernetes/base/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	probe := regexp.MustCompile(`/ready\?\S+`).FindString(string(deployment))
	if status, body, err := sitetest.Fetch(t, http.MethodGet, "http://"+i.Internal+probe, ""); probe == "" || status != http.StatusOK || err != nil {
		t.Errorf("the probe of Kubernetes, %s: %d %s %v", probe, status, body, err)
	}
	if code, _, stderr := sitetest.Finish(t, i.Environment, "doctor"); code != 0 {
		t.Errorf("doctor: %d %s", code, stderr)
	}
	if status, body, err := sitetest.Fetch(t, http.MethodGet, "http://"+i.Internal+"/metrics", ""); status != http.StatusOK || err != nil ||
		!strings.Contains(body, "turnstone_turns_live 0") || !strings.Contains(body, "turnstone_database_connections") {
		t.Errorf("metrics: %d %v\n%s", status, err, body)
	}
	for _, address := range []string{i.Public, i.Internal} { // a web page whose host name resolves to this address (DNS rebinding)
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
	if strings.Contains(p.Stderr(), sitetest.GivenSecret) {
		t.Error("the secret is in the log")
	}
}

// TestDoctorAndMigratePrintTheSQLThatHelps uses a login role that does not exist, and an owner that may not create it.
func TestDoctorAndMigratePrintTheSQLThatHelps(t *testing.T) {
	t.Parallel()
	i := sitetest.NewHosted(t)
	login, err := url.Parse(i.Login)
	if err != nil {
		t.Fatal(err)
	}
	login.User = url.User("nobody_yet")
	environment := append(i.Environment, "DATABASE_URL="+login.String(), "TURNSTONE_MIGRATE_DATABASE_URL="+i.Owner)
	const remedy = `create role "nobody_yet" login noinherit nobypassrls password '<password>';`
	for _, command := range []string{"doctor", "migrate"} {
		code, stdout, stderr := sitetest.Finish(t, environment, command)
		if code != 1 || !strings.Contains(stdout, "psql") || !strings.Contains(stdout, remedy) || !strings.Contains(stdout+stderr, "the login role nobody_yet of DATABASE_URL does not exist") {
			t.Errorf("%s: %d\n%s\n%s", command, code, stdout, stderr)
		}
	}
	code, stdout, _ := sitetest.Finish(t, append(i.Environment, "TURNSTONE_MIGRATE_DATABASE_URL="+i.Owner), "doctor")
	if code != 1 || !strings.Contains(stdout, "ok    owner of the schema") || !strings.Contains(stdout, "WRONG Postgres") || !strings.Contains(stdout, " turnstone migrate\n") {
		t.Errorf("doctor before the first migration: %d\n%s", code, stdout)
	}
}

// TestServeStartsAlthoughTheDatabaseIsBusyAtFirst keeps the database busy for longer than a request waits for it.
func TestServeStartsAlthoughTheDatabaseIsBusyAtFirst(t *testing.T) {
	i := sitetest.NewHosted(t)
	i.Migrate(t)
	ctx := sitetest.Within(t, sitetest.HangGuard)
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
	p.AwaitLog("the node is not registered yet")
	if err := lock.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	p.AwaitLog("turnstone serves")
}

// TestSIGTERMLetsLiveTurnsEnd checks that a turn that ends within the grace ends in this process, also for its reader,
// and that the process is not ready in the meantime. The model's answer ends only after /ready was checked, so the test
// does not depend on timing.
func TestSIGTERMLetsLiveTurnsEnd(t *testing.T) {
	t.Parallel()
	checked := make(chan struct{})
	model := modeltest.NewServer(modeltest.Chat, modeltest.Script{Steps: []modeltest.Step{{Text: []string{"One, ", "two."}, Gate: checked}}})
	t.Cleanup(model.Close)
	i := sitetest.NewHosted(t)
	i.Migrate(t)
	p := i.Serve(t, "TURNSTONE_DRAIN_GRACE=60s",
		"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+model.URL, "TURNSTONE_MODEL_BALANCED=some-model")
	stream := newSignedUpUser(t, i).Chat(t, sitetest.NewChatBody("Count."))
	stream.AwaitKind(t, "answer.delta")
	p.Signal(syscall.SIGTERM)
	p.AwaitLog("draining")
	if status, body, _ := sitetest.Fetch(t, http.MethodGet, "http://"+i.Internal+"/ready", ""); status != http.StatusServiceUnavailable {
		t.Errorf("ready while draining: %d %s", status, body)
	}
	close(checked)
	stream.AwaitKind(t, "turn.finished")
	if code := p.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestATurnThatExceedsTheDrainGraceIsContinuedByTheNextProcess(t *testing.T) {
	t.Parallel()
	i := sitetest.NewHosted(t)
	i.Migrate(t)
	p := i.Serve(t, "TURNSTONE_DRAIN_GRACE=100ms")
	stream := newSignedUpUser(t, i).Chat(t, sitetest.NewChatBody("[[script tokens=150 ttft=10ms interval=20ms]]"))
	stream.AwaitKind(t, "answer.delta")
	p.Signal(syscall.SIGTERM)
	if code := p.Exit(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	i.Serve(t)
	code, events, stderr := sitetest.Finish(t, i.Environment, "turn", "events", stream.Turn, "--follow")
	if code != 0 || !strings.Contains(events, `"turn.finished"`) || !strings.Contains(events, `"turn.recovering"`) {
		t.Errorf("%d %s\n%s", code, stderr, events)
	}
}
