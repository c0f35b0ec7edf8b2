// Package embeddedtest gives tests a real Postgres and a real Redis: one private server of each kind per test process,
// started for the first test that needs it and stopped with the process. Only tests import it.
//
// If TURNSTONE_TEST_PREPARED names a folder, the first process that starts a Postgres leaves a copy of its cluster there,
// with what Prepare stores in it, and every later one starts with that copy. The folder belongs to one run of the tests, so it
// cannot be out of date.
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

	"turnstone/protocol/clocktest"
	"turnstone/providers/embedded"
)

const (
	folderPattern = "turnstone-test-"
	memoryFolder  = "/dev/shm"
	// memoryNeeded is the space that a cluster with its log and the databases of the tests may need.
	memoryNeeded = 3 << 30
	// PreparedVariable is the environment variable that names the folder of prepared clusters.
	PreparedVariable = "TURNSTONE_TEST_PREPARED"
)

// shared contains the servers of this process.
var shared struct {
	mu       sync.Mutex
	folder   string
	lock     *embedded.FolderLock
	postgres *embedded.Postgres
	redis    *embedded.Redis
}

// Postgres returns the private server of the process. Its durability settings are those of embedded.Postgres. Its
// folder is in memory if enough is free, unless TMPDIR is set. Each test creates its own databases in it.
func Postgres(t testing.TB) *embedded.Postgres {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.postgres != nil {
		return shared.postgres
	}
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
	defer cancel()
	folder, err := folder()
	if err != nil {
		t.Fatalf("folder of the test's servers: %v", err)
	}
	if shared.postgres, err = startPrepared(ctx, filepath.Join(folder, "postgres")); err != nil {
		t.Fatalf("Postgres for tests: %v", err)
	}
	return shared.postgres
}

// RedisDatabases is the number of databases of the Redis of a package: more than its tests have installations.
const RedisDatabases = 1024

// Redis returns the private server of the process.
func Redis(t testing.TB) *embedded.Redis {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.redis != nil {
		return shared.redis
	}
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
	defer cancel()
	folder, err := folder()
	if err != nil {
		t.Fatalf("folder of the test's servers: %v", err)
	}
	shared.redis, err = embedded.StartRedis(ctx, embedded.RedisOptions{DataDir: filepath.Join(folder, "redis"), Databases: RedisDatabases})
	if err != nil {
		t.Fatalf("Redis for tests: %v", err)
	}
	return shared.redis
}

// Runner runs tests: *testing.M, or the result of Main.
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
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
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

// folder returns the folder of the servers. It is outside t.TempDir, because the servers outlive a test. The caller
// holds shared.mu.
func folder() (string, error) {
	if shared.folder != "" {
		return shared.folder, nil
	}
	parent := parentFolder()
	removeStaleFolders(parent)
	dir, err := os.MkdirTemp(parent, folderPattern)
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o711); err != nil { // the servers' accounts must be able to enter it
		return "", err
	}
	if shared.lock, err = embedded.LockFolder(dir); err != nil {
		return "", err
	}
	shared.folder = dir
	return dir, nil
}

func parentFolder() string {
	if os.Getenv("TMPDIR") != "" {
		return os.TempDir()
	}
	var space syscall.Statfs_t
	if err := syscall.Statfs(memoryFolder, &space); err != nil || space.Bavail*uint64(space.Bsize) < memoryNeeded {
		return os.TempDir()
	}
	return memoryFolder
}

// removeStaleFolders removes the folders of killed test processes. If the lock of a folder is free, no process uses the
// folder.
func removeStaleFolders(parent string) {
	folders, _ := filepath.Glob(filepath.Join(parent, folderPattern+"*")) // the pattern is well formed
	for _, dir := range folders {
		info, err := os.Stat(filepath.Join(dir, "lock"))
		if err != nil || time.Since(info.ModTime()) < time.Minute { // its creator may not have locked it yet
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
