// Package embeddedtest gives tests a real Postgres and a real Redis: one private server of each a test process, started
// when the first test asks and ended with the process. Only tests import it.
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(embeddedtest.Main(m)) }
package embeddedtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"turnstone/providers/embedded"
)

const (
	folderPattern = "turnstone-test-"
	memoryFolder  = "/dev/shm"
	// memoryNeeded is what a cluster with its log and a test's databases may take.
	memoryNeeded = 3 << 30
	startTimeout = 90 * time.Second
	stopTimeout  = 20 * time.Second
)

// shared is the servers of this process.
var shared struct {
	mu       sync.Mutex
	folder   string
	lock     *embedded.FolderLock
	postgres *embedded.Postgres
	redis    *embedded.Redis
}

// Postgres is the process's private server. Its durability settings are the real ones; its folder is in memory where
// that is large enough, unless TMPDIR says where. A test makes its own databases in it.
func Postgres(t testing.TB) *embedded.Postgres {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.postgres != nil {
		return shared.postgres
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	folder, err := folder()
	if err != nil {
		t.Fatalf("folder of the test's servers: %v", err)
	}
	shared.postgres, err = embedded.StartPostgres(ctx, embedded.PostgresOptions{DataDir: filepath.Join(folder, "postgres")})
	if err != nil {
		t.Fatalf("Postgres for tests: %v", err)
	}
	return shared.postgres
}

// Redis is the process's private server.
func Redis(t testing.TB) *embedded.Redis {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.redis != nil {
		return shared.redis
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	folder, err := folder()
	if err != nil {
		t.Fatalf("folder of the test's servers: %v", err)
	}
	shared.redis, err = embedded.StartRedis(ctx, embedded.RedisOptions{DataDir: filepath.Join(folder, "redis")})
	if err != nil {
		t.Fatalf("Redis for tests: %v", err)
	}
	return shared.redis
}

// Runner is what runs tests: *testing.M, and what Main makes of it.
type Runner interface{ Run() int }

// Main wraps m so that the servers are stopped and their folder removed after the last test.
func Main(m Runner) Runner { return runner{m} }

type runner struct{ tests Runner }

func (r runner) Run() int {
	code := r.tests.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the test's servers:", err)
		if code == 0 {
			code = 1
		}
	}
	return code
}

func stop() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if shared.postgres != nil {
		if err := shared.postgres.Close(ctx); err != nil {
			return err
		}
		shared.postgres = nil
	}
	if shared.redis != nil {
		if err := shared.redis.Close(ctx); err != nil {
			return err
		}
		shared.redis = nil
	}
	if shared.folder == "" {
		return nil
	}
	err := os.RemoveAll(shared.folder)
	shared.folder = ""
	return firstError(err, shared.lock.Unlock())
}

// folder is outside t.TempDir, since the servers outlive a test. Called under the lock.
func folder() (string, error) {
	if shared.folder != "" {
		return shared.folder, nil
	}
	parent := place()
	sweep(parent)
	dir, err := os.MkdirTemp(parent, folderPattern)
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o711); err != nil { // the servers' accounts pass through
		return "", err
	}
	if shared.lock, err = embedded.LockFolder(dir); err != nil {
		return "", err
	}
	shared.folder = dir
	return dir, nil
}

func place() string {
	if os.Getenv("TMPDIR") != "" {
		return os.TempDir()
	}
	var space syscall.Statfs_t
	if err := syscall.Statfs(memoryFolder, &space); err != nil || space.Bavail*uint64(space.Bsize) < memoryNeeded {
		return os.TempDir()
	}
	return memoryFolder
}

// sweep removes what test processes that were killed left behind: a folder whose lock is free has no process.
func sweep(parent string) {
	folders, _ := filepath.Glob(filepath.Join(parent, folderPattern+"*")) // the pattern is well formed
	for _, dir := range folders {
		info, err := os.Stat(filepath.Join(dir, "lock"))
		if err != nil || time.Since(info.ModTime()) < time.Minute { // its maker may be between its first steps
			continue
		}
		lock, err := embedded.LockFolder(dir)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = lock.Unlock()
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
