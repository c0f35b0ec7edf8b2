package pg

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/migrations"
)

const serverSQL = `
select current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
       current_setting('synchronous_standby_names') <> '',
       r.rolsuper, r.rolbypassrls,
       pg_has_role(session_user, 'turnstone_app', 'usage') or pg_has_role(session_user, 'turnstone_engine', 'usage'),
       current_user, session_user, current_setting('server_version_num')::int
from pg_roles r where r.rolname = session_user`

const schemaVersionSQL = `select version from schema_version`

// check returns an error if the server, the login role or the schema would break the guarantees of the service. Each
// error is one line.
func (db *DB) check(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, db.App.Config().ConnConfig)
	if err != nil {
		return connectFailure(ctx, err, db.App.Config().ConnConfig)
	}
	defer func() { _ = conn.Close(ctx) }() // the connection only reads
	var fsync, fullPages, synchronous, role, login string
	var standbys, superuser, bypass, inherits bool
	var version int
	err = conn.QueryRow(ctx, serverSQL).Scan(&fsync, &fullPages, &synchronous, &standbys, &superuser, &bypass, &inherits, &role, &login, &version)
	switch {
	case err != nil:
		return fmt.Errorf("reading the settings of Postgres: %w", err)
	case fsync == "off":
		return unsafeSetting("fsync", fsync, "a crash could lose acknowledged data")
	case fullPages == "off":
		return unsafeSetting("full_page_writes", fullPages, "a crash could tear pages")
	case synchronous == "off":
		return unsafeSetting("synchronous_commit", synchronous, "a crash could lose acknowledged data")
	case standbys && (synchronous == "local" || synchronous == "remote_write"):
		return unsafeSetting("synchronous_commit", synchronous, "a failover to a standby of synchronous_standby_names could lose acknowledged data")
	case superuser:
		return wrongLogin(login, "is a superuser, to which row-level security does not apply", "nosuperuser")
	case bypass:
		return wrongLogin(login, "has BYPASSRLS, so row-level security does not apply to it", "nobypassrls")
	case inherits:
		return &SetupError{
			Problem: fmt.Sprintf("the database login role inherits %s and %s, so the policies of both would apply at once; make it NOINHERIT", AppRole, EngineRole),
			SQL:     []string{"alter role " + quoted(login) + " noinherit;", grantSQL(login, version) + ";"},
		}
	}
	if err := checkVersion(ctx, conn); err != nil {
		return err
	}
	if db.config.SelfTest == nil {
		return nil
	}
	return db.config.SelfTest(ctx, conn)
}

func unsafeSetting(name, value, consequence string) error {
	return &SetupError{
		Problem: fmt.Sprintf("Postgres runs with %s = %s: %s; set %[1]s = on", name, value, consequence),
		SQL:     []string{"alter system set " + name + " = on;", "select pg_reload_conf();"},
	}
}

func wrongLogin(login, problem, attribute string) error {
	return &SetupError{
		Problem: "the database login role " + problem + "; use a plain role",
		SQL:     []string{"alter role " + quoted(login) + " " + attribute + ";"},
	}
}

// connectFailure explains why the connection of check failed.
func connectFailure(ctx context.Context, err error, config *pgx.ConnConfig) error {
	if isState(err, stateInvalidParameter, stateNoPrivilege, stateUndefinedObject) { // the role parameter of the connection was refused
		return MembershipError(ctx, config, AppRole, err)
	}
	return refusedConnection(err, config, loginAttributes)
}

// SchemaVersion returns the version of the schema that this binary requires.
func SchemaVersion() int32 {
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		panic("persistence: " + err.Error()) // the pattern is a constant, so it is valid
	}
	return int32(len(files))
}

func checkVersion(ctx context.Context, conn *pgx.Conn) error {
	var version int32
	err := conn.QueryRow(ctx, schemaVersionSQL).Scan(&version)
	known := SchemaVersion()
	switch {
	case isState(err, stateUndefinedTable):
		return &SetupError{Problem: "the database has no schema yet: run `turnstone migrate`", Command: migrateCommand}
	case err != nil:
		return fmt.Errorf("reading the schema's version: %w", err)
	case version > known:
		return checkNewerSchema(ctx, conn, version)
	case version < known:
		return &SetupError{
			Problem: fmt.Sprintf("the schema has version %d, older than this binary's %d: run `turnstone migrate`", version, known),
			Command: migrateCommand,
		}
	}
	return nil
}

const oldestSupportedSQL = `select oldest_supported from schema_version`

// checkNewerSchema returns an error if the schema, which is newer than this binary, does not support it.
func checkNewerSchema(ctx context.Context, conn *pgx.Conn, version int32) error {
	var oldest int32
	if err := conn.QueryRow(ctx, oldestSupportedSQL).Scan(&oldest); err != nil {
		return fmt.Errorf("reading the oldest supported version of the schema: %w", err)
	}
	if known := SchemaVersion(); known < oldest {
		return fmt.Errorf("the schema has version %d, which supports binaries from version %d, and this one has %d: run a newer turnstone", version, oldest, known)
	}
	return nil
}
