package turnstone_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// parsed returns the syntax tree of every Go file that runs in production, by its path.
func parsed(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	walk(t, func(at string, _ []string) {
		file, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[at] = file
	})
	return files
}

// constants returns the names and values of the constants of a type in a package.
func constants(files map[string]*ast.File, folder, typeName string) map[string]string {
	found := map[string]string{}
	for at, file := range files {
		if filepath.Dir(at) != folder {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || len(spec.Values) != len(spec.Names) {
				return true
			}
			if of, named := spec.Type.(*ast.Ident); !named || of.Name != typeName {
				return true
			}
			for i, name := range spec.Names {
				if value, literal := spec.Values[i].(*ast.BasicLit); literal {
					found[name.Name], _ = strconv.Unquote(value.Value)
				}
			}
			return true
		})
	}
	return found
}

// uses counts how often each name occurs in a file. It leaves out declarations of constants and variables, and the
// variable called table, which lists all of them.
func uses(file *ast.File, table string, count map[string]int) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if slices.ContainsFunc(n.Names, func(name *ast.Ident) bool { return name.Name == table }) {
				return false
			}
			for _, name := range n.Names {
				count[name.Name]--
			}
		case *ast.Ident:
			count[n.Name]++
		}
		return true
	})
}

// TestNoCodeBucketOrEventIsOnlyDeclared checks that every error code, limit bucket and security event is used
// somewhere, and that there is a limit for every bucket.
func TestNoCodeBucketOrEventIsOnlyDeclared(t *testing.T) {
	files := parsed(t)
	count := map[string]int{}
	for at, file := range files {
		if at != "http/route/openapi.go" { // which lists the codes of each route
			uses(file, "statuses", count)
		}
	}
	for _, kind := range []struct{ folder, name string }{
		{"protocol", "Code"}, {"http/route", "Bucket"}, {"persistence/audit", "SecurityEvent"}, {"http/auth", "Bucket"},
	} {
		declared := constants(files, kind.folder, kind.name)
		if len(declared) < 3 {
			t.Errorf("only %d constants of %s.%s were found", len(declared), kind.folder, kind.name)
		}
		for name := range declared {
			if count[name] < 1 {
				t.Errorf("%s of type %s.%s is used nowhere", name, kind.folder, kind.name)
			}
		}
	}
	limits := bucketsWithLimits(t, files["cmd/turnstone/connect/redis.go"])
	buckets := slices.Sorted(maps.Values(constants(files, "http/route", "Bucket")))
	buckets = slices.Sorted(slices.Values(slices.AppendSeq(buckets, maps.Values(constants(files, "http/auth", "Bucket")))))
	if buckets = slices.DeleteFunc(buckets, func(name string) bool { return name == "" }); !slices.Equal(limits, buckets) {
		t.Errorf("there are limits for %v, but packages route and auth draw from %v", limits, buckets)
	}
}

// bucketsWithLimits returns the keys of the maps of limits.Limit with which the limiter is created.
func bucketsWithLimits(t *testing.T, file *ast.File) (names []string) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		entry, is := n.(*ast.KeyValueExpr)
		if !is {
			return true
		}
		if key, literal := entry.Key.(*ast.BasicLit); literal {
			name, err := strconv.Unquote(key.Value)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return true
	})
	slices.Sort(names)
	return names
}

// settings returns the fields of the configuration that are read from the environment: the variable's name by
// "section.Field".
func settings(t *testing.T, config *ast.File) map[string]string {
	t.Helper()
	found := map[string]string{}
	ast.Inspect(config, func(n ast.Node) bool {
		spec, is := n.(*ast.TypeSpec)
		if !is {
			return true
		}
		section := spec.Name.Name
		body, isStruct := spec.Type.(*ast.StructType)
		if !isStruct {
			return false
		}
		for _, field := range body.Fields.List {
			if field.Tag == nil {
				continue
			}
			tag, err := strconv.Unquote(field.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			if name := reflect.StructTag(tag).Get("env"); name != "" {
				found[section+"."+field.Names[0].Name] = name
			}
		}
		return false
	})
	return found
}

// TestEverySettingIsUsed checks that each field of the configuration is used outside of the functions that only
// validate it.
func TestEverySettingIsUsed(t *testing.T) {
	files := parsed(t)
	declared := settings(t, files["cmd/turnstone/settings/config.go"])
	if len(declared) < 30 {
		t.Fatalf("only %d settings were found", len(declared))
	}
	used := map[string]bool{}
	for at, file := range files {
		if !strings.HasPrefix(at, "cmd/turnstone/") {
			continue
		}
		aliases := map[string]string{} // limits := config.Limits; one := config.OIDC[name]
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				name := strings.ToLower(n.Name.Name)
				return !strings.HasPrefix(name, "check") && name != "notes"
			case *ast.AssignStmt:
				aliasOf(aliases, n.Lhs[0], n.Rhs[0])
			case *ast.RangeStmt:
				aliasOf(aliases, n.Value, n.X)
			case *ast.SelectorExpr:
				switch of := n.X.(type) {
				case *ast.SelectorExpr:
					used[of.Sel.Name+"."+n.Sel.Name] = true
				case *ast.Ident:
					used[aliases[of.Name]+"."+n.Sel.Name] = true
				}
			}
			return true
		})
	}
	for field, name := range declared {
		if !used[field] {
			t.Errorf("nothing uses %s (%s)", name, field)
		}
	}
}

// aliasOf records that a variable is a section of the configuration.
func aliasOf(aliases map[string]string, variable, value ast.Expr) {
	if entry, isEntry := value.(*ast.IndexExpr); isEntry {
		value = entry.X
	}
	name, isName := variable.(*ast.Ident)
	section, isField := value.(*ast.SelectorExpr)
	if isName && isField {
		aliases[name.Name] = section.Sel.Name
	}
}
