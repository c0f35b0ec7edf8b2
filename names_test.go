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

// parsed is every Go file that runs in production, by its path.
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

// constants are the constants of a type in a package, with their values.
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

// uses counts the names of a file outside of declarations of names, and outside of one variable, a table of all of them.
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

// TestNoCodeBucketOrEventIsOnlyDeclared: what nothing answers with, draws from or records is no part of the product.
func TestNoCodeBucketOrEventIsOnlyDeclared(t *testing.T) {
	files := parsed(t)
	count := map[string]int{}
	for at, file := range files {
		if !strings.HasPrefix(at, "http/openapi") { // which lists the codes of each route
			uses(file, "statuses", count)
		}
	}
	for _, kind := range []struct{ folder, name string }{
		{"protocol", "Code"}, {"http", "bucket"}, {"persistence", "SecurityEvent"},
	} {
		declared := constants(files, kind.folder, kind.name)
		if len(declared) < 5 {
			t.Errorf("only %d constants of %s.%s were found", len(declared), kind.folder, kind.name)
		}
		for name := range declared {
			if count[name] < 1 {
				t.Errorf("%s of type %s.%s is used nowhere", name, kind.folder, kind.name)
			}
		}
	}
	limits := bucketsWithLimits(t, files["cmd/turnstone/limits.go"])
	buckets := slices.Sorted(maps.Values(constants(files, "http", "bucket")))
	if buckets = slices.DeleteFunc(buckets, func(name string) bool { return name == "" }); !slices.Equal(limits, buckets) {
		t.Errorf("there are limits for %v, and http draws from %v", limits, buckets)
	}
}

// bucketsWithLimits are the keys of the maps of persistence.Limit that the limiter is made of.
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

// settings are the fields of the configuration that come from the environment: the name there, by "section.Field".
func settings(t *testing.T, config *ast.File) map[string]string {
	t.Helper()
	found := map[string]string{}
	ast.Inspect(config, func(n ast.Node) bool {
		spec, is := n.(*ast.TypeSpec)
		if !is {
			return true
		}
		section, isSection := strings.CutSuffix(spec.Name.Name, "Config")
		body, isStruct := spec.Type.(*ast.StructType)
		if !isSection || !isStruct {
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

// TestEverySettingIsUsed looks for each field of the configuration outside of the functions that only check it.
func TestEverySettingIsUsed(t *testing.T) {
	files := parsed(t)
	declared := settings(t, files["cmd/turnstone/config.go"])
	if len(declared) < 30 {
		t.Fatalf("only %d settings were found", len(declared))
	}
	used := map[string]bool{}
	for at, file := range files {
		if filepath.Dir(at) != "cmd/turnstone" {
			continue
		}
		aliases := map[string]string{} // limits := config.Limits; one := config.OIDC[name]
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return !strings.HasPrefix(n.Name.Name, "check") && n.Name.Name != "notes"
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

// aliasOf notes that a variable is a section of the configuration.
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
