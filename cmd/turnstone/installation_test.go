package main

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestTheCommandsOfTheInstallationPageLeadToAnAnswer runs what docs/installation.md says, from an empty Postgres to an
// answer. Only the first block, the values that an operator chooses, is the test's own.
func TestTheCommandsOfTheInstallationPageLeadToAnAnswer(t *testing.T) {
	page, err := os.ReadFile("../../docs/installation.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := shellBlock.FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 6 {
		t.Fatalf("the page has %d blocks of commands", len(blocks))
	}
	folder, err := os.MkdirTemp("", "turnstone-installation-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o711); err != nil { // the account of Postgres passes through
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	redis := embeddedtest.Redis(t)
	postgres, err := embedded.StartPostgres(sitetest.Within(t, sitetest.Patience), embedded.PostgresOptions{DataDir: filepath.Join(folder, "postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), sitetest.Patience)
		defer cancel()
		if err := postgres.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	server, err := url.Parse(postgres.DSN("anybody", "turnstone"))
	if err != nil {
		t.Fatal(err)
	}
	public := sitetest.FreeAddress(t)
	values := map[string]string{
		"SUPERUSER":       postgres.DSN(embedded.Superuser, "postgres"),
		"DATABASE_SERVER": server.Host + server.Path + "?" + server.RawQuery,
		"OWNER_PASSWORD":  "owner", "LOGIN_PASSWORD": "login", "REDIS": redis.URL(), "BASE_URL": "http://" + public,
		"LISTEN": public, "INTERNAL": sitetest.FreeAddress(t), "ETC": filepath.Join(folder, "etc"), "DATA": filepath.Join(folder, "data"),
	}
	script := new(strings.Builder)
	script.WriteString("set -euo pipefail\n")
	for name, value := range values {
		if !strings.Contains(blocks[0][1], name+"=") {
			t.Errorf("the page does not choose %s", name)
		}
		script.WriteString(name + "='" + value + "'\n")
	}
	script.WriteString("trap 'kill -KILL $SERVICE 2>/dev/null || true' EXIT; SERVICE=\n")
	for _, block := range blocks[1:] {
		script.WriteString(block[1])
	}
	turnstone := sitetest.Race.Command(t, nil)
	if err := os.Symlink(turnstone.Path, filepath.Join(folder, "turnstone")); err != nil {
		t.Fatal(err)
	}
	const programs = 3 // that may each take sitetest.Patience: migrate, doctor and serve
	command := exec.CommandContext(sitetest.Within(t, programs*sitetest.Patience), "bash", "-c", script.String())
	command.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "HOME=" + folder, "TMPDIR=" + folder}
	printed, err := command.CombinedOutput()
	said := string(printed)
	for _, want := range []string{"CREATE DATABASE", "The schema has version", "ok    owner of the schema", "ok    Postgres", `"status":"ready"`, `"status":"ok"`, "event: answer.completed", "42", `"status":"completed"`} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing printed %q", want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v:\n%s", err, said)
	}
}

// printedSQL is what doctor and migrate print for psql, without the indentation.
func printedSQL(t *testing.T, printed string) string {
	t.Helper()
	const indentation = "          "
	var statements []string
	for line := range strings.Lines(printed) {
		if text, isSQL := strings.CutPrefix(line, indentation); isSQL {
			statements = append(statements, text)
		}
	}
	if len(statements) == 0 || !strings.Contains(printed, "as a superuser of the server, in this database (psql):") {
		t.Fatalf("no SQL is printed:\n%s", printed)
	}
	return strings.Join(statements, "")
}

// An early migrate ran as the superuser that made the cluster. Postgres refuses REASSIGN OWNED for it, and policies name
// their role: what is printed hands over all of it, and sign-ins find their accounts.
func TestThePrintedSQLHandsOverWhatTheSuperuserMigrated(t *testing.T) {
	i := sitetest.NewHosted(t)
	address, err := url.Parse(i.Owner)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(embedded.Superuser)
	superuser := address.String()
	if code, _, complaint := sitetest.Finish(t, append(i.Environment, "TURNSTONE_MIGRATE_DATABASE_URL="+superuser), "migrate"); code != 0 {
		t.Fatalf("migrate as the superuser: %d %s", code, complaint)
	}
	environment := append(i.Environment, "TURNSTONE_MIGRATE_DATABASE_URL="+i.Owner)
	var remedy string
	for _, command := range []string{"doctor", "migrate"} {
		code, printed, _ := sitetest.Finish(t, environment, command)
		if remedy = printedSQL(t, printed); code != 1 || !strings.Contains(remedy, "do $$") {
			t.Fatalf("%s: %d\n%s", command, code, printed)
		}
	}
	psql := exec.CommandContext(sitetest.Within(t, sitetest.Patience), "psql", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", superuser)
	psql.Stdin = strings.NewReader(remedy)
	if said, err := psql.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, said, remedy)
	}
	i.Migrate(t)
	if code, printed, complaint := sitetest.Finish(t, environment, "doctor"); code != 0 {
		t.Errorf("doctor after it: %d\n%s\n%s", code, printed, complaint)
	}
	i.Serve(t)
	sitetest.NewUser(t, "http://"+i.Public).Device(t)
}
