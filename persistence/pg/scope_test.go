package pg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
)

// unscoped are the constants whose SQL reads or changes rows of accounts without a condition for the account, each with its reason.
// Of the statements of requests, only those that find the account of a caller are in it.
var unscoped = map[string]string{
	"accounts.setAccountsByTokenSQL":        "finds the account by the token of a session",
	"accounts.setAccountByIdentitySQL":      "finds the account by an identity of a provider",
	"accounts.identityOwnerSQL":             "finds the account to which an identity is linked",
	"turns.turnAccountSQL":                  "finds the account of a turn for an operator",
	"turns.claimDueSQL":                     "work of a node: turns of all accounts",
	"turns.ownedSQL":                        "work of a node",
	"turns.releaseSQL":                      "work of a node",
	"nodes.expireNodesSQL":                  "work of a node: those without a turn are removed",
	"research.claimDueSQL":                  "work of a node: tasks of all accounts",
	"research.ownedSQL":                     "work of a node",
	"research.releaseSQL":                   "work of a node",
	"files.claimDueSQL":                     "work of a node: uploads of all accounts",
	"files.ownedSQL":                        "work of a node",
	"search.pendingSQL":                     "work of a node: what the search has to read",
	"feed.tailSQL":                          "the hub reads the newest changes of all accounts",
	"imports.abandonedSQL":                  "sweep: imports that nobody continues",
	"followups.stalledQueuesSQL":            "sweep: queues that nobody continues",
	"accounts.expireSessionsSQL":            "sweep, which sees the key of a session only",
	"audit.expiredAuditSQL":                 "sweep",
	"conversations.expiredConversationsSQL": "sweep",
	"feed.expireSQL":                        "sweep",
	"files.expireUploadsSQL":                "sweep",
	"files.reapDueSQL":                      "sweep",
	"idempotency.expireKeysSQL":             "sweep",
	"limits.expireReservationsSQL":          "sweep",
	"limits.expireTokenDaysSQL":             "sweep",
	"mails.expireSQL":                       "sweep",
	"memory.expireLocationsSQL":             "sweep",
	"projects.dueProjectsSQL":               "sweep",
	"conversations.DeleteShareRows":         "its condition is a parameter: of the purge it names the account, of the expiry that the shares have expired",
	"shares.expireSharesSQL":                "sweep",
}

// TestStatementsOnTablesOfAccountsNameTheAccount reads all SQL of persistence. Each select, update, delete and insert on a table with
// the column account_id must have a condition for it. Row-level security would hide the rows of other accounts in any case; the
// condition makes the statement correct without it, and lets it use the index of the account.
func TestStatementsOnTablesOfAccountsNameTheAccount(t *testing.T) {
	db := pgtest.New(t)
	tables, err := pg.Rows(t.Context(), db.DB, pg.NoAccount, pgx.RowTo[string], `
		select c.relname from pg_attribute a join pg_class c on c.oid = a.attrelid
		where a.attname = 'account_id' and c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace`)
	if err != nil || len(tables) < 40 {
		t.Fatalf("%d tables of accounts, %v", len(tables), err)
	}
	found := map[string]bool{}
	all := 0
	for name, statements := range readSource(t, "..").found {
		for _, query := range queries(strings.Join(statements, " union ")) {
			all++
			if table := withoutAccount(query, tables); table != "" {
				found[name] = true
				if unscoped[name] == "" {
					t.Errorf("%s: no condition for the account of %s in: %s", name, table, strings.Join(strings.Fields(query), " "))
				}
			}
		}
	}
	if all < 500 {
		t.Errorf("%d queries were read: the SQL is elsewhere", all)
	}
	for name := range unscoped {
		if !found[name] {
			t.Errorf("%s has a condition for the account: remove its line", name)
		}
	}
}

// writers maps the central tables to the packages with statements that change their rows. The first one has the rules of the table; the
// others change rows in their own way: a purge, an import, the hot path of a turn.
var writers = map[string][]string{
	"follow_ups":        {"queues"},
	"usage_records":     {"usage"},
	"conversations":     {"conversations", "queues", "turns", "research", "projects", "imports", "journal"},
	"branches":          {"conversations", "turns", "imports"},
	"messages":          {"conversations", "turns", "feedback", "imports"},
	"turns":             {"turns", "journal", "conversations"},
	"project_files":     {"files", "imports"},
	"artifact_versions": {"artifacts", "conversations", "imports"},
}

var changesTable = regexp.MustCompile(`\b(?:insert into|update|delete from)\s+(\w+)`)

// TestRowsAreChangedByTheirPackages: whoever changes the rules of such a table finds all its statements in these packages.
func TestRowsAreChangedByTheirPackages(t *testing.T) {
	found := map[string][]string{}
	for name, statements := range readSource(t, "..").found {
		of, _, _ := strings.Cut(name, ".")
		for _, change := range changesTable.FindAllStringSubmatch(strings.Join(statements, ";"), -1) {
			table := change[1]
			if allowed := writers[table]; allowed != nil && !slices.Contains(allowed, of) {
				t.Errorf("%s changes %s, which only %s do", name, table, strings.Join(allowed, ", "))
			}
			found[table] = append(found[table], of)
		}
	}
	for table, packages := range writers {
		for _, of := range packages {
			if !slices.Contains(found[table], of) {
				t.Errorf("package %s does not change %s: remove it from writers", of, table)
			}
		}
	}
}

func TestAStatementWithoutTheAccountIsFound(t *testing.T) {
	for sql, want := range map[string]int{
		`select 1 from shares where account_id = $1`:                                                                            0,
		`select account_id from shares where share_id = $1`:                                                                     1,
		`update shares set title = '' where share_id = $1 returning account_id`:                                                 1,
		`delete from shares where (account_id, share_id) = ($1, $2)`:                                                            0,
		`insert into shares (account_id) values ($1)`:                                                                           0,
		`insert into shares (account_id) select account_id from turns where turn_id = $1`:                                       1,
		`select 1 from nodes where node_id = $1`:                                                                                0,
		`select 1 from turns where account_id = $1 and turn_id in (select turn_id from shares where x)`:                         1,
		`select 1 from turns where account_id = $1 union all select 1 from shares`:                                              1,
		`with t as (select turn_id from turns where account_id = $1) select 1 from t join shares s using (account_id, turn_id)`: 0,
	} {
		found := 0
		for _, query := range queries(sql) {
			if withoutAccount(query, []string{"shares", "turns"}) != "" {
				found++
			}
		}
		if found != want {
			t.Errorf("%d queries without the account, want %d: %s", found, want, sql)
		}
	}
}

var (
	beginsQuery = regexp.MustCompile(`^\s*(select|insert|update|delete|merge|with)\b`)
	nested      = regexp.MustCompile(`^\(\s*(select|insert|update|delete|with)\b`)
	sets        = regexp.MustCompile(`\b(union( all)?|except|intersect|on conflict)\b|\)\s*select\b`)
	usesTable   = regexp.MustCompile(`\b(from|join|update|into|using)\s+(?:only\s+)?(?:public\.)?(\w+)`)
	ofAccount   = regexp.MustCompile(`\baccount_id\b`)
)

// withoutAccount returns a table of accounts that the query uses without a condition for the account; "" if there is none. The columns
// that a query returns are no condition.
func withoutAccount(query string, tables []string) string {
	conditions, _, _ := strings.Cut(query, " returning ")
	if at := usesTable.FindStringIndex(query); at != nil {
		conditions = conditions[min(at[0], len(conditions)):]
	}
	if ofAccount.MatchString(conditions) {
		return ""
	}
	for _, use := range usesTable.FindAllStringSubmatch(query, -1) {
		if slices.Contains(tables, use[2]) {
			return use[2]
		}
	}
	return ""
}

// queries splits a statement into its queries: itself, those in parentheses, and both sides of a union.
func queries(statement string) (split []string) {
	var own strings.Builder
	for at := 0; at < len(statement); at++ {
		if !nested.MatchString(statement[at:]) {
			own.WriteByte(statement[at])
			continue
		}
		end := closing(statement, at)
		split = append(split, queries(statement[at+1:end])...)
		own.WriteString("()")
		at = end
	}
	return append(split, sets.Split(own.String(), -1)...)
}

// closing returns the position of the parenthesis that closes the one at the given position.
func closing(statement string, at int) int {
	depth := 0
	for ; at < len(statement); at++ {
		switch statement[at] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return at
			}
		}
	}
	return at
}

// source is the SQL in the source files below a folder. Names are package.name: of a constant or variable, or of a function.
type source struct {
	values    map[string]ast.Expr // of each constant and variable of a package
	fragments map[string]bool     // constants that are parts of other texts
	found     map[string][]string // the statements of each constant, variable and function
}

func readSource(t *testing.T, folder string) *source {
	t.Helper()
	s := &source{values: map[string]ast.Expr{}, fragments: map[string]bool{}, found: map[string][]string{}}
	var files []*ast.File
	err := filepath.WalkDir(folder, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(at) != ".go" || strings.HasSuffix(at, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.SkipObjectResolution)
		files = append(files, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		s.eachDeclaration(file, func(name string, node ast.Node) {
			if value, ok := node.(ast.Expr); ok {
				s.values[name] = value
			}
		})
	}
	for _, file := range files {
		s.eachDeclaration(file, func(_ string, node ast.Node) { s.findFragments(file.Name.Name, node) })
	}
	for _, file := range files {
		s.eachDeclaration(file, func(name string, node ast.Node) { s.findStatements(name, node) })
	}
	return s
}

// eachDeclaration visits the value of each constant and variable of a file, and each function.
func (s *source) eachDeclaration(file *ast.File, visit func(name string, node ast.Node)) {
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			visit(file.Name.Name+"."+declaration.Name.Name, declaration)
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok {
					for n, value := range spec.Values {
						visit(file.Name.Name+"."+spec.Names[n].Name, value)
					}
				}
			}
		}
	}
}

// findFragments finds the names in concatenations.
func (s *source) findFragments(folder string, node ast.Node) {
	ast.Inspect(node, func(node ast.Node) bool {
		sum, ok := node.(*ast.BinaryExpr)
		if !ok || sum.Op != token.ADD {
			return true
		}
		for _, side := range []ast.Expr{sum.X, sum.Y} {
			if name := nameOf(folder, side); name != "" {
				s.fragments[name] = true
			}
		}
		return true
	})
}

func (s *source) findStatements(name string, node ast.Node) {
	folder, _, _ := strings.Cut(name, ".")
	ast.Inspect(node, func(node ast.Node) bool {
		value, ok := node.(ast.Expr)
		if !ok {
			return true
		}
		switch value.(type) {
		case *ast.BinaryExpr, *ast.BasicLit:
			if text := s.text(folder, value); beginsQuery.MatchString(text) && !s.fragments[name] {
				s.found[name] = append(s.found[name], text)
			}
			return false
		}
		return true
	})
}

// text returns the text of an expression, as far as it is constant. A call has the texts of its arguments.
func (s *source) text(folder string, value ast.Expr) string {
	switch value := value.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(value.Value) // of a text; a number is no statement
		return text
	case *ast.BinaryExpr:
		return s.text(folder, value.X) + s.text(folder, value.Y)
	case *ast.ParenExpr:
		return s.text(folder, value.X)
	case *ast.CallExpr:
		var texts []string
		for _, argument := range value.Args {
			texts = append(texts, s.text(folder, argument))
		}
		return strings.Join(texts, " ")
	}
	name := nameOf(folder, value)
	if name == "" || s.values[name] == nil {
		return ""
	}
	of, _, _ := strings.Cut(name, ".")
	return s.text(of, s.values[name])
}

// nameOf returns package.name for a name and for the name of another package.
func nameOf(folder string, value ast.Expr) string {
	switch value := value.(type) {
	case *ast.Ident:
		return folder + "." + value.Name
	case *ast.SelectorExpr:
		if of, ok := value.X.(*ast.Ident); ok {
			return of.Name + "." + value.Sel.Name
		}
	}
	return ""
}
