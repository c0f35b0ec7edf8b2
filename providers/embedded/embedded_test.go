package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"turnstone/protocol/clocktest"
)

const (
	// ownerFolderVariable is an environment variable. If it is set, this test binary starts servers in that folder and
	// waits until it is killed.
	ownerFolderVariable = "EMBEDDED_TEST_OWNER_FOLDER"
	waitLimit           = clocktest.HangGuard
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerFolderVariable); dir != "" {
		if err := runOwner(dir); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

func runOwner(dir string) error {
	ctx := context.Background()
	if _, err := StartPostgres(ctx, PostgresOptions{DataDir: filepath.Join(dir, "postgres")}); err != nil {
		return err
	}
	if _, err := StartRedis(ctx, RedisOptions{DataDir: filepath.Join(dir, "redis")}); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// folder creates a folder with a short path that other accounts can enter, unlike t.TempDir.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "embedded-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func startPostgres(t *testing.T, dir string) *Postgres {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	p, err := StartPostgres(ctx, PostgresOptions{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func startRedis(t *testing.T, dir string) *Redis {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	r, err := StartRedis(ctx, RedisOptions{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func query(t *testing.T, p *Postgres, sql string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-qAtc", sql, p.DSN(Superuser, "postgres"))
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", sql, err, output)
	}
	return strings.TrimSpace(string(output))
}

func TestPostgresKeepsDataOverStopAndStartAndListensOnNothingElse(t *testing.T) {
	p := startPostgres(t, filepath.Join(folder(t), "postgres"))
	query(t, p, "create table kept (n int); insert into kept values (7)")
	settings := query(t, p, `select string_agg(name || '=' || setting, ' ' order by name) from pg_settings
		where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'listen_addresses', 'server_encoding')`)
	const want = "fsync=on full_page_writes=on listen_addresses= server_encoding=UTF8 synchronous_commit=on"
	if settings != want {
		t.Errorf("settings are %q, want %q", settings, want)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, p, "select n from kept"); got != "7" {
		t.Errorf("after a restart the row is %q", got)
	}
}

func TestPostgresComesBackAfterItWasKilled(t *testing.T) {
	p := startPostgres(t, filepath.Join(folder(t), "postgres"))
	query(t, p, "create table kept (n int); insert into kept values (7)")
	done := p.Done()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(waitLimit):
		t.Fatal("Done was not closed when the server was killed")
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, p, "select n from kept"); got != "7" {
		t.Errorf("after a crash the row is %q", got)
	}
}

func TestGuestSharesTheOwnersServerAndLeavesItRunning(t *testing.T) {
	dir := folder(t)
	owner := startPostgres(t, filepath.Join(dir, "postgres"))
	guest := startPostgres(t, filepath.Join(dir, "postgres"))
	if !owner.Owned() || guest.Owned() {
		t.Fatalf("owner owns: %t, guest owns: %t", owner.Owned(), guest.Owned())
	}
	if owner.DSN("a", "b") != guest.DSN("a", "b") {
		t.Errorf("the address of the guest is %s, that of the owner is %s", guest.DSN("a", "b"), owner.DSN("a", "b"))
	}
	if err := guest.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	query(t, owner, "select 1")

	redisOwner := startRedis(t, filepath.Join(dir, "redis"))
	redisGuest := startRedis(t, filepath.Join(dir, "redis"))
	if redisGuest.Owned() {
		t.Error("two owners of one Redis")
	}
	if err := redisGuest.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !redisOwner.ready(t.Context()) {
		t.Error("closing a guest stopped the Redis of the owner")
	}
}

// The owner is a separate process, which is killed with SIGKILL. Its servers end by themselves. The next owner takes
// over the folder and its data at once, whether or not the servers have already ended.
func TestServersEndWithAKilledOwnerAndTheNextOneTakesOver(t *testing.T) {
	dir := folder(t)
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerFolderVariable+"="+dir)
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
		_ = owner.Process.Kill()
		t.Fatalf("the owner printed %q", line)
	}
	guest := startPostgres(t, filepath.Join(dir, "postgres"))
	if guest.Owned() {
		t.Fatal("two owners of one Postgres")
	}
	query(t, guest, "create table kept (n int); insert into kept values (7)")
	before := guest.PID()

	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // the error reports that it was killed
	next := startPostgres(t, filepath.Join(dir, "postgres"))
	nextRedis := startRedis(t, filepath.Join(dir, "redis"))
	if !next.Owned() || !nextRedis.Owned() {
		t.Fatal("the folder of a killed owner was not taken over")
	}
	if next.PID() == before {
		t.Error("the new owner did not replace the server of the killed owner, which does not end with the new owner")
	}
	if got := query(t, next, "select n from kept"); got != "7" {
		t.Errorf("after the owner was killed the row is %q", got)
	}
}

func TestServersEndByThemselvesWhenTheirOwnerIsKilled(t *testing.T) {
	dir := folder(t)
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerFolderVariable+"="+dir)
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the owner printed %q", line)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // the error reports that it was killed
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		postgres, err := serversIn(filepath.Join(dir, "postgres", "data"), postgresComm)
		if err != nil {
			return false, err
		}
		redis, err := serversIn(filepath.Join(dir, "redis", "data"), redisComm)
		return len(postgres)+len(redis) == 0, err
	})
	if err != nil {
		t.Fatalf("the servers outlive their owner: %v", err)
	}
}

// A stale pid file may contain a process ID that another process has now. That process must neither prevent the start
// nor get a signal.
func TestAStalePidFileOfAnotherProcessIsRemoved(t *testing.T) {
	dir := filepath.Join(folder(t), "postgres")
	p := startPostgres(t, dir)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("cat")
	input, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	lines := p.pidLines()
	lines[0] = fmt.Sprint(other.Process.Pid)
	if err := os.WriteFile(filepath.Join(dir, "data", pidFile), []byte(strings.Join(lines, "\n")), privateMode); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	query(t, p, "select 1")
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Errorf("the other process did not end normally: %v", err)
	}
}

func TestAnUnfinishedClusterIsCreatedAgain(t *testing.T) {
	dir := filepath.Join(folder(t), "postgres")
	for _, unfinished := range []string{"data.new", "data"} {
		if err := os.MkdirAll(filepath.Join(dir, unfinished, "base"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	query(t, startPostgres(t, dir), "select 1")
}

func TestALongFolderGetsAShortSocket(t *testing.T) {
	dir := filepath.Join(folder(t), strings.Repeat("long/", 20))
	for at := filepath.Dir(dir); strings.Contains(at, "long"); at = filepath.Dir(at) {
		if err := os.MkdirAll(at, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	r := startRedis(t, dir)
	t.Cleanup(func() { _ = os.RemoveAll(r.sockets) })
	if len(r.address()) > maxSocketPath {
		t.Errorf("the socket's path has %d bytes", len(r.address()))
	}
	recorded, err := os.ReadFile(filepath.Join(dir, socketsFile))
	if err != nil || strings.TrimSpace(string(recorded)) != r.sockets {
		t.Errorf("recorded is %q (%v), want %s", recorded, err, r.sockets)
	}
}

func TestAFolderThatTheServersAccountCannotReachIsReplaced(t *testing.T) {
	other := account{drop: true, uid: 65534, gid: 65534}
	if os.Geteuid() != 0 {
		if got, err := serverAccount("nobody"); err != nil || got.drop {
			t.Errorf("without root, servers would run as %+v (%v)", got, err)
		}
		return
	}
	closed := folder(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "postgres")
	elsewhere, err := other.serverFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(elsewhere) })
	if elsewhere == dir || !other.canAccess(elsewhere) {
		t.Errorf("the server's folder is %s, which its account cannot access", elsewhere)
	}
	if again, err := other.serverFolder(dir); err != nil || again != elsewhere {
		t.Errorf("the second time it is %s (%v), the first time %s", again, err, elsewhere)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	_, err := StartPostgres(t.Context(), PostgresOptions{
		DataDir:       filepath.Join(folder(t), "postgres"),
		ExtraSettings: map[string]string{"shared_buffers": "nonsense"},
	})
	if err == nil || !strings.Contains(err.Error(), "shared_buffers") {
		t.Errorf("the error is %v", err)
	}
}

func TestRedisEvictsNothingAndCanBePausedAndRestarted(t *testing.T) {
	r := startRedis(t, filepath.Join(folder(t), "redis"))
	if got := ask(t, r, "CONFIG GET maxmemory-policy\r\n", 5); !strings.Contains(got, "noeviction") {
		t.Errorf("the policy is %q", got)
	}
	if err := r.Pause(); err != nil {
		t.Fatal(err)
	}
	if r.ready(t.Context()) {
		t.Error("a paused Redis responds")
	}
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	if !r.ready(t.Context()) {
		t.Error("a resumed Redis does not respond")
	}
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !r.ready(t.Context()) {
		t.Error("a killed Redis does not respond after Start")
	}
}

func ask(t *testing.T, r *Redis, command string, lines int) string {
	t.Helper()
	connection, err := net.Dial("unix", r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Write([]byte(command)); err != nil {
		t.Fatal(err)
	}
	reader, reply := bufio.NewReader(connection), ""
	for range lines {
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		reply += line
	}
	return reply
}

func TestLockFolderHasOneHolder(t *testing.T) {
	dir := t.TempDir()
	lock, err := LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = LockFolder(dir)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(syscall.Getpid())) {
		t.Errorf("the second holder gets %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Unlock(); err != nil {
		t.Fatal(err)
	}
}
