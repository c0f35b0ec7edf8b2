package pg_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/persistence/accounts"
	"turnstone/persistence/audit"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
	"turnstone/providers/embedded"
)

var setups atomic.Int64

// setup is a manual installation: a database with its own owner role and login role.
type setup struct {
	pgtest.Database
	database, owner, login string
}

func newSetup(t *testing.T) *setup {
	n := setups.Add(1)
	s := &setup{Database: pgtest.NewDatabase(t), database: fmt.Sprintf("setup_%d", n), owner: fmt.Sprintf("setup_owner_%d", n), login: fmt.Sprintf("setup_login_%d", n)}
	s.Admin(t, "create role "+s.owner+" login createrole nobypassrls")
	s.Admin(t, "create role "+s.login+" login noinherit nobypassrls")
	s.Admin(t, "create database "+s.database+" owner "+s.owner)
	s.AdminURL = s.Server.DSN(embedded.Superuser, s.database)
	t.Cleanup(func() {
		s.AdminURL = s.Server.DSN(embedded.Superuser, "postgres")
		s.Admin(t, "drop database if exists "+s.database+" with (force)")
	})
	return s
}

func (s *setup) migrate(t *testing.T) error {
	return pg.Migrate(t.Context(), s.Server.DSN(s.owner, s.database), pg.MigrateOptions{Login: s.login})
}

func (s *setup) open(t *testing.T) error {
	db, err := persistence.Open(t.Context(), persistence.Config{URL: s.Server.DSN(s.login, s.database)})
	if err == nil {
		db.Close()
	}
	return err
}

// signIn registers an account and finds it by its e-mail address, as a request does: through a function of the owner
// role, whose policy permits it to read every account.
func (s *setup) signIn(t *testing.T) {
	t.Helper()
	db, err := persistence.Open(t.Context(), persistence.Config{URL: s.Server.DSN(s.login, s.database)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	hash := "x"
	account := &accounts.NewAccount{
		Account:  protocol.Account{AccountID: protocol.NewAccountID(), Email: "ada@example.org", DisplayName: "Ada"},
		EmailKey: "ada@example.org", PasswordHash: &hash, CreatedAt: time.Now(),
	}
	if err := db.Accounts.Register(t.Context(), account, nil, nil, audit.Requester{}); err != nil {
		t.Fatal(err)
	}
	if found, err := db.Accounts.CredentialsByEmail(t.Context(), account.EmailKey); err != nil || found.AccountID != account.AccountID {
		t.Errorf("the account is not found by its address: %v", err)
	}
}

// applyRemedy executes exactly the statements and commands that an error lists as its remedy.
func (s *setup) applyRemedy(t *testing.T, err error) {
	t.Helper()
	wrong := pg.SetupErrors(err)
	if len(wrong) == 0 {
		t.Fatalf("the error lists no remedy: %v", err)
	}
	for _, one := range wrong {
		t.Logf("%s: %v %s", one.Problem, one.SQL, one.Command)
		for _, statement := range one.SQL {
			statement = strings.NewReplacer("<password>", "secret", "<owner role>", s.owner).Replace(statement)
			if strings.HasPrefix(statement, "create database") {
				s.AdminURL = s.Server.DSN(embedded.Superuser, "postgres")
			}
			s.Admin(t, statement)
		}
		if strings.Contains(one.Command, "turnstone migrate") {
			if err := s.migrate(t); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTheListedRemedyFixesAWrongSetup makes each mistake of a manual installation, executes the remedy that the error
// lists, and then checks that the installation works.
func TestTheListedRemedyFixesAWrongSetup(t *testing.T) {
	migratedAs := func(t *testing.T, s *setup, role string) {
		t.Helper()
		if err := pg.Migrate(t.Context(), s.Server.DSN(role, s.database), pg.MigrateOptions{Login: s.login}); err != nil {
			t.Fatal(err)
		}
	}
	migrated := func(t *testing.T, s *setup) {
		t.Helper()
		if err := s.migrate(t); err != nil {
			t.Fatal(err)
		}
	}
	for name, mistake := range map[string]struct {
		make    func(*testing.T, *setup)
		try     func(*setup, *testing.T) error
		problem string
	}{
		"the owner may not create roles": {func(t *testing.T, s *setup) { s.Admin(t, "alter role "+s.owner+" nocreaterole") }, (*setup).migrate, "CREATEROLE"},
		"the database belongs to another role": {func(t *testing.T, s *setup) {
			s.Admin(t, "alter database "+s.database+" owner to "+embedded.Superuser)
		}, (*setup).migrate, "belongs to"},
		"the tables belong to another role": {func(t *testing.T, s *setup) {
			migrated(t, s)
			s.Admin(t, "create role "+s.owner+"_before createrole")
			s.Admin(t, "reassign owned by "+s.owner+" to "+s.owner+"_before")
			s.Admin(t, "alter database "+s.database+" owner to "+s.owner)
		}, (*setup).migrate, "tables belong to"},
		"the tables belong to the superuser that created the cluster": {func(t *testing.T, s *setup) {
			migratedAs(t, s, embedded.Superuser)
		}, (*setup).migrate, "tables belong to"},
		"the database and the tables belong to the superuser that created the cluster": {func(t *testing.T, s *setup) {
			migratedAs(t, s, embedded.Superuser)
			s.Admin(t, "alter database "+s.database+" owner to "+embedded.Superuser)
		}, (*setup).migrate, "tables belong to"},
		"the tables were reassigned without their policies": {func(t *testing.T, s *setup) {
			s.Admin(t, "create role "+s.owner+"_first login superuser")
			migratedAs(t, s, s.owner+"_first")
			s.Admin(t, "reassign owned by "+s.owner+"_first to "+s.owner)
		}, (*setup).migrate, "policies"},
		"there is no login role": {func(t *testing.T, s *setup) { s.Admin(t, "drop role "+s.login) }, (*setup).migrate, "does not exist"},
		"the login role inherits": {func(t *testing.T, s *setup) {
			migrated(t, s)
			s.Admin(t, "alter role "+s.login+" inherit")
			s.Admin(t, "grant turnstone_app, turnstone_engine to "+s.login)
		}, (*setup).open, "inherits"},
		"the login role is a superuser": {func(t *testing.T, s *setup) {
			migrated(t, s)
			s.Admin(t, "alter role "+s.login+" superuser")
		}, (*setup).open, "superuser"},
		"the login role has BYPASSRLS": {func(t *testing.T, s *setup) {
			migrated(t, s)
			s.Admin(t, "alter role "+s.login+" bypassrls")
		}, (*setup).open, "BYPASSRLS"},
		"the login role was granted nothing": {func(t *testing.T, s *setup) {
			migrated(t, s)
			s.Admin(t, "revoke turnstone_app, turnstone_engine from "+s.login)
		}, (*setup).open, "not a member"},
		"there is no schema": {func(t *testing.T, s *setup) { s.Admin(t, "grant turnstone_app, turnstone_engine to "+s.login) }, (*setup).open, "turnstone migrate"},
		"there is no database": {func(t *testing.T, s *setup) {
			s.Admin(t, "grant turnstone_app, turnstone_engine to "+s.login)
			s.AdminURL = s.Server.DSN(embedded.Superuser, "postgres")
			s.Admin(t, "drop database "+s.database)
		}, (*setup).open, "no database"},
		"a grant to the requests' role is missing": {func(t *testing.T, s *setup) {
			migrated(t, s)
			s.Admin(t, "revoke insert on accounts from turnstone_app")
		}, (*setup).open, "turnstone_app may not use"},
		"a grant to the engine's role is missing": {func(t *testing.T, s *setup) {
			migrated(t, s)
			s.Admin(t, "revoke insert on turn_records from turnstone_engine")
		}, (*setup).open, "turnstone_engine may not use"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			mistake.make(t, s)
			err := mistake.try(s, t)
			if err == nil || !strings.Contains(err.Error(), mistake.problem) {
				t.Fatalf("%v, want an error that contains %q", err, mistake.problem)
			}
			s.applyRemedy(t, err)
			if err := s.migrate(t); err != nil {
				t.Errorf("migrate after the remedy: %v", err)
			}
			if err := s.open(t); err != nil {
				t.Errorf("open after the remedy: %v", err)
			}
			s.signIn(t)
		})
	}
}
