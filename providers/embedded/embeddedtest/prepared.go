package embeddedtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"turnstone/providers/embedded"
)

// preparation is what every cluster of this process contains. Set by Prepare.
var preparation struct {
	name string
	run  func(ctx context.Context, server *embedded.Postgres) error
}

// Prepare makes every server of Postgres start with what run stores in it. name names the content, for processes that
// prepare others. It is called by the init function of the package that defines the content.
func Prepare(name string, run func(ctx context.Context, server *embedded.Postgres) error) {
	preparation.name, preparation.run = name, run
}

// startPrepared starts a server in dir, with a copy of the prepared cluster if the run of the tests has a folder for it.
func startPrepared(ctx context.Context, dir string) (*embedded.Postgres, error) {
	root := os.Getenv(PreparedVariable)
	if root == "" {
		return startAndPrepare(ctx, dir)
	}
	prepared := filepath.Join(root, "postgres-"+preparation.name)
	err := Once(prepared, func() error {
		server, err := startAndPrepare(ctx, prepared)
		if err != nil {
			return err
		}
		return server.Close(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("preparing a cluster: %w", err)
	}
	if err := CopyFolder(prepared, dir); err != nil {
		return nil, err
	}
	return embedded.StartPostgres(ctx, options(dir))
}

// options are those of a server whose log is in memory: compressing it would only take processor time. Every new database is a
// checkpoint, after which each page that changes is written to the log.
func options(dir string) embedded.PostgresOptions {
	return embedded.PostgresOptions{DataDir: dir, ExtraSettings: map[string]string{"wal_compression": "off"}}
}

func startAndPrepare(ctx context.Context, dir string) (*embedded.Postgres, error) {
	server, err := embedded.StartPostgres(ctx, options(dir))
	if err != nil || preparation.run == nil {
		return server, err
	}
	if err := preparation.run(ctx, server); err != nil {
		return nil, errors.Join(err, server.Close(ctx))
	}
	return server, nil
}

// Once calls make unless a process of this run of the tests has made the folder successfully. Processes that need the same
// folder wait for each other.
func Once(folder string, make func() error) error {
	lock, err := os.OpenFile(folder+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	complete := folder + ".complete"
	if _, err := os.Stat(complete); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(folder); err != nil { // of a process that was killed
		return err
	}
	if err := make(); err != nil {
		return err
	}
	return os.WriteFile(complete, nil, 0o600)
}

// CopyFolder copies a folder with the owners of its files.
func CopyFolder(from, to string) error {
	if output, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copying a prepared folder: %w: %s", err, output)
	}
	return nil
}
