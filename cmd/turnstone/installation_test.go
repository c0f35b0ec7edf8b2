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

// TestTheCommandsOfTheInstallationPageLeadToAnAnswer runs the commands of docs/installation.md, from an empty Postgres
// to an answer. It replaces only the first block, which contains the values that an operator chooses.
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
	if err := os.Chmod(folder, 0o711); err != nil { // the account of Postgres must be able to enter it
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	redis := embeddedtest.Redis(t)
	postgres, err := embedded.StartPostgres(sitetest.Within(t, sitetest.HangGuard), embedded.PostgresOptions{DataDir: filepath.Join(folder, "postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), sitetest.HangGuard)
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
		"CONTENT_URL": "http://127.0.0.1:8082", "CONTENT": sitetest.FreeAddress(t),
		"LISTEN": public, "INTERNAL": sitetest.FreeAddress(t), "ETC": filepath.Join(folder, "etc"), "DATA": filepath.Join(folder, "data"),
	}
	script := new(strings.Builder)
	script.WriteString("set -euo pipefail\n")
	for name, value := range values {
		if !strings.Contains(blocks[0][1], name+"=") {
			t.Errorf("the first block of the page does not set %s", name)
		}
		script.WriteString(name + "='" + value + "'\n")
	}
	script.WriteString("trap 'kill -KILL $SERVICE 2>/dev/null || true' EXIT; SERVICE=\n")
	for _, block := range blocks[1:] {
		script.WriteString(block[1])
	}
	turnstone := sitetest.Standard.Command(t, nil)
	if err := os.Symlink(turnstone.Path, filepath.Join(folder, "turnstone")); err != nil {
		t.Fatal(err)
	}
	const programs = 3 // that may each take sitetest.HangGuard: migrate, doctor and serve
	command := exec.CommandContext(sitetest.Within(t, programs*sitetest.HangGuard), "bash", "-c", script.String())
	command.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "HOME=" + folder, "TMPDIR=" + folder}
	output, err := command.CombinedOutput()
	printed := string(output)
	for _, want := range []string{"CREATE DATABASE", "The schema is ready (version ", "ok    owner of the schema", "ok    Postgres", `"status":"ready"`, `"status":"ok"`, "event: answer.completed", "42", `"status":"completed"`} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q was not printed", want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v:\n%s", err, printed)
	}
}

// printedSQL returns the SQL that doctor and migrate print for psql, without its indentation.
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

// TestThePrintedSQLHandsOverWhatTheSuperuserMigrated covers installations whose first migrate ran as the superuser that
// created the cluster. Postgres refuses REASSIGN OWNED for that role, and policies name their role. The printed SQL
// transfers everything to the owner, and sign-ins find their accounts.
func TestThePrintedSQLHandsOverWhatTheSuperuserMigrated(t *testing.T) {
	t.Parallel()
	i := sitetest.NewHosted(t)
	address, err := url.Parse(i.Owner)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(embedded.Superuser)
	superuser := address.String()
	if code, _, stderr := sitetest.Finish(t, append(i.Environment, "TURNSTONE_MIGRATE_DATABASE_URL="+superuser), "migrate"); code != 0 {
		t.Fatalf("migrate as the superuser: %d %s", code, stderr)
	}
	environment := append(i.Environment, "TURNSTONE_MIGRATE_DATABASE_URL="+i.Owner)
	var remedy string
	for _, command := range []string{"doctor", "migrate"} {
		code, printed, _ := sitetest.Finish(t, environment, command)
		if remedy = printedSQL(t, printed); code != 1 || !strings.Contains(remedy, "do $$") {
			t.Fatalf("%s: %d\n%s", command, code, printed)
		}
	}
	psql := exec.CommandContext(sitetest.Within(t, sitetest.HangGuard), "psql", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", superuser)
	psql.Stdin = strings.NewReader(remedy)
	if output, err := psql.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, output, remedy)
	}
	i.Migrate(t)
	if code, stdout, stderr := sitetest.Finish(t, environment, "doctor"); code != 0 {
		t.Errorf("doctor after the repair: %d\n%s\n%s", code, stdout, stderr)
	}
	i.Serve(t)
	sitetest.NewUser(t, "http://"+i.Public).Device(t)
}
