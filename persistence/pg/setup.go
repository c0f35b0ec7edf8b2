package pg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"turnstone/persistence/migrations"
)

// SetupError is a problem that an operator has to fix on the server: its description in one line, and the fix.
type SetupError struct {
	Problem string
	SQL     []string // statements for a superuser (psql), in this order; they contain no secrets
	Command string   // shell command, to be run after SQL
	Err     error
}

func (e *SetupError) Error() string {
	if e.Err != nil {
		return e.Problem + ": " + e.Err.Error()
	}
	return e.Problem
}

func (e *SetupError) Unwrap() error { return e.Err }

// SetupErrors returns every SetupError of an error that may join several.
func SetupErrors(err error) []*SetupError {
	var one *SetupError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*SetupError
		for _, part := range joined.Unwrap() {
			all = append(all, SetupErrors(part)...)
		}
		return all
	}
	if errors.As(err, &one) {
		return []*SetupError{one}
	}
	return nil
}

const migrateCommand = "TURNSTONE_MIGRATE_DATABASE_URL=<as the owner> DATABASE_URL=<as the login role> turnstone migrate"

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// refusedConnection explains why Postgres refuses a connection. It returns a SetupError if the operator can fix the
// cause.
func refusedConnection(err error, config *pgx.ConnConfig, attributes string) error {
	role := quoted(config.User)
	switch {
	case isState(err, stateNoDatabase):
		return &SetupError{
			Problem: fmt.Sprintf("there is no database %s", config.Database), Err: err,
			SQL: []string{fmt.Sprintf("create database %s owner <owner role>;", quoted(config.Database))}, Command: migrateCommand,
		}
	case isState(err, stateNoPassword, stateNoRole):
		return &SetupError{
			Problem: fmt.Sprintf("Postgres at %s does not accept the role %s or its password", config.Host, config.User), Err: err,
			SQL: []string{
				fmt.Sprintf("create role %s login %s password '<password>';  -- if it does not exist", role, attributes),
				fmt.Sprintf("alter role %s login password '<password>';  -- if it does", role),
			},
		}
	}
	return fmt.Errorf("Postgres at %s refuses the connection: %w", config.Host, err)
}

const (
	ownerAttributes = "createrole nobypassrls"
	loginAttributes = "noinherit nobypassrls"
)

// grantSQL makes a login role a member of both roles. From Postgres 16 on, the membership decides whether the login
// role inherits; in older versions, the NOINHERIT of the role does.
func grantSQL(login string, version int) string {
	grant := fmt.Sprintf("grant %s, %s to %s", AppRole, EngineRole, quoted(login))
	if version >= membershipsInherit {
		grant += " with inherit false, set true"
	}
	return grant
}

const membershipsInherit = 160000

const ownerSQL = `
select current_user, current_database(), pg_get_userbyid(d.datdba), current_setting('server_version_num')::int,
       r.rolsuper or pg_has_role(current_user, d.datdba, 'usage'), r.rolsuper or r.rolcreaterole,
       (select count(*) = 2 from pg_roles where rolname in ('turnstone_app', 'turnstone_engine')),
       r.rolsuper or (select count(*) = 2 from pg_auth_members m join pg_roles g on g.oid = m.roleid
           where g.rolname in ('turnstone_app', 'turnstone_engine') and m.admin_option and pg_has_role(current_user, m.member, 'usage')),
       exists (select from pg_roles where rolname = $1),
       coalesce((select rolinherit from pg_roles where rolname = $1), false),
       (select count(*) = 2 from pg_auth_members m join pg_roles g on g.oid = m.roleid join pg_roles l on l.oid = m.member
           where g.rolname in ('turnstone_app', 'turnstone_engine') and l.rolname = $1),
       (select pg_get_userbyid(relowner) from pg_class where oid = to_regclass('public.schema_version')),
       (select min(n.rolname) from pg_policy p join pg_class c on c.oid = p.polrelid join pg_roles n on n.oid = any (p.polroles)
           where c.relnamespace = 'public'::regnamespace and c.relowner = r.oid
             and n.rolname not in (current_user, 'turnstone_app', 'turnstone_engine'))
from pg_database d, pg_roles r
where d.datname = current_database() and r.rolname = current_user`

// CheckOwner checks for everything that would make a migration fail half way. It changes nothing.
func CheckOwner(ctx context.Context, ownerURL, login string) error {
	config, err := ownerConfig(ownerURL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return refusedConnection(err, config.ConnConfig, ownerAttributes)
	}
	defer func() { _ = conn.Close(ctx) }() // the connection only reads
	return checkOwner(ctx, conn, login)
}

// ownerFacts holds the facts that a migration depends on.
type ownerFacts struct {
	user, database, databaseOwner                   string
	version                                         int
	ownsDatabase, mayCreateRoles, rolesExist        bool
	mayGrantRoles, loginExists, inherits, isGranted bool
	schemaOwner, policyRole                         *string
}

func checkOwner(ctx context.Context, conn *pgx.Conn, login string) error {
	var f ownerFacts
	err := conn.QueryRow(ctx, ownerSQL, login).Scan(&f.user, &f.database, &f.databaseOwner, &f.version, &f.ownsDatabase, &f.mayCreateRoles,
		&f.rolesExist, &f.mayGrantRoles, &f.loginExists, &f.inherits, &f.isGranted, &f.schemaOwner, &f.policyRole)
	if err != nil {
		return fmt.Errorf("reading what the owner role may do: %w", err)
	}
	return errors.Join(f.ownership(), f.ownershipOfTables(), f.roles(login), f.login(login))
}

func (f *ownerFacts) ownership() error {
	if f.ownsDatabase {
		return nil
	}
	return &SetupError{
		Problem: fmt.Sprintf("the database %s belongs to %s, not to %s", f.database, f.databaseOwner, f.user),
		SQL:     []string{fmt.Sprintf("alter database %s owner to %s;", quoted(f.database), quoted(f.user))},
	}
}

// transferOwnershipSQL transfers everything of the service to another role: the objects of the old role in the two
// schemas, and the policies that let functions of the owner read every account. REASSIGN OWNED does not change
// policies, and it does not work at all for the superuser that created the cluster.
const transferOwnershipSQL = `do $$
declare
    old constant oid := (select oid from pg_roles where rolname = %[1]s);
    command text;
begin
    for command in
        select format('alter schema %%I owner to %%I', n.nspname, %[2]s) from pg_namespace n
        where n.nspowner = old and n.nspname in ('public', 'river')
        union all
        select format('alter table %%s owner to %%I', c.oid::regclass, %[2]s) from pg_class c
        where c.relowner = old and c.relnamespace::regnamespace::text in ('public', 'river') and c.relkind in ('r', 'p', 'v', 'm', 'S')
          and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'e', 'i')
              and (c.relkind = 'S' or d.deptype = 'e'))
        union all
        select format('alter type %%s owner to %%I', t.oid::regtype, %[2]s) from pg_type t
        where t.typowner = old and t.typnamespace::regnamespace::text in ('public', 'river')
          and (t.typtype in ('d', 'e', 'r') or t.typtype = 'c' and (select relkind from pg_class where oid = t.typrelid) = 'c')
          and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = t.oid and d.deptype = 'e')
        union all
        select format('alter routine %%s owner to %%I', p.oid::regprocedure, %[2]s) from pg_proc p
        where p.proowner = old and p.pronamespace::regnamespace::text in ('public', 'river')
          and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
        union all
        select format('alter policy %%I on %%s to %%I', p.polname, p.polrelid::regclass, %[2]s) from pg_policy p
        where old = any (p.polroles)
    loop
        execute command;
    end loop;
end $$;`

// ownershipOfTables returns an error if the schema, or policies in it, belong to another role.
func (f *ownerFacts) ownershipOfTables() error {
	var old, problem string
	switch {
	case f.schemaOwner != nil && *f.schemaOwner != f.user:
		old, problem = *f.schemaOwner, "the tables belong to %s, not to %s: run migrate as %[1]s, or transfer the tables"
	case f.policyRole != nil:
		old, problem = *f.policyRole, "policies of the tables are for the role %s, not for their owner %s: sign-ins fail"
	default:
		return nil
	}
	return &SetupError{Problem: fmt.Sprintf(problem, old, f.user), SQL: []string{fmt.Sprintf(transferOwnershipSQL, literal(old), literal(f.user))}}
}

func (f *ownerFacts) roles(login string) error {
	before := f.version < membershipsInherit
	switch grants := login != "" && !f.isGranted; {
	case (!f.rolesExist || before && grants) && !f.mayCreateRoles:
		return &SetupError{
			Problem: fmt.Sprintf("the owner role %s may not create the roles of the service (no CREATEROLE)", f.user),
			SQL:     []string{fmt.Sprintf("alter role %s createrole;", quoted(f.user))},
		}
	case f.rolesExist && !before && grants && !f.mayGrantRoles:
		return &SetupError{
			Problem: fmt.Sprintf("the owner role %s may not grant %s and %s", f.user, AppRole, EngineRole),
			SQL:     []string{fmt.Sprintf("grant %s, %s to %s with admin option;", AppRole, EngineRole, quoted(f.user))},
		}
	}
	return nil
}

func (f *ownerFacts) login(login string) error {
	switch {
	case login == "":
	case login == f.user:
		return &SetupError{
			Problem: "DATABASE_URL names the owner role: the service needs a login role of its own",
			SQL:     []string{"create role turnstone login " + loginAttributes + " password '<password>';"},
		}
	case !f.loginExists:
		return &SetupError{
			Problem: fmt.Sprintf("the login role %s of DATABASE_URL does not exist", login),
			SQL:     []string{fmt.Sprintf("create role %s login %s password '<password>';", quoted(login), loginAttributes)},
		}
	case f.inherits && f.version < membershipsInherit:
		return &SetupError{
			Problem: fmt.Sprintf("the login role %s would inherit %s and %s, so the policies of both would apply at once", login, AppRole, EngineRole),
			SQL:     []string{fmt.Sprintf("alter role %s noinherit;", quoted(login))},
		}
	}
	return nil
}

// MembershipError explains why the login role cannot switch to a role of the service.
func MembershipError(ctx context.Context, config *pgx.ConnConfig, role string, cause error) error {
	plain := config.Copy()
	delete(plain.RuntimeParams, "role")
	conn, err := pgx.ConnectConfig(ctx, plain)
	if err != nil {
		return refusedConnection(err, plain, loginAttributes)
	}
	defer func() { _ = conn.Close(ctx) }() // the connection only reads
	var exists bool
	var version int
	const roleSQL = `select exists (select from pg_roles where rolname = $1), current_setting('server_version_num')::int`
	if err := conn.QueryRow(ctx, roleSQL, role).Scan(&exists, &version); err != nil {
		return fmt.Errorf("reading the roles: %w", err)
	}
	problem := &SetupError{Problem: fmt.Sprintf("the database login role cannot become %s: run `turnstone migrate` first", role), Err: cause, Command: migrateCommand}
	if exists {
		problem.Problem = fmt.Sprintf("the database login role %s is not a member of %s and %s", config.User, AppRole, EngineRole)
		problem.SQL, problem.Command = []string{grantSQL(config.User, version) + ";"}, ""
	}
	return problem
}

var deniedRelation = regexp.MustCompile(`^permission denied for (table|relation|sequence|function|schema) ([a-z_0-9]+)$`)

// MissingGrant converts a permission error to a SetupError, for a statement that a role of the service must be able to
// run.
func MissingGrant(err error, role string) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != stateNoPrivilege {
		return err
	}
	match := deniedRelation.FindStringSubmatch(pg.Message)
	if match == nil {
		return err
	}
	return &SetupError{
		Problem: fmt.Sprintf("%s may not use the %s %s", role, match[1], match[2]), Err: err, SQL: grantsOf(match[1], match[2], role),
	}
}

// grantsOf returns the grants on one object to a role, from the migrations.
func grantsOf(kind, name, role string) []string {
	var found []string
	files, _ := fs.Glob(migrations.Files, "*.sql")
	for _, file := range files {
		text, _ := fs.ReadFile(migrations.Files, file)
		for line := range strings.Lines(string(text)) {
			words := strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" ,;(\n", c) })
			if strings.HasPrefix(line, "grant ") && slices.Contains(words, name) && slices.Contains(words, role) {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	if found == nil && kind == "table" && role == AppRole {
		found = []string{fmt.Sprintf("grant select, insert, update, delete on %s to %s;", name, role)}
	}
	return found
}
