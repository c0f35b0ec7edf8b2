package persistence

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
)

const serverSQL = `
select current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
       r.rolsuper, r.rolbypassrls,
       pg_has_role(session_user, 'turnstone_app', 'usage') or pg_has_role(session_user, 'turnstone_engine', 'usage'),
       current_user, session_user, current_setting('server_version_num')::int
from pg_roles r where r.rolname = session_user`

const schemaVersionSQL = `select version from schema_version`

// check refuses a server, a role or a schema on which the promises would not hold. Each answer is one line.
func (db *DB) check(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, db.app.Config().ConnConfig)
	if err != nil {
		return connectFailure(ctx, err, db.app.Config().ConnConfig)
	}
	defer func() { _ = conn.Close(ctx) }() // it only read
	var fsync, fullPages, synchronous, role, login string
	var superuser, bypass, inherits bool
	var version int
	err = conn.QueryRow(ctx, serverSQL).Scan(&fsync, &fullPages, &synchronous, &superuser, &bypass, &inherits, &role, &login, &version)
	switch {
	case err != nil:
		return fmt.Errorf("reading the settings of Postgres: %w", err)
	case fsync == "off":
		return unsafeSetting("fsync", "it would lose what was acknowledged")
	case fullPages == "off":
		return unsafeSetting("full_page_writes", "a crash could tear pages")
	case synchronous == "off":
		return unsafeSetting("synchronous_commit", "it would lose what was acknowledged")
	case superuser:
		return wrongLogin(login, "is a superuser, for whom row-level security does not hold", "nosuperuser")
	case bypass:
		return wrongLogin(login, "has BYPASSRLS, so that row-level security does not hold for it", "nobypassrls")
	case inherits:
		return &SetupError{
			Problem: fmt.Sprintf("the database login role inherits %s and %s, so that policies would add up; make it NOINHERIT", appRole, engineRole),
			SQL:     []string{"alter role " + quoted(login) + " noinherit;", grantSQL(login, version) + ";"},
		}
	}
	if err := checkVersion(ctx, conn); err != nil {
		return err
	}
	return selfTest(ctx, conn)
}

func unsafeSetting(name, consequence string) error {
	return &SetupError{
		Problem: fmt.Sprintf("Postgres runs with %s = off: %s; set %[1]s = on", name, consequence),
		SQL:     []string{"alter system set " + name + " = on;", "select pg_reload_conf();"},
	}
}

func wrongLogin(login, problem, attribute string) error {
	return &SetupError{
		Problem: "the database login role " + problem + "; use a plain role",
		SQL:     []string{"alter role " + quoted(login) + " " + attribute + ";"},
	}
}

func connectFailure(ctx context.Context, err error, config *pgx.ConnConfig) error {
	if isState(err, "22023", "42501", "42704") { // the startup's role setting
		return membershipError(ctx, config, appRole, err)
	}
	return refusedConnection(err, config, loginAttributes)
}

// SchemaVersion is the version of the schema that this binary knows.
func SchemaVersion() int32 {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		panic("persistence: " + err.Error()) // the pattern is a constant
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
		return errNewerSchema(version, known)
	case version < known:
		return &SetupError{
			Problem: fmt.Sprintf("the schema has version %d, older than this binary's %d: run `turnstone migrate`", version, known),
			Command: migrateCommand,
		}
	}
	return nil
}

// selfTest appends to turns of two accounts as the journal does, and takes all of it back. Under account policies such
// a statement finds too few rows without an error, which the journal would read as being fenced.
func selfTest(ctx context.Context, conn *pgx.Conn) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("journal self-test: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // it never commits
	owner := protocol.NewNodeID()
	batch := make([]*journalEntry, 2)
	for i := range batch {
		if batch[i], err = selfTestTurn(ctx, tx, owner); err != nil {
			return fmt.Errorf("journal self-test: %w", missingGrant(err, appRole))
		}
	}
	if _, err := tx.Exec(ctx, becomeEngineSQL); err != nil {
		return membershipError(ctx, conn.Config(), engineRole, err)
	}
	stored, err := appendBatch(ctx, tx.Conn(), batch)
	if err != nil {
		return fmt.Errorf("journal self-test: %w", missingGrant(err, engineRole))
	}
	if slices.Contains(stored, false) {
		return fmt.Errorf("journal self-test: rows were not found: the policies of %s are missing", engineRole)
	}
	return nil
}

const becomeEngineSQL = `select set_config('turnstone.account_id', '', true), set_config('role', 'turnstone_engine', true)`

const (
	selfTestAccountSQL      = `insert into accounts (account_id, email, email_key, display_name) values ($1, '', 'self-test ' || $1::uuid::text, '')`
	selfTestConversationSQL = `insert into conversations (account_id, conversation_id, active_branch_id) values ($1, $2, $3)`
	selfTestTurnSQL         = `
insert into turns (account_id, turn_id, conversation_id, branch_id, user_message_id, assistant_message_id, spec, state, accepting, owner, next_sequence)
values ($1, $2, $3, $4, $4, $4, '{}', 'running', true, $5, 1)`
)

func selfTestTurn(ctx context.Context, tx pgx.Tx, owner protocol.NodeID) (*journalEntry, error) {
	account, turn := protocol.NewAccountID(), protocol.NewTurnID()
	conversation, branch := protocol.NewConversationID(), protocol.NewBranchID()
	batch := &pgx.Batch{}
	batch.Queue(setAccountSQL, uuidText(account))
	batch.Queue(selfTestAccountSQL, account)
	batch.Queue(selfTestConversationSQL, account, conversation, branch)
	batch.Queue(selfTestTurnSQL, account, turn, conversation, branch, owner)
	return &journalEntry{TurnAppend: &protocol.TurnAppend{
		AccountID: account, TurnID: turn, Owner: owner, Epoch: 1, First: 1, Last: 1, Frames: []byte("{}\n"), State: protocol.TurnRunning,
		Records: []protocol.TurnRecord{{Kind: protocol.RecordStep, Key: "1", Sequence: 1, Body: []byte("{}")}},
	}}, tx.SendBatch(ctx, batch).Close()
}
