package restore

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/providers/embedded"
)

var (
	section    = regexp.MustCompile(`(?ms)^#+ ([^\n]+)\n(.*?)(?:\z|^#)`)
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	confLine   = regexp.MustCompile(`(?m)^(archive_command|restore_command) = '(.*)'$`)
)

// page returns the sections of docs/backup.md by their headings.
func page(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for rest := string(text); ; {
		at := section.FindStringSubmatchIndex(rest)
		if at == nil {
			return sections
		}
		sections[rest[at[2]:at[3]]] = rest[at[4]:at[5]]
		rest = rest[at[5]:]
	}
}

// installation is what an operator of the page has: the folders, and the values of the page's variables.
type installation struct {
	t        *testing.T
	page     map[string]string
	folder   string
	programs string // of Postgres
	servers  int
	account  *syscall.Stat_t // of Postgres
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	folder, err := os.MkdirTemp("", "turnstone-restore-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	programs, err := embedded.PostgresProgram("")
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{t: t, page: page(t), folder: folder, programs: programs}
	for name, mode := range map[string]os.FileMode{".": 0o711, "backups": 0o711, "backups/wal": 0o777} { // the account of Postgres writes the archive
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	return i
}

func (i *installation) backups(name string) string { return filepath.Join(i.folder, "backups", name) }

// setting returns the value of a setting in a section of the page.
func (i *installation) setting(heading, name string) string {
	i.t.Helper()
	for _, line := range confLine.FindAllStringSubmatch(i.page[heading], -1) {
		if line[1] == name {
			return strings.ReplaceAll(line[2], "/backups/", i.backups("")+"/")
		}
	}
	i.t.Fatalf("the section %q of the page does not set %s", heading, name)
	return ""
}

// run runs the commands of a section of the page.
func (i *installation) run(heading string, variables ...string) {
	i.t.Helper()
	blocks := shellBlock.FindAllStringSubmatch(i.page[heading], -1)
	if len(blocks) != 1 {
		i.t.Fatalf("the section %q of the page has %d blocks of commands", heading, len(blocks))
	}
	command := exec.CommandContext(sitetest.Within(i.t, sitetest.HangGuard), "bash", "-c", "set -euo pipefail\n"+blocks[0][1])
	command.Env = append([]string{"PATH=" + i.programs + ":" + os.Getenv("PATH"), "BACKUPS=" + i.backups("")}, variables...)
	if output, err := command.CombinedOutput(); err != nil {
		i.t.Fatalf("%s: %v\n%s", heading, err, output)
	}
}

// logSettings are the settings of a server whose log can be archived and sent.
func logSettings() map[string]string {
	return map[string]string{"wal_level": "replica", "max_wal_senders": "4"}
}

// start starts a Postgres on a folder of its own.
func (i *installation) start(folder string, settings map[string]string) *embedded.Postgres {
	i.t.Helper()
	server, err := embedded.StartPostgres(sitetest.Within(i.t, sitetest.HangGuard), embedded.PostgresOptions{DataDir: folder, ExtraSettings: settings})
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), sitetest.HangGuard)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			i.t.Error(err)
		}
	})
	return server
}

func (i *installation) startFirst() *embedded.Postgres {
	i.t.Helper()
	settings := logSettings()
	settings["archive_mode"], settings["archive_command"] = "on", i.setting("Postgres: the archive of the log", "archive_command")
	server := i.start(filepath.Join(i.folder, "postgres"), settings)
	info, err := os.Stat(filepath.Join(server.Folder(), "data"))
	if err != nil {
		i.t.Fatal(err)
	}
	i.account = info.Sys().(*syscall.Stat_t)
	return server
}

// restore restores the base backup and starts a server on it, which recovers up to the end of the archive or, if target is
// not zero, up to a point in time.
func (i *installation) restore(base string, target time.Time) *embedded.Postgres {
	i.t.Helper()
	i.servers++
	folder := filepath.Join(i.folder, fmt.Sprintf("restored-%d", i.servers))
	if err := os.Mkdir(folder, 0o711); err != nil {
		i.t.Fatal(err)
	}
	data := filepath.Join(folder, "data")
	i.run("Postgres: the restore", "BASE="+base, "PGDATA="+data)
	if err := filepath.WalkDir(data, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, int(i.account.Uid), int(i.account.Gid)) // an operator runs the commands as this account
		}
		return err
	}); err != nil {
		i.t.Fatal(err)
	}
	settings := logSettings() // recovery refuses lower limits than those of the old server
	if !target.IsZero() {
		settings["recovery_target_time"] = target.UTC().Format("2006-01-02 15:04:05.000000+00")
	}
	server := i.start(folder, settings)
	sitetest.Eventually(i.t, "the recovery has ended", func() bool { return i.asSuperuser(server, `select pg_is_in_recovery()::text`) == "false" })
	return server
}

// asSuperuser runs a query that returns one text.
func (i *installation) asSuperuser(server *embedded.Postgres, sql string) (text string) {
	i.t.Helper()
	ctx := sitetest.Within(i.t, sitetest.HangGuard)
	conn, err := pgx.Connect(ctx, server.DSN(embedded.Superuser, "postgres"))
	if err != nil {
		i.t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, sql).Scan(&text); err != nil {
		i.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// archive ends the current file of the log and waits until it is in the archive. It returns the time before which
// everything that was committed is in it.
func (i *installation) archive(server *embedded.Postgres) time.Time {
	i.t.Helper()
	before := time.Now()
	name := i.asSuperuser(server, `select pg_walfile_name(pg_switch_wal())`)
	sitetest.Eventually(i.t, "the log was archived", func() bool {
		_, err := os.Stat(i.backups("wal/" + name))
		return err == nil
	})
	return before
}
