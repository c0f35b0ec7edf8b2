package pg_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/providers/embedded"
)

// Roles belong to the whole server. On a new server, the migration of each database may find that another migration has
// just created them, or is creating them.
func TestDatabasesOfANewServerMigrateAtOnce(t *testing.T) {
	const databases = 8
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.HangGuard)
	defer cancel()
	dir, err := os.MkdirTemp("", "turnstone-migrate-") // the server's account may not enter t.TempDir
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
		if err := pg.Provision(ctx, server.DSN(embedded.Superuser, "postgres"), name, pgtest.Owner, pgtest.Login); err != nil {
			t.Fatal(err)
		}
	}
	for i := range databases {
		go func() {
			failures <- pg.Migrate(ctx, server.DSN(pgtest.Owner, fmt.Sprintf("at_once_%d", i)), pg.MigrateOptions{Login: pgtest.Login})
		}()
	}
	for range databases {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}

// A migration waits for a grant that the migration of another database has executed and not committed, and then does
// not need one of its own.
func TestMigrateWaitsForAConcurrentGrantToItsLogin(t *testing.T) {
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
		migrated <- pg.Migrate(t.Context(), database.OwnerURL, pg.MigrateOptions{Login: login})
	}()
	storetest.AwaitLocked(t, database, "grant ")
	if err := grant.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Error(err)
	}
}

// databaseAt returns a database with an earlier schema.
func databaseAt(t *testing.T, version int32) pgtest.Database {
	t.Helper()
	database := pgtest.NewDatabase(t)
	database.Admin(t, `drop schema public cascade`)
	database.Admin(t, `create schema public authorization `+pgtest.Owner)
	if err := pg.MigrateTo(t.Context(), database.OwnerURL, version); err != nil {
		t.Fatal(err)
	}
	return database
}

// A file that was deleted before the migration does not count for the quota any more, so its purge must not subtract it again.
func TestADeletedFileIsNotCountedAgainAfterTheMigrationToUses(t *testing.T) {
	database := databaseAt(t, 35)
	account := protocol.NewAccountID()
	database.Admin(t, `insert into accounts (account_id, email, email_key, display_name) values ($1, 'a', 'a', 'a')`, account)
	database.Admin(t, `insert into files (account_id, file_id, filename, media_type, kind, size, sha256, object_name, scan_engine, scanned_at, created_at, updated_at, deleted_at)
		select $1, gen_random_uuid(), name, 'text/plain', 'text', 1, sha256('x'), name, 'e', now(), now(), now(), deleted
		from (values ('kept', null), ('deleted', now())) f (name, deleted)`, account)
	if err := pg.Migrate(t.Context(), database.OwnerURL, pg.MigrateOptions{Login: pgtest.Login}); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), database.AdminURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var counted string
	if err := conn.QueryRow(t.Context(), `select string_agg(filename, ' ') from files where counted`).Scan(&counted); err != nil || counted != "kept" {
		t.Errorf("the counted files are %q, %v", counted, err)
	}
}

// A response that was stored by method, path and key is found by their hash after the migration.
func TestAStoredResponseIsFoundAfterTheMigrationToHashes(t *testing.T) {
	database := databaseAt(t, 5)
	account, key := protocol.NewAccountID(), storetest.KeyOf("k", "body")
	database.Admin(t, `insert into accounts (account_id, email, email_key, display_name) values ($1, 'a', 'a', 'a')`, account)
	database.Admin(t, `insert into idempotency (account_id, method, path, key, body_hash, status, headers, body) values ($1, $2, $3, $4, $5, 201, '{}', 'kept')`,
		account, key.Method, key.Path, key.Key, key.BodyHash[:])
	if err := pg.Migrate(t.Context(), database.OwnerURL, pg.MigrateOptions{Login: pgtest.Login}); err != nil {
		t.Fatal(err)
	}
	response, err := database.Open(t).Idempotency.FindResponse(t.Context(), account, key)
	if err != nil || response == nil || string(response.Body) != "kept" {
		t.Errorf("found %+v, %v", response, err)
	}
}
