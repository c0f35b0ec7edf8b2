package persistence_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/providers/embedded"
)

// Roles belong to the whole server. On a new one the migration of each database finds that another one has just made
// them, or is making them.
func TestDatabasesOfANewServerMigrateAtOnce(t *testing.T) {
	const databases = 8
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "turnstone-migrate-") // the server's account passes through, as it cannot t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	server, err := embedded.StartPostgres(ctx, embedded.PostgresOptions{DataDir: filepath.Join(dir, "postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.WithoutCancel(ctx)) })
	failures := make(chan error, databases)
	for i := range databases {
		name := fmt.Sprintf("at_once_%d", i)
		if err := persistence.Provision(ctx, server.DSN(embedded.Superuser, "postgres"), name, pgtest.Owner, pgtest.Login); err != nil {
			t.Fatal(err)
		}
	}
	for i := range databases {
		go func() {
			failures <- persistence.Migrate(ctx, server.DSN(pgtest.Owner, fmt.Sprintf("at_once_%d", i)), persistence.MigrateOptions{Login: pgtest.Login})
		}()
	}
	for range databases {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}
