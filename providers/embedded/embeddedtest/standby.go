package embeddedtest

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol/clocktest"
	"turnstone/providers/embedded"
)

const followPoll = 10 * time.Millisecond

// NewPrimary starts a Postgres of this test, which NewStandby can copy and follow. name begins that of its folder.
func NewPrimary(t testing.TB, name string) *embedded.Postgres {
	t.Helper()
	return startReplicated(t, serverFolder(t, name))
}

// NewStandby copies a server, which may be under load, starts the copy and returns when it streams the log of the server. The server keeps
// its log until the standby has it. Commits do not wait for the standby until Synchronise is called.
func NewStandby(t testing.TB, primary *embedded.Postgres, name string) *embedded.Postgres {
	t.Helper()
	program, err := embedded.PostgresProgram("pg_basebackup")
	if err != nil {
		t.Fatal(err)
	}
	folder := serverFolder(t, name)
	data := filepath.Join(folder, "data")
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.HangGuard)
	defer cancel()
	output, err := exec.CommandContext(ctx, program, "--pgdata="+data, "--dbname="+primary.DSN(embedded.Superuser, "postgres"),
		"--checkpoint=fast", "--wal-method=stream", "--create-slot", "--slot="+name, "--write-recovery-conf").CombinedOutput()
	if err != nil {
		t.Fatalf("copying a server: %v: %s", err, output)
	}
	original, err := os.Stat(filepath.Join(primary.Folder(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	owner := original.Sys().(*syscall.Stat_t)
	if err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, int(owner.Uid), int(owner.Gid))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	standby := startReplicated(t, folder)
	Await(t, primary, `select exists (select from pg_stat_replication where state = 'streaming')`)
	return standby
}

// Synchronise makes every commit of a server wait until its standby has stored it, and returns when that is so.
func Synchronise(t testing.TB, primary *embedded.Postgres) {
	t.Helper()
	asSuperuser(t, primary, `alter system set synchronous_standby_names = '*'`)
	asSuperuser(t, primary, `select pg_reload_conf()`)
	Await(t, primary, `select current_setting('synchronous_standby_names') = '*' and exists (select from pg_stat_replication where sync_state = 'sync')`)
}

// Disconnect ends the stream from a server to its standby, which gets nothing more.
func Disconnect(t testing.TB, primary, standby *embedded.Postgres) {
	t.Helper()
	asSuperuser(t, standby, `alter system set primary_conninfo = ''`)
	asSuperuser(t, standby, `select pg_reload_conf()`)
	Await(t, primary, `select not exists (select from pg_stat_replication)`)
}

// FailOver kills a server, as the end of its host computer would, and makes its standby the primary, which no other standby follows. It
// removes the files of the server.
func FailOver(t testing.TB, primary, standby *embedded.Postgres) {
	t.Helper()
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	Await(t, standby, `select pg_promote()`)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), clocktest.HangGuard)
	defer cancel()
	if err := firstError(primary.Close(ctx), os.RemoveAll(primary.Folder())); err != nil {
		t.Error(err)
	}
}

// serverFolder creates a folder for a server, next to those of the process.
func serverFolder(t testing.TB, name string) string {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	parent, err := folder()
	if err != nil {
		t.Fatalf("folder of the test's servers: %v", err)
	}
	own, err := os.MkdirTemp(parent, name+"-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(own, 0o711); err != nil { // the account of the server must be able to enter it
		t.Fatal(err)
	}
	return own
}

// startReplicated starts a server with the settings that both servers of a pair need, because either may be the primary. It stops when the
// test ends.
func startReplicated(t testing.TB, folder string) *embedded.Postgres {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), clocktest.HangGuard)
	defer cancel()
	o := options(folder)
	o.ExtraSettings["wal_level"], o.ExtraSettings["max_wal_senders"] = "replica", "4"
	server, err := embedded.StartPostgres(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return server
}

func asSuperuser(t testing.TB, server *embedded.Postgres, sql string) {
	t.Helper()
	ctx, conn := connect(t, server)
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Await runs a query as the superuser until it returns true.
func Await(t testing.TB, server *embedded.Postgres, sql string) {
	t.Helper()
	ctx, conn := connect(t, server)
	defer func() { _ = conn.Close(ctx) }()
	var err error
	waited := clocktest.Poll(ctx, followPoll, func() (holds bool) {
		err = conn.QueryRow(ctx, sql).Scan(&holds)
		return holds || err != nil
	})
	if err := cmp.Or(err, waited); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// connect opens a connection as the superuser, and returns it with a context that ends after the time of a hang.
func connect(t testing.TB, server *embedded.Postgres) (context.Context, *pgx.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.HangGuard)
	t.Cleanup(cancel)
	conn, err := pgx.Connect(ctx, server.DSN(embedded.Superuser, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	return ctx, conn
}
