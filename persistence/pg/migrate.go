package pg

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/tern/v2/migrate"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"go.uber.org/zap"

	"turnstone/persistence/migrations"
	"turnstone/protocol/clock"
)

const (
	versionTable = "public.schema_version"
	// RiverSchema is the schema of the job queue.
	RiverSchema = "river"

	// migrationLock is acquired by polling: a session that waits in pg_advisory_lock holds a snapshot, and "create
	// index concurrently" of another session waits for the end of that snapshot, which is a deadlock.
	migrationLock     = 0x7475726e73746f6e // "turnston"
	migrationLockPoll = 100 * time.Millisecond
)

// MigrateOptions are optional.
type MigrateOptions struct {
	Login  string // the login role of the service, which becomes a member of its two roles
	Logger *zap.Logger
}

// Migrate migrates the schema to this binary's version, as the owner of the database. A newer schema that supports this
// binary stays as it is. Any number of processes may call it at once: one of them migrates; the others wait for it and
// then find nothing to do.
func Migrate(ctx context.Context, ownerURL string, options MigrateOptions) error {
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	config, err := ownerConfig(ownerURL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return fmt.Errorf("connecting as the owner: %w", refusedConnection(err, config.ConnConfig, ownerAttributes))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // releases the lock in any case
	if err := checkOwner(ctx, conn, options.Login); err != nil {
		return err
	}
	if err := lockMigrations(ctx, conn); err != nil {
		return err
	}
	if err := migrateSchema(ctx, conn, options.Logger); err != nil {
		return fmt.Errorf("migrating the schema: %w", err)
	}
	if err := migrateRiver(ctx, conn, config); err != nil {
		return fmt.Errorf("migrating the job queue: %w", err)
	}
	if options.Login != "" {
		if err := grantLogin(ctx, conn, options.Login); err != nil {
			return fmt.Errorf("granting the login role its roles: %w", err)
		}
	}
	return nil
}

func lockMigrations(ctx context.Context, conn *pgx.Conn) error {
	for {
		var mine bool
		if err := conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", int64(migrationLock)).Scan(&mine); err != nil {
			return fmt.Errorf("taking the migration lock: %w", err)
		}
		if mine {
			return nil
		}
		if clock.Sleep(ctx, migrationLockPoll) != nil {
			return fmt.Errorf("another process is migrating: %w", ctx.Err())
		}
	}
}

func newMigrator(ctx context.Context, conn *pgx.Conn) (*migrate.Migrator, error) {
	migrator, err := migrate.NewMigrator(ctx, conn, versionTable)
	if err != nil {
		return nil, err
	}
	return migrator, migrator.LoadMigrations(migrations.Files)
}

func migrateSchema(ctx context.Context, conn *pgx.Conn, log *zap.Logger) error {
	migrator, err := newMigrator(ctx, conn)
	if err != nil {
		return err
	}
	migrator.OnStart = func(_ int32, name, direction, _ string) {
		log.Info("migrating", zap.String("migration", name), zap.String("direction", direction))
	}
	current, err := migrator.GetCurrentVersion(ctx)
	if err != nil {
		return err
	}
	if newest := int32(len(migrator.Migrations)); current > newest {
		log.Info("the schema is newer than this binary", zap.Int32("schema", current), zap.Int32("binary", newest))
		return checkNewerSchema(ctx, conn, current)
	}
	return migrator.Migrate(ctx)
}

// riverGrants let the engine run jobs, and let requests insert jobs in the transactions that cause them.
const riverGrants = `
grant usage on schema river to turnstone_app, turnstone_engine;
grant select, insert, update, delete on all tables in schema river to turnstone_engine;
grant select, insert, update on river.river_job to turnstone_app;
grant usage, select on all sequences in schema river to turnstone_app, turnstone_engine;
`

func migrateRiver(ctx context.Context, conn *pgx.Conn, config *pgxpool.Config) error {
	if _, err := conn.Exec(ctx, "create schema if not exists "+RiverSchema); err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: RiverSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, riverGrants)
	return err
}

// grantLogin makes the login role a member of both roles (see grantSQL). Memberships belong to the whole server, but
// the migration lock belongs to one database: the migration of another database may grant the same memberships at this
// moment. Postgres then refuses the second grant, although there is nothing left to do, so grantLogin retries it.
func grantLogin(ctx context.Context, conn *pgx.Conn, login string) error {
	var version int
	if err := conn.QueryRow(ctx, "select current_setting('server_version_num')::int").Scan(&version); err != nil {
		return err
	}
	grant := grantSQL(login, version)
	for attempt := 1; ; attempt++ {
		_, err := conn.Exec(ctx, grant)
		if attempt > maxRetries || !isState(err, stateUnique) || clock.Sleep(ctx, retryDelay()) != nil {
			return err
		}
	}
}

// Provision creates what a private server needs before Migrate, over a superuser's connection: an owner role, a login
// role and a database. It may be repeated.
func Provision(ctx context.Context, superuserURL, database, owner, login string) error {
	config, err := ownerConfig(superuserURL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return fmt.Errorf("connecting as the superuser: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // no transaction is open
	ownerName, loginName := pgx.Identifier{owner}.Sanitize(), pgx.Identifier{login}.Sanitize()
	for _, statement := range []string{
		"create role " + ownerName + " login createrole nobypassrls",
		"create role " + loginName + " login noinherit nobypassrls",
		"create database " + pgx.Identifier{database}.Sanitize() + " owner " + ownerName,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil && !alreadyExists(err) {
			return fmt.Errorf("provisioning the database: %w", err)
		}
	}
	return nil
}

func alreadyExists(err error) bool {
	return isState(err, stateDuplicateObject, stateDuplicateDatabase, stateUnique)
}
