package persistence_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/providers/embedded"
)

// Roles belong to the whole server. On a new one the migration of each database finds that another one has just made
// them, or is making them.
func TestDatabasesOfANewServerMigrateAtOnce(t *testing.T) {
	const databases = 8
	const hangs = 5 * time.Minute // only a guard
	ctx, cancel := context.WithTimeout(t.Context(), hangs)
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

// A grant that another database's migration has made and not yet committed is waited for, and then is as good as an own one.
func TestALoginThatIsBeingGrantedItsRolesByAnotherMigration(t *testing.T) {
	database := pgtest.NewDatabase(t)
	const login = "turnstone_granted_twice"
	database.Admin(t, `create role `+login+` login noinherit`)
	t.Cleanup(func() { database.Admin(t, `drop role `+login) })
	other, err := pgx.Connect(t.Context(), database.AdminURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }()
	grant, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grant.Exec(t.Context(), `grant turnstone_app, turnstone_engine to `+login); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() {
		migrated <- persistence.Migrate(t.Context(), database.OwnerURL, persistence.MigrateOptions{Login: login})
	}()
	awaitLocked(t, database, "grant ")
	if err := grant.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Error(err)
	}
}

// An answer that was kept by method, path and key is found by their hash after the migration.
func TestAKeptAnswerSurvivesTheMigrationToHashes(t *testing.T) {
	database := pgtest.NewDatabase(t)
	database.Admin(t, `drop schema public cascade`)
	database.Admin(t, `create schema public authorization `+pgtest.Owner)
	if err := persistence.MigrateTo(t.Context(), database.OwnerURL, 5); err != nil {
		t.Fatal(err)
	}
	account, key := protocol.NewAccountID(), keyOf("k", "body")
	database.Admin(t, `insert into accounts (account_id, email, email_key, display_name) values ($1, 'a', 'a', 'a')`, account)
	database.Admin(t, `insert into idempotency (account_id, method, path, key, body_hash, status, headers, body) values ($1, $2, $3, $4, $5, 201, '{}', 'kept')`,
		account, key.Method, key.Path, key.Key, key.BodyHash[:])
	if err := persistence.Migrate(t.Context(), database.OwnerURL, persistence.MigrateOptions{Login: pgtest.Login}); err != nil {
		t.Fatal(err)
	}
	answer, err := database.Open(t).FindAnswer(t.Context(), account, key)
	if err != nil || answer == nil || string(answer.Body) != "kept" {
		t.Errorf("found %+v, %v", answer, err)
	}
}
