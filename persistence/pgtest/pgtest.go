// Package pgtest gives each test its own database in the private Postgres server of the test process. It migrates a
// template database once and clones it for each test. Only tests import it.
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(embeddedtest.Main(m)) }
//
//	db := pgtest.New(t)
package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap/zaptest"

	"turnstone/persistence"
	"turnstone/persistence/objects"
	"turnstone/persistence/objects/disk"
	"turnstone/persistence/pg"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

// The roles of a test's server.
const (
	Owner = "turnstone_owner"
	Login = "turnstone"
)

const template = "turnstone_template"

var serial atomic.Int64

func init() { embeddedtest.Prepare("migrated", createTemplate) }

// Database is a migrated database of one test.
type Database struct {
	Name     string
	URL      string // of the service's login role
	OwnerURL string
	AdminURL string // of the superuser, to which row-level security does not apply
	Server   *embedded.Postgres
}

// NewDatabase clones the template. The database is dropped when the test ends.
func NewDatabase(t testing.TB) Database {
	t.Helper()
	d := Clone(t)
	d.dropAtEnd(t)
	return d
}

// Clone is NewDatabase for a database that is left to the end of the process, when its server may be down.
func Clone(t testing.TB) Database {
	t.Helper()
	return clone(t, template)
}

// Prepare returns a function that works like NewDatabase, but in its databases the statements have run: once, for all of
// them together.
func Prepare(statements ...string) func(testing.TB) Database {
	var mu sync.Mutex
	var base Database // guarded by mu
	return func(t testing.TB) Database {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if base.Name == "" {
			prepared := clone(t, template)
			for _, sql := range statements {
				prepared.Admin(t, sql)
			}
			base = prepared
		}
		d := clone(t, base.Name)
		d.dropAtEnd(t)
		return d
	}
}

// clone creates a database with everything that another one contains, the planner's statistics included.
func clone(t testing.TB, from string) Database {
	t.Helper()
	server := embeddedtest.Postgres(t)
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
	defer cancel()
	name := fmt.Sprintf("test_%d", serial.Add(1))
	// Copying the files takes a fifth of the time that copying them through the write-ahead log would.
	if err := admin(ctx, server, fmt.Sprintf("create database %s template %s owner %s strategy file_copy", name, from, Owner)); err != nil {
		t.Fatalf("database of the test: %v", err)
	}
	return Database{
		Name: name, Server: server,
		URL: server.DSN(Login, name), OwnerURL: server.DSN(Owner, name), AdminURL: server.DSN(embedded.Superuser, name),
	}
}

func (d Database) dropAtEnd(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
		defer cancel()
		if err := admin(ctx, d.Server, fmt.Sprintf("drop database %s with (force)", d.Name)); err != nil {
			t.Errorf("dropping the database of the test: %v", err)
		}
	})
}

// createTemplate creates the migrated database that tests clone.
func createTemplate(ctx context.Context, server *embedded.Postgres) error {
	if err := pg.Provision(ctx, server.DSN(embedded.Superuser, "postgres"), template, Owner, Login); err != nil {
		return err
	}
	return pg.Migrate(ctx, server.DSN(Owner, template), pg.MigrateOptions{Login: Login})
}

// adminConnection is a connection of the superuser that creates and drops the databases of this process: a new connection
// for each statement would take about as much processor time as the statement.
var adminConnection struct {
	mu   sync.Mutex
	conn *pgx.Conn // guarded by mu; nil or closed: the next statement connects
}

// admin runs one statement as the superuser. It connects again if the server was restarted since the last one.
func admin(ctx context.Context, server *embedded.Postgres, sql string) error {
	a := &adminConnection
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn == nil || a.conn.IsClosed() || a.conn.Ping(ctx) != nil {
		conn, err := pgx.Connect(ctx, server.DSN(embedded.Superuser, "postgres"))
		if err != nil {
			return err
		}
		a.conn = conn
	}
	_, err := a.conn.Exec(ctx, sql)
	return err
}

// Open opens the database as the service does. It is closed when the test ends, before the database is dropped.
func (d Database) Open(t testing.TB, change ...func(*persistence.Config)) *persistence.Stores {
	t.Helper()
	config := persistence.Config{URL: d.URL, Objects: d.Objects(t), Logger: zaptest.NewLogger(t)}
	for _, c := range change {
		c(&config)
	}
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
	defer cancel()
	db, err := persistence.Open(ctx, config)
	if err != nil {
		t.Fatalf("opening the database: %v", err)
	}
	t.Cleanup(db.Close)
	return db
}

// Objects opens the database's object store. A database that uses it must be opened after it, and so is closed before it.
func (d Database) Objects(t testing.TB) objects.Store {
	t.Helper()
	store, err := disk.Open(d.ObjectFolder(t))
	if err != nil {
		t.Fatalf("opening an object store: %v", err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// ObjectFolder returns the folder of the database's object store, which all of its openings share.
func (d Database) ObjectFolder(t testing.TB) string {
	t.Helper()
	folder := filepath.Join(os.TempDir(), "turnstone-objects-"+d.Name+"-"+strconv.Itoa(os.Getpid()))
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// Admin runs one statement as the superuser.
func (d Database) Admin(t testing.TB, sql string, args ...any) {
	t.Helper()
	settings, err := pgx.ParseConfig(d.AdminURL)
	if err != nil {
		t.Fatal(err)
	}
	runAs(t, settings, sql, args...)
}

// runAs runs a statement on a connection of its own.
func runAs(t testing.TB, settings *pgx.ConnConfig, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clocktest.HangGuard)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		t.Fatalf("connecting as the superuser: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Fill runs a statement that adds many rows as the superuser. Triggers do not run and foreign keys are not checked, because
// they cost many times as much as the rows: the statement itself must add what belongs together.
func (d Database) Fill(t testing.TB, sql string, args ...any) {
	t.Helper()
	settings, err := pgx.ParseConfig(d.AdminURL)
	if err != nil {
		t.Fatal(err)
	}
	settings.RuntimeParams["session_replication_role"] = "replica"
	runAs(t, settings, sql, args...)
}

// InStates returns the condition that a row is in one of some states, as the statements write it.
func InStates[State ~string](states []State) string {
	names := make([]string, len(states))
	for i, state := range states {
		names[i] = "'" + string(state) + "'"
	}
	return "state in (" + strings.Join(names, ", ") + ")"
}

// New creates a database for the test and opens it.
func New(t testing.TB) *persistence.Stores {
	t.Helper()
	return NewDatabase(t).Open(t)
}

// Account creates an account that has no other rows yet.
func Account(t testing.TB, db *persistence.Stores) protocol.AccountID {
	t.Helper()
	account := protocol.NewAccountID()
	_, err := db.Exec(t.Context(), account,
		`insert into accounts (account_id, email, email_key, display_name) values ($1, $2, $2, 'Test')`, account, account.String()+"@example.com")
	if err != nil {
		t.Fatalf("creating an account: %v", err)
	}
	return account
}

// BrokenEntry returns the number of the first entry of an account's audit, from its newest checkpoint on, that was changed, or before
// which, or after which at the end, entries were removed; 0: there is none.
func BrokenEntry(t testing.TB, db *persistence.Stores, account protocol.AccountID) (number int64) {
	t.Helper()
	number, err := pg.Row(t.Context(), db.DB, account, pgx.RowTo[int64], `select coalesce(audit_verify($1), 0)`, account)
	if err != nil {
		t.Fatalf("verifying the audit: %v", err)
	}
	return number
}
