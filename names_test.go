package turnstone_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
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

var (
	// qualified matches a name of a package, in a comment: as upload.ErrStopped or retry.storePause. File names, events and members of
	// JSON have no upper-case letter.
	qualified = regexp.MustCompile(`(?:^|[^\w./"-])([a-z][a-z0-9]*)\.([a-z]*[A-Z]\w*)`)
	// preformatted matches a line of a comment that is a diagram or code.
	preformatted = regexp.MustCompile(`(?m)^//\t.*$`)
)

// TestNamesOfPackagesInCommentsExist checks the names in comments that begin with the name of a package. A first word that the
// file uses as a variable or a field, or that names a library, is no package of this module.
func TestNamesOfPackagesInCommentsExist(t *testing.T) {
	declared, libraries, checked := declaredNames(t)
	found := 0
	for at, file := range checked {
		imported, used := map[string]string{}, map[string]bool{}
		for _, of := range importsOf(t, file) {
			if ours, is := strings.CutPrefix(of, module); is {
				imported[path.Base(ours)] = ours
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if name, is := n.(*ast.Ident); is {
				used[name.Name] = true
			}
			return true
		})
		for _, group := range file.Comments {
			for _, comment := range group.List {
				for _, name := range qualified.FindAllStringSubmatch(preformatted.ReplaceAllString(comment.Text, ""), -1) {
					from := imported[name[1]]
					if from == "" && (used[name[1]] || libraries[name[1]]) {
						continue
					}
					found++
					if !slices.ContainsFunc(slices.Collect(maps.Keys(declared)), func(folder string) bool {
						return (folder == from || from == "" && path.Base(folder) == name[1]) && declared[folder][name[2]]
					}) {
						t.Errorf("%s: a comment names %s.%s, which does not exist", at, name[1], name[2])
					}
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d names were checked", found)
	}
}

// declaredNames returns the names that each package declares at its top level, the names of the libraries that the code imports, and
// the files that run in production, with their comments.
func declaredNames(t *testing.T) (declared map[string]map[string]bool, libraries map[string]bool, production map[string]*ast.File) {
	t.Helper()
	declared, libraries, production = map[string]map[string]bool{}, map[string]bool{}, map[string]*ast.File{}
	walkAll(t, func(at string, imports []string) {
		for _, of := range imports {
			if !strings.HasPrefix(of, module) {
				libraries[path.Base(of)] = true
			}
		}
		file, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(at, "_test.go") && !strings.HasSuffix(path.Dir(at), "test") {
			production[at] = file
		}
		names := declared[path.Dir(at)]
		if names == nil {
			names = map[string]bool{}
			declared[path.Dir(at)] = names
		}
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				names[d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names[spec.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							names[name.Name] = true
						}
					}
				}
			}
		}
	})
	return declared, libraries, production
}
